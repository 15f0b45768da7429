//! The toolbox as an MCP server: what it offers to clients, whatever carries their messages.
//!
//! Every call takes the one path of `haft::call`, so limits, checks and the log hold for clients too.

mod caller_handle;
mod completion;
mod content;
mod endpoints;
mod follow;
mod http;
mod hub;
mod page;
mod people;
mod prompts;
mod resources;
mod search;
mod status;
mod template;
mod tools;
mod view;

use haft_bounds::parse_error::describe;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use haft::config::choices::Surface;
use haft::extension::UI_EXTENSION;
use haft::mcp_server::{
    About, Change, ClientRequest, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, ParamHeaders,
    Peer, Service, Subscription,
};
use haft::oauth::BoxFuture;
use haft::{INSTRUCTIONS_BYTES_MAX, NAME_BYTES_MAX, RpcError, Runtime};
use parking_lot::Mutex;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize as _, Deserializer};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::broadcast;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub use http::Mount;
pub use hub::Hub;
use status::ReportedSessions;
pub(crate) use tools::LATE_WAIT_MAX;
pub use view::View;

/// The longest URI of a resource or template that is looked up.
const URI_BYTES_MAX: usize = 8 * 1024;
/// Changes that may wait for a slow client; one that missed some requests every list again.
const CHANGES_MAX: usize = 256;

/// Time that the first answer to a client waits for connecting servers: it contains their instructions.
const INSTRUCTIONS_WAIT_MAX: Duration = Duration::from_secs(2);

/// A toolbox as MCP clients see it.
pub struct Gateway {
    runtime: Runtime,
    view: View,
    /// True if people are asked to approve calls, beside the client's own user.
    asks_people: bool,
    changes: broadcast::Sender<Change>,
    /// The last query of servers for an unknown resource.
    asked_again: Mutex<Option<Instant>>,
    /// The time of the first request for a list.
    first_list: OnceLock<Instant>,
    reported: Mutex<ReportedSessions>,
    _following: DropGuard,
}

impl Gateway {
    /// Offers the part of the toolbox that `view` shows. `hub` receives its servers' messages. `tasks` waits for the
    /// tasks it starts. Needs a tokio runtime around it.
    pub fn new(runtime: Runtime, view: View, hub: &Hub, tasks: &TaskTracker) -> Arc<Self> {
        let end = CancellationToken::new();
        let changes = broadcast::Sender::new(CHANGES_MAX);
        let gateway = Arc::new(Self {
            runtime,
            view,
            asks_people: hub.asks_people(),
            changes,
            asked_again: Mutex::default(),
            first_list: OnceLock::new(),
            reported: Mutex::default(),
            _following: end.clone().drop_guard(),
        });
        let following = follow::follow(Arc::downgrade(&gateway), hub.listen());
        tasks.spawn(async move {
            let _ = end.run_until_cancelled(following).await;
        });
        gateway
    }

    /// Instructions of the toolbox: Haft's own for its surface, servers that failed, then those of the servers it shows.
    fn instructions(&self) -> Option<String> {
        let own = match self.view.surface() {
            Surface::All => None,
            Surface::Search => Some(search::INSTRUCTIONS.to_owned()),
        };
        let shows = |server: &str| self.view.shows_server(server);
        let of_servers = self.runtime.server_instructions(INSTRUCTIONS_BYTES_MAX, shows);
        let all: Vec<String> =
            own.into_iter().chain(self.failed_line()).chain(of_servers).collect();
        (!all.is_empty()).then(|| all.join("\n\n"))
    }

    async fn answer(&self, request: ClientRequest) -> Result<Box<RawValue>, RpcError> {
        let ClientRequest { method, params, tool, peer } = request;
        let params = params.as_deref();
        if let Some(tool) = tool {
            check_length("name", &tool.name, NAME_BYTES_MAX)
                .map_err(|problem| invalid(&problem))?;
            return match self.view.surface() {
                Surface::All => self.call_tool(tool, peer).await,
                Surface::Search => self.call_search_tool(tool, peer).await,
            };
        }
        match &*method {
            "tools/list" => match self.view.surface() {
                Surface::All => self.list_tools(params, &peer).await,
                Surface::Search => self.list_search_tools(params),
            },
            "prompts/list" => self.list_prompts(params).await,
            "prompts/get" => self.get_prompt(params, peer).await,
            "resources/list" => self.list_resources(params).await,
            "resources/templates/list" => self.list_templates(params).await,
            "resources/read" => self.read_resource(params, peer).await,
            "completion/complete" => self.complete(params, peer).await,
            _ => {
                let text = format!("Method not found: {method}");
                Err(RpcError::new(METHOD_NOT_FOUND, text))
            }
        }
    }
}

impl Service for Gateway {
    fn about(self: Arc<Self>) -> BoxFuture<'static, About> {
        Box::pin(async move {
            // A server that does not answer must not keep clients waiting.
            let _ = timeout(INSTRUCTIONS_WAIT_MAX, self.runtime.wait_for_servers()).await;
            About {
                name: "haft".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                capabilities: json!({
                    "tools": { "listChanged": true },
                    "prompts": { "listChanged": true },
                    "resources": { "listChanged": true, "subscribe": true },
                    "completions": {},
                    "logging": {},
                    "extensions": { UI_EXTENSION: {} },
                }),
                instructions: self.instructions(),
            }
        })
    }

    fn request(
        self: Arc<Self>,
        request: ClientRequest,
    ) -> BoxFuture<'static, Result<Box<RawValue>, RpcError>> {
        Box::pin(async move { self.answer(request).await })
    }

    fn subscribe(
        self: Arc<Self>,
        uri: String,
        peer: Peer,
    ) -> BoxFuture<'static, Result<Subscription, RpcError>> {
        Box::pin(async move { self.watch_resource(&uri, &peer).await })
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    fn param_headers(&self, tool: &str) -> Option<ParamHeaders> {
        if self.view.surface() == Surface::Search {
            return None;
        }
        self.runtime.param_headers(tool, |server| self.view.shows_tool(server, tool))
    }
}

/// Reads a name. One that is longer than any is refused before it is looked up.
fn short_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    limited(deserializer, "name", NAME_BYTES_MAX)
}

/// Reads a URI, likewise.
fn short_uri<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    limited(deserializer, "URI", URI_BYTES_MAX)
}

fn limited<'de, D: Deserializer<'de>>(
    deserializer: D,
    what: &str,
    bytes_max: usize,
) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    check_length(what, &text, bytes_max).map_err(D::Error::custom)?;
    Ok(text)
}

fn check_length(what: &str, text: &str, bytes_max: usize) -> Result<(), String> {
    let bytes = text.len();
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(format!("the {what} has {bytes} bytes, and at most {bytes_max} are looked up"))
}

/// The parameters of a request.
fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|error| invalid(&describe(&error)))
}

fn invalid(problem: &impl ToString) -> RpcError {
    RpcError::new(INVALID_PARAMS, format!("Invalid params: {}", problem.to_string()))
}

/// A result of ours as JSON.
fn result(value: &impl serde::Serialize) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(value).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))
}
