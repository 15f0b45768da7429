//! `haft ps` and `haft cancel`: the calls of the running service.

use std::process::ExitCode;

use clap::Args;
use haft::{CallState, RunningCall};
use jiff::{SignedDuration, Timestamp};

use super::service::{self, Reply, Request};
use super::{EXIT_RUNTIME, Failure, Global, print_json};
use crate::terminal::{self, Paint};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft ps                  the calls that the running service works on
  haft ps --json
  haft cancel 0198c2f4     end one, by its id or the beginning of it")]
pub(super) struct PsArgs {}

#[derive(Debug, Args)]
#[command(after_help = "Example: haft cancel 0198c2f4-2a6b-7c1d-9e3f-5a4b3c2d1e0f

`haft ps` shows the ids. The call ends with the code Cancelled.")]
pub(super) struct CancelArgs {
    /// The execution id of the call, or the beginning of it
    id: String,
}

pub(super) fn run(global: &Global, PsArgs {}: &PsArgs) -> anyhow::Result<ExitCode> {
    let calls = running(global)?;
    if global.json {
        print_json(&calls)?;
        return Ok(ExitCode::SUCCESS);
    }
    if calls.is_empty() {
        terminal::line("no calls are in flight");
        return Ok(ExitCode::SUCCESS);
    }
    let now = Timestamp::now();
    let row = |call: &RunningCall| {
        let state = match call.state {
            CallState::Waiting => "waiting",
            CallState::Running => "running",
        };
        let age = now.duration_since(call.started).max(SignedDuration::ZERO);
        vec![
            call.execution_id.clone(),
            state.to_owned(),
            format!("{:.1} s", age.as_secs_f64()),
            call.caller.clone().unwrap_or_default(),
            call.tool.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = calls.iter().map(row).collect();
    terminal::table(Paint::stdout(global.color), &["ID", "STATE", "AGE", "CALLER", "TOOL"], &rows);
    Ok(ExitCode::SUCCESS)
}

pub(super) fn cancel(global: &Global, args: &CancelArgs) -> anyhow::Result<ExitCode> {
    let calls = running(global)?;
    let mut fitting = calls.iter().filter(|call| call.execution_id.starts_with(&args.id));
    let id = match (fitting.next(), fitting.next()) {
        (Some(call), None) => call.execution_id.clone(),
        (None, _) => return Err(not_running(&args.id).into()),
        (Some(_), Some(_)) => {
            let problem = format!("several calls in flight begin with `{}`", args.id);
            return Err(
                Failure::new(EXIT_RUNTIME, problem, "`haft ps` shows their whole ids").into()
            );
        }
    };
    match service::ask(global, &Request::Cancel { execution_id: id })? {
        Some(Reply::Cancelled(Some(call))) => {
            if global.json {
                print_json(&call)?;
            } else {
                terminal::line(&format!("cancelled {} ({})", call.execution_id, call.tool));
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(Reply::Cancelled(None)) => Err(not_running(&args.id).into()),
        Some(_) => Err(service::unexpected()),
        None => Err(no_service().into()),
    }
}

fn running(global: &Global) -> anyhow::Result<Vec<RunningCall>> {
    match service::ask(global, &Request::Running)? {
        Some(Reply::Running(calls)) => Ok(calls),
        Some(_) => Err(service::unexpected()),
        None => Err(no_service().into()),
    }
}

fn not_running(id: &str) -> Failure {
    let problem = format!("no call `{id}` is in flight");
    Failure::new(
        EXIT_RUNTIME,
        problem,
        "`haft ps` shows those that are, `haft log` those that ended",
    )
}

fn no_service() -> Failure {
    Failure::new(
        EXIT_RUNTIME,
        "no service of this configuration is running",
        "start one with `haft serve`; calls without a service belong to their own command",
    )
}
