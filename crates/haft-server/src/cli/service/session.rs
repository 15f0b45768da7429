//! One connection of a command to the service: requests in, responses out.

use std::sync::Arc;

use axum::body::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use haft::live::{Live, LiveStatus};
use haft::record::LogHealth;
use haft::{LoadStats, Runtime, ServerInfo, ToolInfo};
use jiff::Timestamp;
use serde_json::value::RawValue;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use super::call;
use super::protocol::{Frames, Reply, Request, ServiceStatus, VERSION, frames};
use crate::cli::{EXIT_RUNTIME, Failure, prompts, resources, servers, toolbox, tools};
use crate::telemetry::Telemetry;

/// Shared state of the connections.
pub(in crate::cli) struct ServiceContext {
    pub(in crate::cli) live: Live,
    pub(in crate::cli) telemetry: Arc<Telemetry>,
    pub(in crate::cli) started: Timestamp,
    /// The address of the HTTP service.
    pub(in crate::cli) url: String,
}

impl ServiceContext {
    pub(super) fn runtime(&self) -> &Runtime {
        self.live.runtime()
    }
}

/// Answers the requests of a connection, one after the other, until the command leaves or the service stops.
pub(super) async fn serve(context: &ServiceContext, stream: UnixStream, stop: CancellationToken) {
    let mut frames = frames(stream);
    loop {
        let request = tokio::select! {
            () = stop.cancelled() => return,
            request = receive(&mut frames) => request,
        };
        let Some(request) = request else { return };
        let reply = match request {
            Request::Call(request) => {
                // A command that left needs no response.
                let Some(result) = call::run(context, &mut frames, *request).await else { return };
                Reply::Result(Box::new(result))
            }
            request => match answer(context, request).await {
                Ok(reply) => reply,
                Err(failure) => Reply::Failed(failure.into()),
            },
        };
        if send(&mut frames, &reply).await.is_none() {
            return;
        }
    }
}

/// The next request. `None` if the command left or sends something else.
pub(super) async fn receive(frames: &mut Frames) -> Option<Request> {
    let frame = frames.next().await?.ok()?;
    serde_json::from_slice(&frame).ok()
}

pub(super) async fn send(frames: &mut Frames, reply: &Reply) -> Option<()> {
    let text = serde_json::to_vec(reply).ok()?;
    frames.send(Bytes::from(text)).await.ok()
}

async fn answer(context: &ServiceContext, request: Request) -> Result<Reply, Failure> {
    let runtime = context.runtime();
    match request {
        Request::Hello { .. } => Ok(Reply::Welcome { version: VERSION.to_owned() }),
        Request::Tools => {
            runtime.discover().await;
            Ok(Reply::Tools { tools: tools::with_unapproved(runtime), servers: runtime.servers() })
        }
        Request::Tool { name } => Ok(Reply::Tool(tool(runtime, &name).await.map(Box::new))),
        Request::Servers { names, connect } => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            toolbox::require_servers(&names, &runtime.servers())?;
            if connect {
                runtime.discover().await;
            }
            Ok(Reply::Servers(named(runtime.servers(), &names)))
        }
        Request::Ping { names } => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            toolbox::require_servers(&names, &runtime.servers())?;
            runtime.discover().await;
            let servers = named(runtime.servers(), &names);
            Ok(Reply::Pings(servers::ping_all(runtime, &servers).await))
        }
        Request::Prompts { server } => {
            let server = server.as_deref();
            toolbox::require_servers(server.as_slice(), &runtime.servers())?;
            runtime.discover().await;
            let mut prompts = runtime.prompts();
            prompts.retain(|prompt| server.is_none_or(|server| prompt.server == server));
            Ok(Reply::Prompts { prompts, servers: named(runtime.servers(), server.as_slice()) })
        }
        Request::Prompt { server, name, arguments } => {
            let arguments: &RawValue = &arguments;
            let messages = runtime.prompt(&server, &name, arguments).await;
            Ok(Reply::Messages(messages.map_err(prompts::refused)?))
        }
        Request::Resources { server } => {
            let server = server.as_deref();
            toolbox::require_servers(server.as_slice(), &runtime.servers())?;
            runtime.discover().await;
            let servers = named(runtime.servers(), server.as_slice());
            let (resources, refused) = resources::ask(runtime, &servers).await;
            Ok(Reply::Resources { resources, servers, refused })
        }
        Request::ReadResource { server, uri } => {
            let contents = runtime.read_resource(&server, &uri).await;
            Ok(Reply::Contents(contents.map_err(resources::refused)?))
        }
        Request::Status => Ok(Reply::Status(Box::new(status(context)))),
        Request::Running => Ok(Reply::Running(runtime.running())),
        Request::Cancel { execution_id } => {
            let running = runtime.running().into_iter();
            let call = running.into_iter().find(|call| call.execution_id == execution_id);
            Ok(Reply::Cancelled(call.filter(|call| runtime.cancel(&call.execution_id))))
        }
        Request::Call(_) | Request::Answer { .. } | Request::CancelCall => {
            let remedy = "restart the service, so that both are the same version of Haft";
            Err(Failure::new(EXIT_RUNTIME, "the request does not fit its connection", remedy))
        }
    }
}

/// A tool. Servers that start late are connected if the tool is not known yet.
async fn tool(runtime: &Runtime, name: &str) -> Option<ToolInfo> {
    if let Some(tool) = runtime.tool(name) {
        return Some(tool);
    }
    runtime.discover().await;
    runtime.tool(name)
}

/// The servers of these names, or all.
fn named(mut servers: Vec<ServerInfo>, names: &[&str]) -> Vec<ServerInfo> {
    servers.retain(|server| names.is_empty() || names.contains(&server.name.as_str()));
    servers
}

fn status(context: &ServiceContext) -> ServiceStatus {
    let runtime = context.runtime();
    let config = runtime.config();
    let LoadStats { in_flight, waiting, max_concurrent, .. } = runtime.load_stats();
    let LiveStatus { problem, waiting_for_restart, .. } = context.live.status();
    ServiceStatus {
        version: VERSION.to_owned(),
        pid: std::process::id(),
        started: format!("{:.0}", context.started),
        url: context.url.clone(),
        files: config.files.iter().map(|file| file.name.to_string()).collect(),
        state_dir: config.state_dir.value.display().to_string(),
        log_dir: config.log.dir.value.display().to_string(),
        tools: runtime.tools().len(),
        servers: runtime.servers(),
        calls_in_flight: in_flight,
        calls_waiting: waiting,
        max_concurrent,
        questions: runtime.inbox().open().len(),
        files_problem: problem.map(|problem| problem.text),
        waiting_for_restart,
        log_problem: match runtime.log_health() {
            Some(LogHealth::Failing { problem, .. }) => Some(problem.problem()),
            Some(LogHealth::Working { low_space, .. }) => low_space.map(|it| it.to_string()),
            None => None,
        },
    }
}
