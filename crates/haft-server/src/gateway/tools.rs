//! Tools: listed in their fixed order, page by page, and called on the one path.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::extension::UI_EXTENSION;
use haft::mcp_server::{Peer, ToolRequest};
use haft::{
    CallAnswer, CallRefusal, Code, Envelope, Era, ErrorBody, RpcError, RpcFailure, Stage, ToolCall,
    ToolDescription, ToolOffer,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::caller_handle::GatewayClient;
use super::content::call_result;
use super::page::{is_first, page};
use super::status::{self, STATUS};
use super::{Gateway, INVALID_PARAMS, result};
use crate::keys::Scope;
use crate::serve::name_of;

/// Key of a tool's `_meta` with its registration.
const REGISTRATION: &str = "haft/registration";
/// Time that a request waits for servers that are being connected, after the first list. Later changes are announced.
pub(crate) const LATE_WAIT_MAX: Duration = Duration::from_secs(5);

/// For tools with `approval: ask`, where the client is the only one there.
const APPROVAL_HINT: &str = "approvals are not possible over stdio: connect the client to `haft serve`, where people approve in the inbox";

/// The JSON-RPC code of a call beyond a rate or quota. The protocol has none for it; this one is in the range that
/// JSON-RPC leaves to servers.
const RATE_LIMITED: i64 = -32029;

/// The callers of the tools that a client lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callers {
    /// A model alone.
    Models,
    /// A model, and user interfaces that the client shows (MCP Apps).
    Apps,
}

impl Callers {
    pub(super) fn of(peer: &Peer) -> Self {
        if peer.has_extension(UI_EXTENSION) { Self::Apps } else { Self::Models }
    }
}

impl Gateway {
    /// The tools this endpoint shows, with those that only user interfaces call where these are meant.
    pub(super) fn tools(&self, callers: Callers) -> Vec<ToolDescription> {
        let status = self.offers_status().then(status::tool);
        let offers = self.runtime.tool_offers().into_iter();
        let is_cut = self.output_bytes_max().is_some();
        offers
            .filter(|it| callers == Callers::Apps || !it.app_only)
            .filter(|it| self.view.shows_tool(it.server(), &it.description.name))
            .map(|offer| described(offer, is_cut))
            .chain(status)
            .collect()
    }

    fn output_bytes_max(&self) -> Option<u64> {
        self.runtime.config().gateway.output_bytes_max.value
    }

    /// Returns true if this endpoint shows models a tool of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        let is_shown = |server: Option<&str>, _: &Value| self.view.shows_tool(server, name);
        self.runtime.with_tool(name, is_shown).unwrap_or(false) && !self.runtime.is_app_only(name)
    }

    /// The server whose tool has its user interface at this URI. Servers need not list such resources.
    pub(super) fn server_of_ui(&self, uri: &str) -> Option<String> {
        let offers = self.runtime.tool_offers();
        let has = |offer: &&ToolOffer| {
            offer.ui_resource() == Some(uri)
                && self.view.shows_tool(offer.server(), &offer.description.name)
        };
        offers.iter().find(has)?.server().map(ToOwned::to_owned)
    }

    /// Waits for servers whose tools no run has seen, until each was tried once: for the first list at most
    /// `gateway.first_list_timeout`, because some clients list only once. Lists that are too old are read again.
    pub(super) async fn wait_for_late(&self) {
        let limit = self.first_list_wait();
        let _ = tokio::join!(
            timeout(limit, self.runtime.wait_for_lists()),
            timeout(LATE_WAIT_MAX, self.runtime.refresh_stale_lists())
        );
    }

    /// The time that a list waits for servers.
    pub(super) fn first_list_wait(&self) -> Duration {
        let limit = self.runtime.config().gateway.first_list_timeout.value;
        let first = self.first_list.get_or_init(Instant::now);
        limit.saturating_sub(first.elapsed()).max(limit.min(LATE_WAIT_MAX))
    }

    pub(super) async fn list_tools(
        &self,
        params: Option<&RawValue>,
        peer: &Peer,
    ) -> Result<Box<RawValue>, RpcError> {
        if is_first(params) {
            self.wait_for_late().await;
            self.report_failed(peer);
        }
        page(params, "tools", &self.tools(Callers::of(peer)), |tool| &tool.name)
    }

    pub(super) async fn call_tool(
        &self,
        tool: ToolRequest,
        peer: Peer,
    ) -> Result<Box<RawValue>, RpcError> {
        let ToolRequest { name, arguments } = tool;
        if name == STATUS && self.offers_status() {
            return self.status();
        }
        let callers = Callers::of(&peer);
        self.run(name, arguments, peer, callers).await
    }

    /// Runs a tool on behalf of a client.
    pub(super) async fn run(
        &self,
        name: String,
        arguments: Option<Arc<RawValue>>,
        peer: Peer,
        callers: Callers,
    ) -> Result<Box<RawValue>, RpcError> {
        let is_filtered = !self.view.is_whole() || self.view.hides_builtin(&name);
        let call = match arguments {
            Some(arguments) => ToolCall::from_json(name, arguments),
            None => ToolCall::from_text(name, "{}"),
        };
        let mut call = call
            .caller(name_of(peer.principal()))
            .owner(peer.principal())
            .output_limit(self.output_bytes_max(), peer.principal())
            .on_behalf_of(Arc::new(GatewayClient(peer.clone())));
        if let Some(scope) = peer.role().and_then(Scope::from_word) {
            call = call.scope(scope.into());
        }
        if let Some(profile) = self.view.profile() {
            call = call.profile(profile);
        }
        if callers == Callers::Models {
            call = call.by_model();
        }
        call =
            if self.asks_people { call.asking_people() } else { call.approval_hint(APPROVAL_HINT) };
        if is_filtered {
            let view = self.view.clone();
            call = call.visible_tools(move |server, name| view.shows_tool(server, name));
        }
        // The era without sessions has nothing that calls would share.
        if peer.era() == Era::Legacy {
            call = call.session(format!("mcp-{:x}", peer.client_id()));
        }
        if peer.wants_progress() {
            call = call
                .on_progress(move |it| peer.progress(it.progress, it.total, it.message.as_deref()));
        }
        let envelope = match self.runtime.call_for_gateway(call).await {
            // Also if it reports a failure.
            CallAnswer::Unmodified(result) => return Ok(result),
            CallAnswer::Envelope(envelope) => *envelope,
        };
        match &envelope.error {
            Some(error) if error.code == Code::UnknownTool => Err(unknown(&envelope.tool)),
            Some(ErrorBody { rpc: Some(failure), .. }) => Err(server_error(failure)),
            Some(error) if error.code == Code::RateLimited => Err(rate_limited(error)),
            Some(_) if !self.asks_people => result(&call_result(&with_remedy(envelope))),
            Some(_) | None => result(&call_result(&envelope)),
        }
    }
}

