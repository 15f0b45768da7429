//! `haft audit`: what admins did.

use std::process::ExitCode;

use clap::Args;
use haft::config::NamePattern;
use jiff::Timestamp;

use super::{EXIT_RUNTIME, Failure, Global, configuration, print_json};
use crate::audit::{AuditEntry, AuditFilter, AuditLog, AuditOutcome, AuditPage};
use crate::terminal::{self, Paint};
use crate::timestamp;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  haft audit --since 7d
  haft audit --action 'key.*' --json        with the items before and after
  haft audit --who key:me")]
pub(super) struct AuditArgs {
    /// Only actions since then: a duration ago such as `7d`, a date, or a time
    #[arg(long, value_name = "TIME", value_parser = timestamp::parse)]
    since: Option<Timestamp>,
    /// Only actions of this caller, such as `key:me`
    #[arg(long)]
    who: Option<String>,
    /// Only actions that match, such as `key.*` or `server.remove`
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    action: Option<NamePattern>,
    /// Largest number of actions, the newest
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

fn pattern(text: &str) -> Result<NamePattern, String> {
    NamePattern::parse(text)
        .ok_or_else(|| "expected a name or a pattern such as `key.*`".to_owned())
}

pub(super) fn run(global: &Global, args: AuditArgs) -> anyhow::Result<ExitCode> {
    let audit = AuditLog::of(&configuration(global)?);
    let AuditArgs { since, who, action, limit } = args;
    let filter = AuditFilter { since, who, action, limit };
    let AuditPage { actions, malformed } = audit.read(&filter).map_err(|error| {
        let dir = audit.dir().display();
        let remedy = "make sure that its files can be read";
        Failure::new(EXIT_RUNTIME, format!("cannot read `{dir}`: {error}"), remedy)
    })?;
    if malformed > 0 {
        tracing::warn!("{malformed} lines of the audit log cannot be read and are left out");
    }
    if global.json {
        print_json(&actions)?;
        return Ok(ExitCode::SUCCESS);
    }
    if actions.is_empty() {
        terminal::line("no actions");
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = actions.into_iter().map(row).collect();
    let head = ["TIME", "WHO", "FROM", "ACTION", "TARGET", "OUTCOME"];
    terminal::table(Paint::stdout(global.color), &head, &rows);
    Ok(ExitCode::SUCCESS)
}

fn row(entry: AuditEntry) -> Vec<String> {
    let AuditEntry { at, who, from, action, target, outcome, .. } = entry;
    let outcome = match outcome {
        AuditOutcome::Started => "started",
        AuditOutcome::Done => "done",
        AuditOutcome::Failed => "failed",
    };
    vec![at, who, from, action, target.unwrap_or_else(|| "-".to_owned()), outcome.to_owned()]
}
