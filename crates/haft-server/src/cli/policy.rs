//! `haft policy test`: the rules of a configuration, tried on logged calls.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use haft::config::rules::{KeyScope, RuleEffect, hints};
use haft::record::{Fact, Filter, LoggedCall, Replay, ReplayFacts, read, replay};
use haft::{Code, Config, PolicyDecision};
use haft_text::printable;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::log::unreadable;
use super::{Global, block_on, configuration, count, key_store, print_json, why};
use crate::keys::KeyEntry;
use crate::stderr::say;
use crate::terminal::{self, Paint};
use crate::timestamp;

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Try the rules on logged calls and list what would change
    #[command(after_help = "Examples:
  haft policy test --since 7d                 the rules of the configuration in use
  haft policy test --since 7d -c new.yaml --dir logs

Nothing is called and nothing is written. Arguments are those of the log: secrets are masked there, and fixed
arguments are not in it. A call whose decision depends on what the log does not have is listed as unknown.")]
    Test(TestArgs),
}

#[derive(Debug, Args)]
pub(super) struct TestArgs {
    /// Only calls since then: a duration such as 7d, a date, or a time such as 2026-01-31T09:00:00Z
    #[arg(long, value_parser = timestamp::parse, default_value = "7d")]
    since: Timestamp,
    /// The folder of the log, instead of the configuration's
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
}

/// A call on which the rules decide otherwise than they did.
struct Change {
    call: LoggedCall,
    before: RuleEffect,
    after: Replay,
}

pub(super) fn run(global: &Global, command: &PolicyCommand) -> anyhow::Result<ExitCode> {
    let PolicyCommand::Test(args) = command;
    let config = configuration(global)?;
    let dir = why::log_dir(global, args.dir.as_ref())?;
    let keys = block_on(async { Ok(key_store::open(&config).await?.list().await?) });
    let keys = keys.unwrap_or_else(|error| {
        tracing::warn!("the scopes of keys are unknown: {error}");
        Vec::new()
    });
    let keys: Vec<KeyEntry> = keys.into_iter().map(|key| key.entry).collect();
    let keys: HashMap<&str, &KeyEntry> = keys.iter().map(|key| (key.name.as_str(), key)).collect();
    let filter = Filter { since: Some(args.since), ..Filter::default() };
    let mut calls = read(&dir, &filter).map_err(unreadable)?;
    let (mut tried, mut changes) = (0, Vec::new());
    for call in calls.by_ref() {
        let call = call.map_err(unreadable)?;
        if !reached_rules(&call) {
            continue;
        }
        tried += 1;
        let before = call.policy.as_ref().map_or(RuleEffect::Allow, |policy| policy.effect);
        let after = replay(&config, &call, facts(&config, &keys, &call));
        if effect(&after) != Some(before) {
            changes.push(Change { call, before, after });
        }
    }
    if calls.malformed() > 0 {
        tracing::warn!("{} lines of the log cannot be read and are left out", calls.malformed());
    }
    if global.json {
        let changes: Vec<Value> = changes.iter().map(Change::json).collect();
        print_json(&json!({"calls": tried, "changes": changes}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = Paint::stdout(global.color);
    for change in &changes {
        terminal::line(&change.line(paint));
    }
    say!("{}, {}", count(tried, "call"), count(changes.len(), "change"));
    Ok(ExitCode::SUCCESS)
}

/// Calls that ended before the rules say nothing about them.
fn reached_rules(call: &LoggedCall) -> bool {
    let is_early = |code: Code| {
        matches!(code, Code::UnknownTool | Code::ValidationError)
            || (code == Code::Denied && call.policy.is_none())
    };
    !call.error.as_ref().is_some_and(|error| is_early(error.code))
}

fn effect(replay: &Replay) -> Option<RuleEffect> {
    match replay {
        Replay::Decided(Some(decision)) => Some(decision.effect),
        Replay::Decided(None) => Some(RuleEffect::Allow),
        Replay::Unknown { .. } => None,
    }
}

/// Facts that the log does not have: those of keys from their file, hints from the definitions of local tools.
fn facts<'a>(
    config: &Config,
    keys: &HashMap<&str, &'a KeyEntry>,
    call: &LoggedCall,
) -> ReplayFacts<'a> {
    let caller = call.caller.as_deref().unwrap_or_default();
    let key = caller.strip_prefix("key:");
    let entry = key.and_then(|name| keys.get(name)).copied();
    let scope = match (key, entry) {
        (_, Some(entry)) => Fact::Known(entry.scope.into()),
        (Some(_), None) => Fact::Unknown,
        (None, _) if caller == "local" => Fact::Known(KeyScope::Call),
        (None, _) => Fact::Absent,
    };
    let profile = match entry.map(|entry| entry.profile.as_deref()) {
        Some(Some(profile)) => Fact::Known(profile),
        Some(None) | None if caller == "cli" => Fact::Absent,
        Some(None) | None => Fact::Unknown,
    };
    let local = config.local.iter().find(|tool| tool.definition.name == call.tool);
    let local = local.filter(|_| call.server.is_none());
    let annotations = local.map(|tool| hints(tool.definition.annotations.as_ref()));
    ReplayFacts { scope, profile, annotations }
}

impl Change {
    fn json(&self) -> Value {
        let Self { call, before, after } = self;
        let mut shown = json!({
            "execution_id": call.execution_id, "timestamp": call.timestamp.to_string(), "tool": call.tool,
            "server": call.server, "caller": call.caller, "before": before, "after": effect(after),
        });
        match after {
            Replay::Decided(decision) => shown["decision"] = json!(decision),
            Replay::Unknown { rule, missing } => {
                shown["unknown"] = json!({"rule": rule, "missing": missing});
            }
        }
        shown
    }

    fn line(&self, paint: Paint) -> String {
        let Self { call, before, after } = self;
        let what = match after {
            Replay::Decided(Some(decision)) => {
                let PolicyDecision { rule, effect, .. } = &**decision;
                let reason = decision.problem.as_ref().or(decision.reason.as_ref());
                let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("{before} -> {effect}, rule `{rule}` at {}{reason}", decision.place())
            }
            Replay::Decided(None) => format!("{before} -> allow, no rule"),
            Replay::Unknown { rule, missing } => {
                format!("{before} -> unknown, rule `{rule}` depends on {missing}")
            }
        };
        let time = call.timestamp.strftime("%Y-%m-%d %H:%M:%S").to_string();
        let caller = call.caller.as_deref().unwrap_or("-");
        let input: String = call.input.get().chars().take(80).collect();
        format!(
            "{time} {} {} by {} {}: {}",
            paint.dim(&call.execution_id),
            paint.bold(&printable(&call.tool)),
            printable(caller),
            printable(&input),
            printable(&what)
        )
    }
}
