//! `haft log`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use haft::record::{Filter, Follow, LoggedCall, read};
use haft::{Code, Config, Status};
use jiff::Timestamp;

use super::log_shared::{self, shared_configuration};
use super::service::{self, Reply, Request};
use super::{EXIT_RUNTIME, Failure, Global, configuration, log_output, print_json};
use crate::stderr::say;
use crate::terminal::{self, Paint};
use crate::timestamp;
use haft_text::json_text;

/// Interval between reads with `--follow`.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  haft log --status error --since 1h
  haft log --tool get_weather --json
  haft log --follow
  haft log show 0198c2f4-...            one call with its whole input and output
  haft log show 0198c2f4-... --output   only what the tool answered, whole"
)]
pub(super) struct LogArgs {
    #[command(subcommand)]
    command: Option<LogCommand>,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Debug, Subcommand)]
enum LogCommand {
    /// Show calls, or one call with its whole input and output
    Show {
        /// The execution id of one call
        id: Option<String>,
        /// Print only the tool's output, in full
        #[arg(long, requires = "id")]
        output: bool,
        #[command(flatten)]
        filter: FilterArgs,
    },
}

#[derive(Debug, Args)]
struct FilterArgs {
    /// Only calls of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Only calls with this status
    #[arg(long)]
    status: Option<StatusArg>,
    /// Only calls of this session
    #[arg(long)]
    session: Option<String>,
    /// Only calls of tools of this MCP server
    #[arg(long)]
    server: Option<String>,
    /// Only calls of this caller, such as `key:NAME`
    #[arg(long)]
    caller: Option<String>,
    /// Only calls that failed with this error code, such as `Timeout`
    #[arg(long, value_parser = code)]
    code: Option<Code>,
    /// Only calls whose entry contains this text, in any case
    #[arg(long)]
    text: Option<String>,
    /// Only calls since then: a duration such as 2h, a date, or a time such as 2026-01-31T09:00:00Z
    #[arg(long, value_parser = timestamp::parse)]
    since: Option<Timestamp>,
    /// Only calls until then
    #[arg(long, value_parser = timestamp::parse)]
    until: Option<Timestamp>,
    /// Largest number of calls, newest first
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Keep showing new calls
    #[arg(long, short)]
    follow: bool,
    /// The folder of the log, instead of the configuration's
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StatusArg {
    Success,
    Error,
}

fn code(text: &str) -> Result<Code, String> {
    let value = serde_json::Value::String(text.to_owned());
    serde_json::from_value(value).map_err(|error| haft_bounds::parse_error::describe(&error))
}

pub(super) fn run(global: &Global, args: LogArgs) -> anyhow::Result<ExitCode> {
    let (id, only_output, args) = match args.command {
        Some(LogCommand::Show { id, output, filter }) => (id, output, filter),
        None => (None, false, args.filter),
    };
    let filter = Filter {
        execution_id: id.clone(),
        tool: args.tool.clone(),
        status: args.status.map(|status| match status {
            StatusArg::Success => Status::Success,
            StatusArg::Error => Status::Error,
        }),
        session: args.session.clone(),
        server: args.server.clone(),
        caller: args.caller.clone(),
        code: args.code,
        text: args.text.clone(),
        since: args.since,
        until: args.until,
        limit: Some(args.limit),
    };
    // Files that are named are read as they are.
    let shared = if args.dir.is_none() { shared_configuration(global) } else { None };
    let dir = log_dir(global, &args, shared.as_ref())?;
    let following = args.follow.then(|| Follow::new(&dir, filter.clone())).transpose();
    let mut following = following.map_err(unreadable)?;
    let (found, is_complete) = match &shared {
        Some(config) => (of_all_replicas(config, &filter)?, true),
        None => of_files(&dir, &filter)?,
    };
    if let Some(id) = &id {
        return one(global, id, found.first(), only_output);
    }
    print(global, &found, true)?;
    if found.is_empty() && !is_complete && following.is_none() {
        // What was asked for may well be in what could not be read.
        return Ok(ExitCode::from(EXIT_RUNTIME));
    }
    if shared.is_some() && following.is_some() {
        say!("following the calls of this machine; `--follow` does not show other replicas");
    }
    while let Some(follow) = &mut following {
        std::thread::sleep(FOLLOW_EVERY);
        print(global, &follow.poll().map_err(unreadable)?, false)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of the log files.
fn log_dir(global: &Global, args: &FilterArgs, shared: Option<&Config>) -> anyhow::Result<PathBuf> {
    match (&args.dir, shared) {
        (Some(dir), _) if !dir.is_dir() => {
            let message = format!("there is no folder `{}`", dir.display());
            Err(Failure::new(EXIT_RUNTIME, message, "fix `--dir`").into())
        }
        (Some(dir), _) => Ok(dir.clone()),
        (None, Some(config)) => Ok(config.log.dir.value.clone()),
        (None, None) => match service::ask(global, &Request::Status)? {
            Some(Reply::Status(status)) => Ok(PathBuf::from(status.log_dir)),
            Some(_) | None => Ok(configuration(global)?.log.dir.value),
        },
    }
}

fn of_all_replicas(config: &Config, filter: &Filter) -> anyhow::Result<Vec<LoggedCall>> {
    let (calls, malformed) = log_shared::find(config, filter)?;
    warn_about_malformed(malformed);
    Ok(calls)
}

/// The calls in the files, and true if all files could be read.
fn of_files(dir: &Path, filter: &Filter) -> anyhow::Result<(Vec<LoggedCall>, bool)> {
    let mut calls = read(dir, filter).map_err(unreadable)?;
    let mut found = Vec::new();
    let mut is_complete = true;
    for call in calls.by_ref() {
        match call {
            Ok(call) => found.push(call),
            Err(error) => {
                tracing::warn!("{}; the other files are shown", error.problem());
                is_complete = false;
            }
        }
    }
    warn_about_malformed(calls.malformed());
    Ok((found, is_complete))
}

fn warn_about_malformed(lines: u64) {
    if lines > 0 {
        tracing::warn!("{lines} lines of the log cannot be read and are left out");
    }
}

fn one(
    global: &Global,
    id: &str,
    call: Option<&LoggedCall>,
    only_output: bool,
) -> anyhow::Result<ExitCode> {
    let Some(call) = call else {
        let remedy = "`haft log` shows the newest calls with their ids";
        return Err(Failure::new(EXIT_RUNTIME, format!("no call has the id `{id}`"), remedy).into());
    };
    if only_output && call.output.is_none() {
        let problem = format!("the call `{id}` has no output");
        let remedy = format!("`haft log show {id}` shows how it ended");
        return Err(Failure::new(EXIT_RUNTIME, problem, remedy).into());
    }
    match (only_output, global.json) {
        (false, _) => print_json(call)?,
        (true, true) => print_json(&call.output)?,
        (true, false) => terminal::whole(&log_output::text(call)),
    }
    Ok(ExitCode::SUCCESS)
}

fn print(global: &Global, calls: &[LoggedCall], with_head: bool) -> anyhow::Result<()> {
    if global.json {
        for call in calls {
            let line = json_text::compact(&serde_json::to_string(call)?);
            terminal::line(&haft_text::printable_json(&line));
        }
        return Ok(());
    }
    if calls.is_empty() && with_head {
        say!("no calls match");
    }
    let paint = Paint::stdout(global.color);
    for call in calls {
        terminal::line(&row(paint, call));
    }
    Ok(())
}

/// One call on one line: when, how it ended, what, how long, with what.
pub(super) fn row(paint: Paint, call: &LoggedCall) -> String {
    let time = call.timestamp.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let status = match &call.error {
        None => paint.good("ok"),
        Some(error) => paint.bad(&format!("{:?}", error.code)),
    };
    let tool = haft_text::printable(&call.tool);
    let what = match &call.error {
        None => call.input.get().to_owned(),
        Some(error) => {
            format!("{} {}", call.input.get(), error.message.lines().next().unwrap_or_default())
        }
    };
    let what: String = haft_text::printable(&what).chars().take(160).collect();
    let queued =
        if call.queued_ms > 0 { format!(" (+{} queued)", call.queued_ms) } else { String::new() };
    format!(
        "{time} {} {status} {} {}ms{queued} {what}",
        paint.dim(&call.execution_id),
        paint.bold(&tool),
        call.duration_ms,
    )
}

#[allow(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
pub(super) fn unreadable(error: haft::record::LogError) -> Failure {
    Failure::new(EXIT_RUNTIME, error.problem(), error.remedy())
}
