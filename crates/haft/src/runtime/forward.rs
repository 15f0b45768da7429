//! Requests and lists that a gateway forwards unmodified between servers and its own clients.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft_mcp::error::INVALID_PARAMS;
use haft_mcp::server::ParamHeaders;
use haft_mcp::{PromptDescription, RpcError, ToolDescription};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Runtime;
use crate::backend::mcp::{Connection, ResourceSubscription, Resources};
use crate::caller_handle::CallerHandle;
use crate::error::ToolFailure;
use crate::record::RecordSource;
use crate::registry::ActiveTool;
use crate::registry::{SettingsOrigin, ToolSource};
use crate::tool::ToolDefinition;
use haft_text::human;

/// Time limit for listing the resources of all servers. Slower servers are omitted.
const RESOURCES_WAIT_MAX: Duration = Duration::from_secs(5);

/// An item of a server, or of the toolbox itself.
#[derive(Debug, Clone)]
pub struct Offer<T> {
    /// The server; `None` for a local tool.
    pub server: Option<String>,
    /// The item.
    pub item: T,
}

/// A summary of a tool's registration.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RegistrationInfo {
    /// `source`, and for an MCP tool `mcp_name` and `mcp_mode`.
    #[serde(flatten)]
    pub source: ToolSource,
    /// The origin of its settings: `explicit`, `default` or `merged`.
    pub config_origin: SettingsOrigin,
    /// Maximum number of concurrent calls.
    pub max_instances: Value,
    /// Time limit of one call.
    pub timeout: String,
    /// True if an earlier run saw the tool, and its server is not connected yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
}

/// A tool with its registration.
#[derive(Debug, Clone)]
pub struct ToolOffer {
    /// The server's description of the tool, under the offered name.
    pub description: ToolDescription,
    /// The tool's registration.
    pub registration: RegistrationInfo,
    /// True if only user interfaces call it; models do not see it.
    pub app_only: bool,
}

impl ToolOffer {
    /// The URI of the tool's user interface on the server (MCP Apps).
    pub fn ui_resource(&self) -> Option<&str> {
        let meta = self.description.rest.get("_meta")?;
        let uri = meta.get("ui").and_then(|ui| ui.get("resourceUri"));
        // The older key.
        uri.or_else(|| meta.get("ui/resourceUri"))?.as_str()
    }

    /// The server; `None` for a local tool.
    pub fn server(&self) -> Option<&str> {
        self.registration.source.server()
    }
}

impl Runtime {
    /// Returns the offered tools in their fixed order, as `tools/list` shows them: under the
    /// offered names, with all other fields of their servers.
    pub fn tool_offers(&self) -> Vec<ToolOffer> {
        let snapshot = self.inner.snapshot.load();
        let lists: HashMap<&str, _> = snapshot
            .server_pool
            .all()
            .iter()
            .filter_map(|server| Some((server.name(), snapshot.server_pool.usable_lists(server)?)))
            .collect();
        let rest: HashMap<(&str, &str), _> = lists
            .iter()
            .flat_map(|(server, lists)| lists.tools.iter().map(move |tool| (*server, tool)))
            .map(|(server, tool)| ((server, tool.name.as_str()), &tool.rest))
            .collect();
        let describe = |tool: &Arc<ActiveTool>| {
            let registered = &tool.registered;
            let definition = &registered.definition;
            let server = registered.source.server();
            let rest = server.and_then(|server| rest.get(&(server, definition.name.as_str())));
            let description = ToolDescription {
                name: registered.name.clone(),
                title: definition.title.clone(),
                description: definition.description.clone(),
                input_schema: definition.input_schema.clone(),
                output_schema: definition.output_schema.clone(),
                rest: with_metadata(
                    rest.map(|rest| (*rest).clone()).unwrap_or_default(),
                    definition,
                ),
            };
            let effective = &registered.effective;
            let registration = RegistrationInfo {
                source: registered.source.clone(),
                config_origin: effective.origin,
                max_instances: json!(effective.max_instances.value),
                timeout: human(effective.timeout.value),
                cached: snapshot.is_cached(tool),
            };
            ToolOffer { description, registration, app_only: tool.backend.is_app_only() }
        };
        snapshot.toolbox.tools().map(describe).collect()
    }

    /// Returns true if only user interfaces call the tool of this name.
    pub fn is_app_only(&self, name: &str) -> bool {
        let snapshot = self.inner.snapshot.load();
        snapshot.toolbox.resolve(name).is_some_and(|tool| tool.backend.is_app_only())
    }

    /// Returns true if Haft brings the tool of this name itself.
    pub fn is_builtin(&self, name: &str) -> bool {
        let snapshot = self.inner.snapshot.load();
        snapshot.toolbox.resolve(name).is_some_and(|tool| tool.kind == RecordSource::Builtin)
    }

    /// Passes a tool's server and input schema to `read`, if the tool exists. Copies nothing,
    /// because every call of a client uses it.
    pub fn with_tool<T>(
        &self,
        name: &str,
        look: impl FnOnce(Option<&str>, &Value) -> T,
    ) -> Option<T> {
        let snapshot = self.inner.snapshot.load();
        let tool = snapshot.toolbox.resolve(name)?;
        let registered = &tool.registered;
        Some(look(registered.source.server(), &registered.definition.input_schema))
    }

