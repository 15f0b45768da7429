//! `haft learn`.

use std::process::ExitCode;

use haft::config::choices::LogShip;
use haft::record::{Filter, LoggedCall, read};
use haft::select::Proposal;
use haft::{Config, Status};
use jiff::Timestamp;

use super::log::unreadable;
use super::log_shared;
use super::toolbox::{Purpose, Toolbox};
use super::{Global, block_on, print_json, trusted_configuration};
use crate::terminal;
use crate::timestamp;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  haft learn                    propose examples from the whole log
  haft learn --since 7d --json

Calls carry the user's request with `--request` of `haft call`, `request` of the API, or `ToolCall::request`. The log
keeps that only with `log: {requests: true}`. Nothing is changed: what fits is yours to add.")]
pub(super) struct LearnArgs {
    /// Only calls since then: a duration such as 7d, a date, or a time such as 2026-01-31T09:00:00Z
    #[arg(long, value_parser = timestamp::parse)]
    since: Option<Timestamp>,
}

pub(super) fn run(global: &Global, args: &LearnArgs) -> anyhow::Result<ExitCode> {
    let config = trusted_configuration(global)?;
    let calls = calls(config.config(), args.since)?;
    let keeps = config.config().log.requests.value;
    let served: Vec<(&str, &str)> = calls
        .iter()
        .filter_map(|call| Some((call.request.as_deref()?, call.tool.as_str())))
        .collect();
    let count = served.len();
    let proposals = block_on(async {
        let toolbox = Toolbox::open(config, Purpose::DryRun).await?;
        let propose = async |runtime: &haft::Runtime| {
            runtime.discover().await;
            Ok(runtime.propose_examples(&served).await)
        };
        toolbox.work(propose).await
    })?;
    if global.json {
        print_json(&proposals)?;
    } else if proposals.is_empty() {
        terminal::line(&nothing(count, keeps));
    } else {
        terminal::line(&as_yaml(&proposals));
    }
    Ok(ExitCode::SUCCESS)
}

/// The calls that succeeded: those of all replicas if their log is shipped.
fn calls(config: &Config, since: Option<Timestamp>) -> anyhow::Result<Vec<LoggedCall>> {
    let filter = Filter { status: Some(Status::Success), since, ..Filter::default() };
    if config.log.ship.value == LogShip::Shared {
        return Ok(log_shared::find(config, &filter)?.0);
    }
    let mut found = Vec::new();
    for call in read(&config.log.dir.value, &filter).map_err(unreadable)? {
        match call {
            Ok(call) => found.push(call),
            Err(error) => tracing::warn!("{}; the other files are read", error.problem()),
        }
    }
    Ok(found)
}

fn nothing(count: usize, keeps: bool) -> String {
    match (count, keeps) {
        (0, false) => "nothing to learn from: the log keeps no requests. `log: {requests: true}` enables it; calls carry theirs with `--request` or, over HTTP, `request`"
            .to_owned(),
        (0, true) => "nothing to learn from yet: no successful call carries a request (`--request`, or \
                      `request` over HTTP)"
            .to_owned(),
        (1, _) => "nothing to propose: the right tool is found first for the one request there is".to_owned(),
        (_, _) => format!("nothing to propose: the right tool is found first for each of {count} requests"),
    }
}

/// YAML that can be pasted into the configuration.
fn as_yaml(proposals: &[Proposal]) -> String {
    let mut lines = vec![
        "# Requests whose tool is not found first. Add to `tools` of the configuration what fits."
            .to_owned(),
        "tools:".to_owned(),
    ];
    for Proposal { tool, examples } in proposals {
        lines.push(format!("  - name: {}", quoted(tool)));
        lines.push("    examples:".to_owned());
        for example in examples {
            let times = match example.times {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            };
            let request = quoted(&example.request);
            lines.push(format!(
                "      - {request}  # asked {times}; finds {} now",
                quoted(&example.found)
            ));
        }
    }
    lines.join("\n")
}

/// A string that is valid in YAML and JSON, on one line and without control characters. A user's request must not
/// become a variable of the configuration.
fn quoted(text: &str) -> String {
    let text = text.replace("${", "$${");
    haft_text::printable_json(&serde_json::Value::from(text).to_string()).into_owned()
}
