//! Resources of all servers in one list, each read from the server that has it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::mcp_server::{Peer, Subscription};
use haft::{Era, Resources, RpcError};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::timeout;

use super::caller_handle::GatewayClient;
use super::page::{is_first, page};
use super::template::{Reach, matches, may_match};
use super::{Gateway, INVALID_PARAMS, read, result, short_uri};

/// Legacy era: there is no such resource. The modern one has no code of its own for that.
const RESOURCE_NOT_FOUND: i64 = -32002;

/// Pause after servers were queried for an unknown resource.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Resources by server.
type Listed = Vec<(String, Arc<Resources>)>;

#[derive(Deserialize)]
struct ReadParams {
    #[serde(deserialize_with = "short_uri")]
    uri: String,
}

/// Largest number of templates that are compared with a URI on an async worker.
const TEMPLATES_AT_ONCE_MAX: usize = 16;

impl Gateway {
    async fn resources(&self) -> Listed {
        self.runtime.all_resources(|server| self.view.shows_server(server)).await
    }

    /// Waits for servers as the first list of tools does, and for those that had resources in an earlier run: lists of
    /// resources are not kept.
    async fn wait_for_resources(&self) {
        let is_shown = |server: &str| self.view.shows_server(server);
        let with_resources = self.runtime.wait_for_servers_with("resources", is_shown);
        let limit = self.first_list_wait();
        let _ = tokio::join!(self.wait_for_late(), timeout(limit, with_resources));
    }

    /// The servers this endpoint shows that have a capability.
    pub(super) fn servers_with(&self, capability: &str) -> Vec<String> {
        let mut servers = self.runtime.servers_with(capability);
        servers.retain(|server| self.view.shows_server(server));
        servers
    }

    /// A URI that two servers have is the first one's.
    pub(super) async fn list_resources(
        &self,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, RpcError> {
        if is_first(params) {
            self.wait_for_resources().await;
        }
        let listed = self.resources().await;
        let mut taken = HashSet::new();
        let all = listed.iter().flat_map(|(_, server)| &server.resources);
        let shown: Vec<_> = all.filter(|it| taken.insert(&it.uri)).collect();
        page(params, "resources", &shown, |it| &it.uri)
    }

    pub(super) async fn list_templates(
        &self,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, RpcError> {
        if is_first(params) {
            self.wait_for_resources().await;
        }
        let listed = self.resources().await;
        let mut taken = HashSet::new();
        let all = listed.iter().flat_map(|(_, server)| &server.templates);
        let shown: Vec<_> = all.filter(|it| taken.insert(&it.uri_template)).collect();
        page(params, "resourceTemplates", &shown, |it| &it.uri_template)
    }

    pub(super) async fn read_resource(
        &self,
        params: Option<&RawValue>,
        peer: Peer,
    ) -> Result<Box<RawValue>, RpcError> {
        let ReadParams { uri } = read(params)?;
        let era = peer.era();
        let server = self.server_of(&uri).await.ok_or_else(|| not_found(&uri, era))?;
        let params = result(&json!({ "uri": uri }))?;
        let client = Arc::new(GatewayClient(peer)) as _;
        let forwarded =
            self.runtime.forward(&server, "resources/read", Some(&uri), &params, &client).await;
        // Each era has its own word for it.
        forwarded.map_err(|error| match error.code {
            RESOURCE_NOT_FOUND => RpcError { message: error.message, ..not_found(&uri, era) },
            _ => error,
        })
    }

    pub(super) async fn watch_resource(
        &self,
        uri: &str,
        peer: &Peer,
    ) -> Result<Subscription, RpcError> {
        let server = self.server_of(uri).await.ok_or_else(|| not_found(uri, peer.era()))?;
        let watched = self.runtime.watch_resource(&server, uri).await?;
        Ok(Box::new(watched))
    }

    /// The server that has a template.
    pub(super) async fn server_of_template(&self, template: &str) -> Option<String> {
        let listed = self.resources().await;
        let has = |resources: &Resources| {
            resources.templates.iter().any(|it| it.uri_template == template)
        };
        listed.into_iter().find(|(_, resources)| has(resources)).map(|(server, _)| server)
    }

    /// Returns true if servers may be queried for an unknown resource: a client that requests many such must not keep
    /// them busy.
    fn may_ask_again(&self) -> bool {
        let mut asked = self.asked_again.lock();
        let may = asked.is_none_or(|asked| asked.elapsed() >= ASK_AGAIN_AFTER);
        if may {
            *asked = Some(Instant::now());
        }
        may
    }

    /// The server that has a resource. Known lists are enough for most; otherwise all servers are queried again.
    async fn server_of(&self, uri: &str) -> Option<String> {
        let known = self.runtime.known_resources(|server| self.view.shows_server(server));
        let (known, found) = owner(known, uri).await;
        if let Some(server) = found.or_else(|| self.server_of_ui(uri)) {
            return Some(server);
        }
        if !self.may_ask_again() {
            return only(&known);
        }
        let (listed, found) = owner(self.resources().await, uri).await;
        found.or_else(|| only(&listed))
    }
}

/// A server may have more than it lists; where there is only one, it is asked.
fn only(listed: &Listed) -> Option<String> {
    match &listed[..] {
        [(server, _)] => Some(server.clone()),
        _ => None,
    }
}

/// The server of a resource. Many templates that may fit are compared off the async workers.
async fn owner(listed: Listed, uri: &str) -> (Listed, Option<String>) {
    let templates = listed.iter().flat_map(|(_, resources)| &resources.templates);
    let close = templates.filter(|it| may_match(&it.uri_template, uri)).count();
    if close <= TEMPLATES_AT_ONCE_MAX {
        let found = owner_now(&listed, uri);
        return (listed, found);
    }
    let uri = uri.to_owned();
    let look = move || {
        let found = owner_now(&listed, &uri);
        (listed, found)
    };
    // Fails only while the program ends; then nothing is found.
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

fn owner_now(listed: &Listed, uri: &str) -> Option<String> {
    let by_name = |it: &Resources| it.resources.iter().any(|it| it.uri == uri);
    let by_template =
        |it: &Resources, reach| it.templates.iter().any(|it| matches(&it.uri_template, uri, reach));
    let of = |has: &dyn Fn(&Resources) -> bool| {
        listed.iter().find(|(_, resources)| has(resources)).map(|(server, _)| server.clone())
    };
    of(&by_name)
        .or_else(|| of(&|it| by_template(it, Reach::Segment)))
        .or_else(|| of(&|it| by_template(it, Reach::Anything)))
}

fn not_found(uri: &str, era: Era) -> RpcError {
    let code = match era {
        Era::Legacy => RESOURCE_NOT_FOUND,
        Era::Modern => INVALID_PARAMS,
    };
    RpcError {
        data: to_raw_value(&json!({ "uri": uri })).ok(),
        ..RpcError::new(code, format!("Resource not found: {uri}"))
    }
}
