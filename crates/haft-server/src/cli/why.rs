//! `haft why`: the rule that decided on a call, with its place and the values it looked at.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use haft::record::{Filter, LoggedCall, read};

use super::log::unreadable;
use super::log_shared::{self, shared_configuration};
use super::service::{self, Reply, Request};
use super::{EXIT_RUNTIME, Failure, Global, configuration, print_json};
use crate::explanation::Explanation;
use crate::terminal;

#[derive(Debug, Args)]
pub(super) struct WhyArgs {
    /// The execution id of the call, as `haft log` shows it
    id: String,
    /// The folder of the log, instead of the configuration's
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: &WhyArgs) -> anyhow::Result<ExitCode> {
    // Files that are named are read as they are.
    let shared = if args.dir.is_none() { shared_configuration(global) } else { None };
    let found = match &shared {
        Some(config) => log_shared::find(config, &filter(&args.id))?.0.pop(),
        None => of_files(&log_dir(global, args.dir.as_ref())?, &args.id)?,
    };
    let call = found.ok_or_else(|| {
        let remedy = "`haft log` shows the newest calls with their ids";
        Failure::new(EXIT_RUNTIME, format!("no call has the id `{}`", args.id), remedy)
    })?;
    let explanation = Explanation::of(&call);
    if global.json {
        print_json(&explanation)?;
    } else {
        explanation.lines().iter().for_each(|line| terminal::line(line));
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of the log: the given one, that of the running service, or the configuration's.
pub(super) fn log_dir(global: &Global, dir: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    match dir {
        Some(dir) if !dir.is_dir() => {
            let message = format!("there is no folder `{}`", dir.display());
            Err(Failure::new(EXIT_RUNTIME, message, "fix `--dir`").into())
        }
        Some(dir) => Ok(dir.clone()),
        None => match service::ask(global, &Request::Status)? {
            Some(Reply::Status(status)) => Ok(PathBuf::from(status.log_dir)),
            Some(_) | None => Ok(configuration(global)?.log.dir.value),
        },
    }
}

fn filter(id: &str) -> Filter {
    Filter { execution_id: Some(id.to_owned()), limit: Some(1), ..Filter::default() }
}

fn of_files(dir: &std::path::Path, id: &str) -> anyhow::Result<Option<LoggedCall>> {
    let mut found = read(dir, &filter(id)).map_err(unreadable)?;
    Ok(found.next().transpose().map_err(unreadable)?)
}
