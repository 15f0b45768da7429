//! `haft resources list|read`.

mod read;

use std::process::ExitCode;

use clap::Subcommand;
use haft::{ResourceInfo, Runtime, ServerInfo, ToolFailure};

use super::service::{self, FailureBody, RefusedList, Reply, Request};
use super::toolbox::{self, Purpose, Toolbox};
use super::{EXIT_CONNECT, Failure, Global, block_on, print_json};
use crate::terminal::{self, Paint};

#[derive(Debug, Subcommand)]
pub(super) enum ResourcesCommand {
    /// List the resources of the servers, and the templates for resources that are not listed
    List {
        /// Only this server's; no other is connected
        #[arg(long)]
        server: Option<String>,
    },
    /// Print a resource
    #[command(after_help = "Example: haft resources read file:///logo.png --output logo.png")]
    Read(read::ReadArgs),
}

pub(super) fn run(global: &Global, command: &ResourcesCommand) -> anyhow::Result<ExitCode> {
    match command {
        ResourcesCommand::List { server } => list(global, server.as_deref()),
        ResourcesCommand::Read(args) => read::run(global, args),
    }
}

/// The listed resources, and the servers that could not be queried.
struct Listed {
    resources: Vec<ResourceInfo>,
    servers: Vec<ServerInfo>,
    refused: Vec<RefusedList>,
}

/// Asks the service for its resources, or starts the servers.
fn listed(global: &Global, server: Option<&str>) -> anyhow::Result<Listed> {
    let request = Request::Resources { server: server.map(ToOwned::to_owned) };
    if let Some(reply) = service::ask(global, &request)? {
        let Reply::Resources { resources, servers, refused } = reply else {
            return Err(service::unexpected());
        };
        return Ok(Listed { resources, servers, refused });
    }
    let config = toolbox::with_servers(global, server.as_slice())?;
    block_on(async {
        let toolbox = Toolbox::open(config, Purpose::Inspect).await?;
        toolbox.work(async |runtime| Ok(list_all(runtime).await)).await
    })
}

async fn list_all(runtime: &Runtime) -> Listed {
    let servers = runtime.servers();
    let (resources, refused) = ask(runtime, &servers).await;
    Listed { resources, servers, refused }
}

/// Asks those of `servers` that are connected for their resources.
pub(super) async fn ask(
    runtime: &Runtime,
    servers: &[ServerInfo],
) -> (Vec<ResourceInfo>, Vec<RefusedList>) {
    let reached = servers.iter().filter(|server| toolbox::answers(server));
    let names = reached.map(|server| server.name.clone()).collect();
    let answers = toolbox::ask_each(names, |server| {
        let runtime = runtime.clone();
        async move { runtime.resources(&server).await }
    });
    let (mut resources, mut refusals) = (Vec::new(), Vec::new());
    for (server, answer) in answers.await {
        match answer {
            Ok(more) => resources.extend(more),
            Err(failure) => {
                // The plain text, without the tool that a call would have.
                let message = failure.to_string();
                let failure = toolbox::refused(failure, "fix the server");
                let failure = FailureBody { message, ..failure.into() };
                refusals.push(RefusedList { server, failure });
            }
        }
    }
    (resources, refusals)
}

pub(super) fn refused(failure: ToolFailure) -> Failure {
    toolbox::refused(failure, "`haft resources list` shows what there is")
}

fn list(global: &Global, server: Option<&str>) -> anyhow::Result<ExitCode> {
    let Listed { resources, servers, refused } = listed(global, server)?;
    let mut is_incomplete = toolbox::warn_of_failed(global, &servers);
    for RefusedList { server, failure } in refused {
        is_incomplete = true;
        let message = format!("the resources of `{server}` are not listed: {}", failure.message);
        let remedy = failure.remedy.unwrap_or_default();
        terminal::warning(Paint::stderr(global.color), &message, &remedy);
    }
    if global.json {
        print_json(&resources)?;
    } else if resources.is_empty() {
        terminal::line("no resources");
    } else {
        let rows: Vec<Vec<String>> = resources.iter().map(row).collect();
        let head = ["URI", "SERVER", "TYPE", "NAME"];
        terminal::table(Paint::stdout(global.color), &head, &rows);
    }
    let is_failed = is_incomplete && resources.is_empty();
    Ok(if is_failed { ExitCode::from(EXIT_CONNECT) } else { ExitCode::SUCCESS })
}

fn row(resource: &ResourceInfo) -> Vec<String> {
    let kind = |mime_type: &Option<String>| mime_type.clone().unwrap_or_else(|| "-".to_owned());
    match resource {
        ResourceInfo::Resource { server, resource } => vec![
            resource.uri.clone(),
            server.clone(),
            kind(&resource.mime_type),
            resource.name.clone(),
        ],
        ResourceInfo::Template { server, template } => vec![
            template.uri_template.clone(),
            server.clone(),
            kind(&template.mime_type),
            template.name.clone(),
        ],
    }
}