    /// The arguments of a tool that travel as headers too. Nothing unless `shows` lets through its server (none for a
    /// local tool).
    pub fn param_headers(
        &self,
        name: &str,
        shows: impl FnOnce(Option<&str>) -> bool,
    ) -> Option<ParamHeaders> {
        let snapshot = self.inner.snapshot.load();
        let tool = snapshot.toolbox.resolve(name)?;
        shows(tool.registered.source.server()).then(|| tool.param_headers.clone())
    }

    /// The prompts of every listed server, as the server describes them.
    pub fn prompt_descriptions(&self) -> Vec<Offer<PromptDescription>> {
        let snapshot = self.inner.snapshot.load();
        let of = |server: &Arc<Connection>| {
            let name = server.name().to_owned();
            let lists = snapshot.server_pool.usable_lists(server);
            let prompts = lists.map(|lists| lists.prompts.clone()).unwrap_or_default();
            prompts.into_iter().map(move |item| Offer { server: Some(name.clone()), item })
        };
        snapshot.server_pool.all().iter().flat_map(of).collect()
    }

    /// Lists the resources of these servers concurrently, in the order of the configuration.
    pub async fn all_resources(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<(String, Arc<Resources>)> {
        let mut asking = JoinSet::new();
        for (at, server) in self.with_resources(is_wanted).into_iter().enumerate() {
            asking.spawn(async move {
                let asked = timeout(RESOURCES_WAIT_MAX, server.current_resources()).await;
                let resources = match asked {
                    Ok(Ok(resources)) => resources,
                    Ok(Err(failure)) => {
                        tracing::warn!(
                            server = server.name(),
                            "its resources are left out: {failure}"
                        );
                        return None;
                    }
                    Err(_) => {
                        let text = "its resources are left out: it did not list them in time";
                        tracing::warn!(server = server.name(), "{text}");
                        return None;
                    }
                };
                Some((at, server.name().to_owned(), resources))
            });
        }
        let mut listed: Vec<_> = asking.join_all().await.into_iter().flatten().collect();
        listed.sort_unstable_by_key(|(at, ..)| *at);
        let approved = |server: &str, all| self.approved_resources(server, all);
        listed.into_iter().map(|(_, name, all)| (name.clone(), approved(&name, all))).collect()
    }

    /// Returns the cached resources without a request. Servers that were never listed are absent.
    pub fn known_resources(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<(String, Arc<Resources>)> {
        let known = |it: Arc<Connection>| {
            let resources = self.approved_resources(it.name(), it.known_resources()?);
            Some((it.name().to_owned(), resources))
        };
        self.with_resources(is_wanted).into_iter().filter_map(known).collect()
    }

    /// The names of connected servers with a capability, such as `resources`.
    pub fn servers_with(&self, capability: &str) -> Vec<String> {
        let snapshot = self.inner.snapshot.load();
        let having = snapshot.server_pool.all().iter().filter(|it| it.has(capability));
        having.map(|it| it.name().to_owned()).collect()
    }

    /// Forwards a request (`prompts/get`, `resources/read`, `completion/complete`) to a server.
    /// `params` is a JSON object without `_meta`; `name` is the subject of the method.
    pub async fn forward(
        &self,
        server: &str,
        method: &str,
        name: Option<&str>,
        params: &RawValue,
        caller_handle: &Arc<dyn CallerHandle>,
    ) -> Result<Box<RawValue>, RpcError> {
        let connection = self.server_to_ask(server)?;
        if let Some(prompt) = name.filter(|_| method == "prompts/get") {
            let refused = |failure: ToolFailure| RpcError::new(INVALID_PARAMS, failure.to_string());
            self.check_prompt(&connection, prompt).await.map_err(refused)?;
        }
        connection.forward(method, name, params, caller_handle).await
    }

    /// Subscribes to updates of a resource while the guard lives. The handler is notified.
    pub async fn watch_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<ResourceSubscription, RpcError> {
        self.server_to_ask(server)?.subscribe(uri).await
    }

    fn server_to_ask(&self, server: &str) -> Result<Arc<Connection>, RpcError> {
        let unknown = || RpcError::new(INVALID_PARAMS, format!("no server is named `{server}`"));
        self.inner.snapshot.load().server_pool.find(server).cloned().ok_or_else(unknown)
    }

    fn with_resources(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Arc<Connection>> {
        let snapshot = self.inner.snapshot.load();
        let all = snapshot.server_pool.all().iter();
        all.filter(|it| it.has("resources") && is_wanted(it.name())).cloned().collect()
    }
}

/// Returns the server's extra fields of a tool with the registered metadata.
fn with_metadata(mut rest: Map<String, Value>, definition: &ToolDefinition) -> Map<String, Value> {
    if let Some(annotations) = &definition.annotations {
        rest.insert("annotations".to_owned(), json!(annotations));
    }
    if let Some(icons) = &definition.icons {
        rest.insert("icons".to_owned(), json!(icons));
    }
    rest
}
