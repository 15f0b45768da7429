//! Requests to a server beside calls of tools: ping, prompts, resources.

use std::sync::Arc;

use haft_bounds::heavy;
use haft_mcp::{Client, RequestError};
use serde_json::value::RawValue;

use super::connection::Connection;
use super::lists::Resources;
use super::{convert, failure};
use crate::content::{Content, Message};
use crate::error::ToolFailure;

impl Connection {
    /// Pings the server; connects it if necessary.
    pub async fn ping(&self) -> Result<(), ToolFailure> {
        self.with_client("ping", async |client| client.ping().await).await
    }

    /// A prompt with its arguments filled in.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawValue,
    ) -> Result<Vec<Message>, ToolFailure> {
        self.with_client(name, async |client| {
            let raw = client.get_prompt(name, arguments).await?;
            heavy::run(raw.get().len(), move || convert::prompt_messages(&raw)).await
        })
        .await
    }

    /// The resources and templates the server has now.
    pub async fn resources(&self) -> Result<Arc<Resources>, ToolFailure> {
        let mut resources =
            self.with_client("resources", async |client| Resources::load(client).await).await?;
        resources.mask(&self.context.descriptions);
        let resources = Arc::new(resources);
        self.events.resources.store(Some(Arc::clone(&resources)));
        Ok(resources)
    }

    /// The content of a resource.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<Content>, ToolFailure> {
        self.with_client(uri, async |client| {
            let raw = client.read_resource(uri).await?;
            heavy::run(raw.get().len(), move || convert::resource_contents(&raw)).await
        })
        .await
    }

    async fn with_client<T>(
        &self,
        what: &str,
        ask: impl AsyncFnOnce(&Client) -> Result<T, RequestError>,
    ) -> Result<T, ToolFailure> {
        let _in_use = self.in_use();
        let _in_flight = self.events.in_flight.begin_own();
        let client = self.client().await.map_err(|reason| failure::unavailable(self, &reason))?;
        ask(&client).await.map_err(|error| {
            self.report_if_lost(&client, &error);
            failure::of_call(self, what, &error).without_secrets(&self.context.redactor)
        })
    }
}
