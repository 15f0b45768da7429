//! What a gateway hands on between servers and its own clients, as the servers wrote it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft_mcp::error::INVALID_PARAMS;
use haft_mcp::{PromptDescription, RpcError, ToolDescription};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Runtime;
use crate::backend::mcp::{Connection, Resources, Watched};
use crate::error::human;
use crate::registry::ActiveTool;
use crate::registry::{SettingsOrigin, Source};
use crate::requester::Requester;
use crate::tool::ToolDefinition;

/// How long servers may take to say what resources they have. Whoever is slower is left out.
const RESOURCES_WAIT_MAX: Duration = Duration::from_secs(5);

/// Something of a server, or of the toolbox itself.
#[derive(Debug, Clone)]
pub struct Offer<T> {
    /// The server; none for a local tool.
    pub server: Option<String>,
    /// What it is.
    pub item: T,
}

/// How a tool is registered, in short.
#[derive(Debug, Clone, Serialize)]
pub struct Registration {
    /// `source`, and for an MCP tool `mcp_name` and `mcp_mode`.
    #[serde(flatten)]
    pub source: Source,
    /// Whose settings it runs with: `explicit`, `default` or `merged`.
    pub config_origin: SettingsOrigin,
    /// How many calls of it run at once.
    pub max_instances: Value,
    /// How long one may take.
    pub timeout: String,
}

/// A tool with how it is registered.
#[derive(Debug, Clone)]
pub struct ToolOffer {
    /// As its server describes it, under the name it has here.
    pub description: ToolDescription,
    /// How it is registered.
    pub registration: Registration,
    /// Whether only user interfaces call it; models do not see it.
    pub app_only: bool,
}

impl ToolOffer {
    /// Where the server keeps the user interface of the tool (MCP Apps).
    pub fn ui_resource(&self) -> Option<&str> {
        let meta = self.description.rest.get("_meta")?;
        let uri = meta.get("ui").and_then(|ui| ui.get("resourceUri"));
        // The older spelling.
        uri.or_else(|| meta.get("ui/resourceUri"))?.as_str()
    }

    /// The server; none for a local tool.
    pub fn server(&self) -> Option<&str> {
        self.registration.source.server()
    }
}

impl Runtime {
    /// The tools that are offered, in their fixed order, as `tools/list` shows them: under the names
    /// they have here, with everything else their servers say about them.
    pub fn tool_offers(&self) -> Vec<ToolOffer> {
        let snapshot = self.inner.snapshot.load();
        let lists: HashMap<&str, _> = snapshot
            .fleet
            .all()
            .iter()
            .filter_map(|server| Some((server.name(), server.lists()?)))
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
            let registration = Registration {
                source: registered.source.clone(),
                config_origin: effective.origin,
                max_instances: json!(effective.max_instances.value),
                timeout: human(effective.timeout.value),
            };
            ToolOffer { description, registration, app_only: tool.backend.is_app_only() }
        };
        snapshot.toolbox.tools().map(describe).collect()
    }

    /// Whether only user interfaces call a tool of this name.
    pub fn is_app_only(&self, name: &str) -> bool {
        let snapshot = self.inner.snapshot.load();
        snapshot.toolbox.resolve(name).is_some_and(|tool| tool.backend.is_app_only())
    }

    /// Shows whose tool this is, and the schema of its arguments, if there is such a tool. Nothing is
    /// copied: every call of a client comes by here.
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

    /// The prompts of every server that could be asked, as they are listed there.
    pub fn prompt_descriptions(&self) -> Vec<Offer<PromptDescription>> {
        let snapshot = self.inner.snapshot.load();
        let of = |server: &Arc<Connection>| {
            let name = server.name().to_owned();
            let prompts = server.lists().map(|lists| lists.prompts.clone()).unwrap_or_default();
            prompts.into_iter().map(move |item| Offer { server: Some(name.clone()), item })
        };
        snapshot.fleet.all().iter().flat_map(of).collect()
    }

    /// The resources of these servers, in the order of the configuration, all asked at the same time.
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
        listed.into_iter().map(|(_, server, resources)| (server, resources)).collect()
    }

    /// The same as they were last seen, without asking anybody. Servers that were never asked are not in
    /// there.
    pub fn known_resources(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<(String, Arc<Resources>)> {
        let known = |it: Arc<Connection>| Some((it.name().to_owned(), it.known_resources()?));
        self.with_resources(is_wanted).into_iter().filter_map(known).collect()
    }

    /// The names of connected servers that have a capability, such as `resources`.
    pub fn servers_with(&self, capability: &str) -> Vec<String> {
        let snapshot = self.inner.snapshot.load();
        let having = snapshot.fleet.all().iter().filter(|it| it.has(capability));
        having.map(|it| it.name().to_owned()).collect()
    }

    /// Hands a request (`prompts/get`, `resources/read`, `completion/complete`) on to a server. `params`
    /// is a JSON object without `_meta`, `name` what the method is about.
    pub async fn forward(
        &self,
        server: &str,
        method: &str,
        name: Option<&str>,
        params: &RawValue,
        requester: &Arc<dyn Requester>,
    ) -> Result<Box<RawValue>, RpcError> {
        self.server_to_ask(server)?.forward(method, name, params, requester).await
    }

    /// Hears of updates of a resource, through the handler's notifications, while the guard lives.
    pub async fn watch_resource(&self, server: &str, uri: &str) -> Result<Watched, RpcError> {
        self.server_to_ask(server)?.watch(uri).await
    }

    fn server_to_ask(&self, server: &str) -> Result<Arc<Connection>, RpcError> {
        let unknown = || RpcError::new(INVALID_PARAMS, format!("no server is named `{server}`"));
        self.inner.snapshot.load().fleet.find(server).cloned().ok_or_else(unknown)
    }

    fn with_resources(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Arc<Connection>> {
        let snapshot = self.inner.snapshot.load();
        let all = snapshot.fleet.all().iter();
        all.filter(|it| it.has("resources") && is_wanted(it.name())).cloned().collect()
    }
}

/// What a server says about its tool beside its schemas, with the metadata it is registered with.
fn with_metadata(mut rest: Map<String, Value>, definition: &ToolDefinition) -> Map<String, Value> {
    if let Some(annotations) = &definition.annotations {
        rest.insert("annotations".to_owned(), json!(annotations));
    }
    if let Some(icons) = &definition.icons {
        rest.insert("icons".to_owned(), json!(icons));
    }
    rest
}
