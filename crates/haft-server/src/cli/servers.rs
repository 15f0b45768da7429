//! `haft servers list`.

use std::process::ExitCode;

use clap::Subcommand;
use haft::ServerInfo;
use serde_json::json;

use super::config::plain;
use super::{Global, configuration, print_json};
use crate::console::{self, Paint};

#[derive(Debug, Subcommand)]
pub(super) enum ServersCommand {
    /// List the configured servers
    List,
}

pub(super) fn run(global: &Global, command: &ServersCommand) -> anyhow::Result<ExitCode> {
    let ServersCommand::List = command;
    let config = configuration(global)?;
    let servers: Vec<ServerInfo> = config.servers.iter().map(ServerInfo::configured).collect();
    if global.json {
        print_json(&servers)?;
        return Ok(ExitCode::SUCCESS);
    }
    if servers.is_empty() {
        console::line("no servers are configured");
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = servers
        .into_iter()
        .map(|server| {
            let state = plain(&json!(server.state));
            vec![
                server.name,
                server.mode.to_string(),
                server.transport.to_owned(),
                server.start.to_string(),
                state,
                server.endpoint,
            ]
        })
        .collect();
    let head = ["SERVER", "MODE", "TRANSPORT", "START", "STATE", "ENDPOINT"];
    console::table(Paint::stdout(global.color), &head, &rows);
    Ok(ExitCode::SUCCESS)
}
