//! `haft lock`: what the servers offer, written down, compared and approved.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use haft::lock::Lock;
use haft::{DefinitionChoice, LockStatus, Runtime};
use haft_text::printable;
use serde_json::json;

use super::remedy::command;
use super::toolbox::{self, Purpose, Toolbox};
use super::{EXIT_CONNECT, EXIT_RUNTIME, Failure, Global, block_on, count, print_json};
use crate::terminal::{self, Paint};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  haft lock                           connect the servers and write haft.lock
  haft lock --check                   for CI: exit code 1 if a server differs from haft.lock
  haft lock diff                      explain what differs
  haft lock approve files/read_file   accept one tool as it is now
  haft lock approve files             accept everything of a server

With a haft.lock beside the configuration, definitions that differ from it are blocked: see `policy.definitions`."
)]
pub(super) struct LockArgs {
    #[command(subcommand)]
    command: Option<LockCommand>,
    /// Compare only: exit code 1 if a server differs from the lock file, 3 if one cannot be reached
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Subcommand)]
enum LockCommand {
    /// Explain what differs from the lock file
    Diff,
    /// Accept what differs: everything of a server, or one tool, prompt or resource template
    Approve {
        /// The server, or SERVER/TOOL
        #[arg(value_name = "SERVER[/TOOL]")]
        target: String,
    },
}

pub(super) fn run(global: &Global, args: &LockArgs) -> anyhow::Result<ExitCode> {
    let config = toolbox::with_servers(global, &[])?;
    block_on(async {
        let toolbox = Toolbox::open(config, Purpose::Lock).await?;
        let work = async |runtime: &Runtime| {
            runtime.list_templates().await;
            match &args.command {
                None if args.check => compare(global, runtime, Shows::Check),
                None => write(global, runtime).await,
                Some(LockCommand::Diff) => compare(global, runtime, Shows::Diff),
                Some(LockCommand::Approve { target }) => approve(global, runtime, target).await,
            }
        };
        toolbox.work(work).await
    })
}

/// The purpose of a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    Check,
    Diff,
}

fn compare(global: &Global, runtime: &Runtime, shows: Shows) -> anyhow::Result<ExitCode> {
    let status = runtime.lock_status();
    require_lock(&status)?;
    let has_failed = toolbox::warn_of_failed(global, &runtime.servers());
    if global.json {
        print_json(&status)?;
    } else if status.has_drift() {
        print(global, &status);
    } else {
        terminal::line(&format!("nothing differs from {}", status.file.display()));
    }
    Ok(match shows {
        _ if has_failed => ExitCode::from(EXIT_CONNECT),
        Shows::Check if status.has_drift() => ExitCode::from(EXIT_RUNTIME),
        Shows::Check | Shows::Diff => ExitCode::SUCCESS,
    })
}

async fn write(global: &Global, runtime: &Runtime) -> anyhow::Result<ExitCode> {
    let servers = runtime.servers();
    if toolbox::warn_of_failed(global, &servers) {
        let names = servers.iter().filter(|it| toolbox::failed(it)).map(|it| it.name.as_str());
        let names: Vec<&str> = names.collect();
        let message = format!("nothing was written: {} could not be asked", names.join(", "));
        let remedy = "fix or disable the server, and run `haft lock` again";
        return Err(Failure::new(EXIT_CONNECT, message, remedy).into());
    }
    let before = runtime.lock_status();
    let lock = runtime
        .write_lock()
        .await
        .map_err(|error| Failure::new(EXIT_RUNTIME, error.to_string(), command(&error.remedy())))?;
    let file = before.file.display().to_string();
    if global.json {
        let is_changed = !before.exists || before.has_drift();
        print_json(&json!({
            "file": file, "changed": is_changed, "servers": lock.servers.len(), "tools": tools(&lock),
            "drift": before.drift,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if before.exists && !before.has_drift() {
        terminal::line(&format!("{file} is up to date"));
        return Ok(ExitCode::SUCCESS);
    }
    print(global, &before);
    let has = [count(lock.servers.len(), "server"), count(tools(&lock), "tool")];
    terminal::line(&format!("wrote {file}: {}", has.join(", ")));
    Ok(ExitCode::SUCCESS)
}

async fn approve(global: &Global, runtime: &Runtime, target: &str) -> anyhow::Result<ExitCode> {
    let (server, name) = match target.split_once('/') {
        Some((server, name)) => (server, Some(name)),
        None => (target, None),
    };
    let choice = DefinitionChoice {
        server: server.to_owned(),
        kind: None,
        name: name.map(ToOwned::to_owned),
        hash: None,
    };
    let approved = runtime.approve_definitions(&choice).await;
    let approved = approved
        .map_err(|error| Failure::new(EXIT_RUNTIME, error.to_string(), command(&error.remedy())))?;
    if global.json {
        print_json(&json!({"file": runtime.lock_status().file, "approved": approved}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if approved.is_empty() {
        terminal::line(&format!("nothing of {} differs", printable(target)));
    }
    for drift in &approved {
        terminal::line(&format!("approved {} ({})", drift.title(), drift.summary()));
    }
    Ok(ExitCode::SUCCESS)
}

fn require_lock(status: &LockStatus) -> Result<(), Failure> {
    if status.exists {
        return Ok(());
    }
    let message = format!("there is no lock file `{}`", status.file.display());
    Err(Failure::new(EXIT_RUNTIME, message, "write it with `haft lock`"))
}

fn print(global: &Global, status: &LockStatus) {
    let paint = Paint::stdout(global.color);
    for drift in &status.drift {
        terminal::line(&format!("{}: {}", paint.bold(&drift.title()), drift.summary()));
        for change in &drift.changes {
            terminal::line(&format!("  {}", change.sentence()));
        }
    }
    for server in &status.unlocked {
        terminal::line(&format!("{}: not in the lock file", paint.bold(&printable(server))));
    }
    for server in &status.gone {
        terminal::line(&format!("{}: no longer configured", paint.bold(&printable(server))));
    }
}

fn tools(lock: &Lock) -> usize {
    lock.servers.values().map(|server| server.tools.len()).sum()
}
