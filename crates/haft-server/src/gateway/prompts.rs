//! Prompts of all servers in one list.

use std::collections::HashSet;
use std::sync::Arc;

use haft::mcp_server::Peer;
use haft::{PromptDescription, RpcError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::caller_handle::GatewayClient;
use super::page::{is_first, page};
use super::{Gateway, invalid, read, result, short_name};

/// A prompt under the name it has here.
pub(super) struct Shown {
    pub(super) listed: PromptDescription,
    pub(super) server: String,
    /// Its name there.
    pub(super) name: String,
}

#[derive(Deserialize)]
struct GetParams {
    #[serde(deserialize_with = "short_name")]
    name: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

/// The same for the server, the arguments as they came.
#[derive(Serialize)]
struct Forwarded<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
}

impl Gateway {
    /// The prompts this endpoint shows. Where two servers have one of the same name, the later one is
    /// shown as `server__name`.
    pub(super) fn prompts(&self) -> impl Iterator<Item = Shown> {
        let offers = self.runtime.prompt_descriptions().into_iter();
        let mut taken = HashSet::new();
        offers.filter_map(move |offer| {
            let server = offer.server.filter(|server| self.view.shows_server(server))?;
            let name = offer.item.name.clone();
            let mut listed = offer.item;
            if !taken.insert(listed.name.clone()) {
                listed.name = format!("{server}__{name}");
                // A server may name its prompt like that itself; then there is no name left.
                taken.insert(listed.name.clone()).then_some(())?;
            }
            Some(Shown { listed, server, name })
        })
    }

    pub(super) fn prompt(&self, name: &str) -> Result<Shown, RpcError> {
        let unknown = || invalid(&format!("unknown prompt `{name}`"));
        self.prompts().find(|prompt| prompt.listed.name == name).ok_or_else(unknown)
    }

    pub(super) async fn list_prompts(
        &self,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, RpcError> {
        if is_first(params) {
            self.wait_for_late().await;
        }
        let prompts: Vec<_> = self.prompts().map(|prompt| prompt.listed).collect();
        page(params, "prompts", &prompts, |prompt| &prompt.name)
    }

    pub(super) async fn get_prompt(
        &self,
        params: Option<&RawValue>,
        peer: Peer,
    ) -> Result<Box<RawValue>, RpcError> {
        let GetParams { name, arguments } = read(params)?;
        let Shown { server, name, .. } = self.prompt(&name)?;
        let params = result(&Forwarded { name: &name, arguments: arguments.as_deref() })?;
        let client = Arc::new(GatewayClient(peer)) as _;
        self.runtime.forward(&server, "prompts/get", Some(&name), &params, &client).await
    }
}