/// The result of a call that no person could approve, with the remedy in its text: a client sees nothing else.
fn with_remedy(mut envelope: Envelope) -> Envelope {
    if let Some(error) = &mut envelope.error
        && let Stage::Refused(CallRefusal::NotApproved | CallRefusal::DefinitionChanged) =
            error.stage
        && let Some(remedy) = &error.remedy
    {
        error.message = format!("{}; {remedy}", error.message);
    }
    envelope
}

/// Removes the marks of tools that an earlier run saw: a tool that is confirmed is the same tool.
pub(super) fn unmarked(mut tools: Vec<ToolDescription>) -> Vec<ToolDescription> {
    for tool in &mut tools {
        let meta = tool.rest.get_mut("_meta").and_then(|meta| meta.get_mut(REGISTRATION));
        if let Some(Value::Object(registration)) = meta {
            registration.remove("cached");
        }
    }
    tools
}

/// A tool as clients see it: its server's definition, and its registration here.
fn described(offer: ToolOffer, is_cut: bool) -> ToolDescription {
    let ToolOffer { mut description, registration, app_only: _ } = offer;
    // A client would refuse a result that was cut and has no structure any more.
    if is_cut {
        description.output_schema = None;
    }
    // Haft follows tasks of servers itself: clients need not ask for one, and some refuse to call such a tool.
    if let Some(Value::Object(execution)) = description.rest.get_mut("execution") {
        execution.remove("taskSupport");
    }
    let meta = description.rest.entry("_meta").or_insert_with(|| json!({}));
    if let Value::Object(meta) = meta {
        meta.insert(REGISTRATION.to_owned(), json!(registration));
    }
    description
}

fn unknown(tool: &str) -> RpcError {
    RpcError::new(INVALID_PARAMS, format!("Unknown tool: {tool}"))
}

/// The error of a call beyond a rate or quota, with the data that the API answers.
fn rate_limited(error: &ErrorBody) -> RpcError {
    let ErrorBody { code, message, remedy, details, .. } = error;
    let data = json!({"code": code.as_str(), "remedy": remedy, "details": details});
    RpcError { code: RATE_LIMITED, message: message.clone(), data: to_raw_value(&data).ok() }
}

/// The error of a server that rejected the call, as the server wrote it.
fn server_error(failure: &RpcFailure) -> RpcError {
    let RpcFailure { code, message, data } = failure;
    let data = data.as_ref().filter(|data| !data.is_null());
    RpcError {
        code: *code,
        message: message.clone(),
        data: data.and_then(|data| to_raw_value(data).ok()),
    }
}
