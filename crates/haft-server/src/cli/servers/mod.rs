//! `haft servers list|show|ping|add|remove`.

mod edit;
mod ping;
mod show;

use std::process::ExitCode;

use clap::Subcommand;
use haft::ServerInfo;
use serde_json::json;

use super::config::plain;
use super::service::{self, Reply, Request};
use super::toolbox::{self, Purpose, Toolbox};
use super::{EXIT_CONNECT, Global, block_on, configuration_of_file, print_json};
use crate::terminal::{self, Paint};

pub(super) use ping::ping_all;

#[derive(Debug, Subcommand)]
pub(super) enum ServersCommand {
    /// List the configured servers
    #[command(after_help = "With --connect, exit code 3 means that a server could not be reached.")]
    List {
        /// Connect all of them, also those that start late, and show how each is doing
        #[arg(long)]
        connect: bool,
    },
    /// Connect one server and show everything about it
    #[command(after_help = "Exit code 3 means that it could not be reached.")]
    Show {
        /// The server's name
        #[arg(value_parser = super::parse_name)]
        name: String,
    },
    /// Connect servers and measure how long each takes to answer
    #[command(after_help = "Exit code 1 means that at least one did not answer.")]
    Ping {
        /// The servers' names; all of them if none is given
        names: Vec<String>,
    },
    /// Add a server to haft.yaml
    Add(edit::AddArgs),
    /// Take a server out of haft.yaml
    Remove(edit::RemoveArgs),
}

pub(super) fn run(global: &Global, command: &ServersCommand) -> anyhow::Result<ExitCode> {
    match command {
        ServersCommand::List { connect: false } => list_configured(global),
        ServersCommand::List { connect: true } => list_connected(global),
        ServersCommand::Show { name } => show::run(global, name),
        ServersCommand::Ping { names } => ping::run(global, names),
        ServersCommand::Add(args) => edit::add(global, args),
        ServersCommand::Remove(args) => edit::remove(global, args),
    }
}

fn list_configured(global: &Global) -> anyhow::Result<ExitCode> {
    let servers = if let Some(servers) = from_service(global, &[], false)? {
        servers
    } else {
        let config = configuration_of_file(global)?;
        config.servers.iter().map(ServerInfo::configured).collect()
    };
    let head = ["SERVER", "MODE", "TRANSPORT", "START", "STATE", "ENDPOINT"];
    let row = |server: &ServerInfo| {
        vec![
            server.name.clone(),
            server.mode.to_string(),
            server.transport.to_owned(),
            server.start.to_string(),
            state(server),
            server.endpoint.clone(),
        ]
    };
    print(global, &servers, &head, row)?;
    Ok(ExitCode::SUCCESS)
}

fn list_connected(global: &Global) -> anyhow::Result<ExitCode> {
    let servers = connect(global, &[])?;
    let head = ["SERVER", "STATE", "TOOLS", "PROMPTS", "PROTOCOL", "VERSION", "REASON"];
    let row = |server: &ServerInfo| {
        let identity = server.server.as_ref();
        vec![
            server.name.clone(),
            state(server),
            number(server.tools),
            number(server.prompts),
            identity.map_or_else(none, |identity| identity.protocol_version.clone()),
            version(server),
            server.reason.clone().unwrap_or_default(),
        ]
    };
    print(global, &servers, &head, row)?;
    Ok(exit_code(&servers))
}

fn print(
    global: &Global,
    servers: &[ServerInfo],
    head: &[&str],
    row: impl Fn(&ServerInfo) -> Vec<String>,
) -> anyhow::Result<()> {
    if global.json {
        return print_json(&servers);
    }
    if servers.is_empty() {
        terminal::line("no servers are configured");
        return Ok(());
    }
    let rows: Vec<Vec<String>> = servers.iter().map(row).collect();
    terminal::table(Paint::stdout(global.color), head, &rows);
    Ok(())
}

/// Connects the named servers, or all, and returns their states.
fn connect(global: &Global, names: &[&str]) -> anyhow::Result<Vec<ServerInfo>> {
    if let Some(servers) = from_service(global, names, true)? {
        return Ok(servers);
    }
    let config = toolbox::with_servers(global, names)?;
    block_on(async {
        let toolbox = Toolbox::open(config, Purpose::Servers).await?;
        toolbox.work(async |runtime| Ok(runtime.servers())).await
    })
}

/// The servers of the running service, if there is one.
fn from_service(
    global: &Global,
    names: &[&str],
    connect: bool,
) -> anyhow::Result<Option<Vec<ServerInfo>>> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    match service::ask(global, &Request::Servers { names, connect })? {
        None => Ok(None),
        Some(Reply::Servers(servers)) => Ok(Some(servers)),
        Some(_) => Err(service::unexpected()),
    }
}

fn exit_code(servers: &[ServerInfo]) -> ExitCode {
    if servers.iter().any(toolbox::failed) {
        ExitCode::from(EXIT_CONNECT)
    } else {
        ExitCode::SUCCESS
    }
}

pub(super) fn state(server: &ServerInfo) -> String {
    plain(&json!(server.state))
}

/// The server's own name and version.
fn version(server: &ServerInfo) -> String {
    let Some(identity) = &server.server else { return none() };
    let words: Vec<&str> =
        [&identity.name, &identity.version].into_iter().flatten().map(String::as_str).collect();
    if words.is_empty() { none() } else { words.join(" ") }
}

fn number(count: Option<usize>) -> String {
    count.map_or_else(none, |count| count.to_string())
}

fn none() -> String {
    "-".to_owned()
}
