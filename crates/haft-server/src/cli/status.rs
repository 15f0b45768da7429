//! `haft status`: the running service at a glance, or that there is none.

use std::process::ExitCode;

use clap::Args;
use haft::ServerInfo;
use serde_json::json;

use super::service::{self, Reply, Request, ServiceStatus};
use super::{Global, configuration, count, print_json, servers, toolbox};
use crate::terminal::{self, Paint};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft status
  haft status --json

Starts nothing. Without a running service it shows what is configured.")]
pub(super) struct StatusArgs {}

pub(super) fn run(global: &Global, StatusArgs {}: &StatusArgs) -> anyhow::Result<ExitCode> {
    match service::ask(global, &Request::Status)? {
        Some(Reply::Status(status)) => running(global, &status),
        Some(_) => Err(service::unexpected()),
        None => configured(global),
    }
}

fn running(global: &Global, status: &ServiceStatus) -> anyhow::Result<ExitCode> {
    if global.json {
        print_json(&json!({"service": status}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = Paint::stdout(global.color);
    let ServiceStatus { version, pid, started, url, files, state_dir, log_dir, .. } = status;
    let mut lines = vec![
        (
            "service",
            format!("{} Haft {version}, process {pid}, since {started}", paint.good("running:")),
        ),
        ("url", url.clone()),
        ("files", files.join(", ")),
        ("state", state_dir.clone()),
        ("log", status.log_problem.clone().unwrap_or_else(|| log_dir.clone())),
        ("tools", status.tools.to_string()),
        ("servers", summary(&status.servers)),
        (
            "calls",
            format!(
                "{} in flight, {} waiting, {} at once",
                status.calls_in_flight, status.calls_waiting, status.max_concurrent
            ),
        ),
        ("questions", format!("{} waiting for a person", status.questions)),
    ];
    let pending = &status.waiting_for_restart;
    if !pending.is_empty() {
        lines.insert(3, ("restart", format!("needed by the changes of {}", pending.join(", "))));
    }
    if let Some(problem) = &status.files_problem {
        let text = format!("{} the state before is in use: {problem}", paint.bad("not loaded:"));
        lines.insert(3, ("problem", text));
    }
    print(paint, &lines);
    Ok(ExitCode::SUCCESS)
}

fn configured(global: &Global) -> anyhow::Result<ExitCode> {
    let config = configuration(global)?;
    let files: Vec<&str> = config.files.iter().map(|file| &*file.name).collect();
    if global.json {
        print_json(&json!({
            "service": null, "files": files, "state_dir": config.state_dir.value,
            "log_dir": config.log.dir.value, "servers": config.servers.len(),
            "local_tools": config.local.len(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = Paint::stdout(global.color);
    let files = if files.is_empty() { "none".to_owned() } else { files.join(", ") };
    let lines = [
        ("service", format!("{} `haft serve` starts one", paint.dim("not running:"))),
        ("files", files),
        ("state", config.state_dir.value.display().to_string()),
        ("log", config.log.dir.value.display().to_string()),
        ("servers", count(config.servers.len(), "server") + " configured"),
        ("tools", count(config.local.len(), "local tool") + " configured"),
    ];
    print(paint, &lines);
    Ok(ExitCode::SUCCESS)
}

fn print(paint: Paint, lines: &[(&str, String)]) {
    for (what, text) in lines {
        terminal::line(&format!("{} {text}", paint.dim(&format!("{what:<10}"))));
    }
}

/// `2 of 3 ready; wiki: unavailable`
fn summary(all: &[ServerInfo]) -> String {
    let ready = all.iter().filter(|server| toolbox::answers(server)).count();
    let mut text = format!("{ready} of {} ready", all.len());
    for server in all.iter().filter(|server| !toolbox::answers(server)) {
        text = format!("{text}; {}: {}", server.name, servers::state(server));
    }
    text
}
