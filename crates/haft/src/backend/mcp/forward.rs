//! Requests that are forwarded to the server unmodified, for a gateway between it and a client.

use std::sync::Arc;

use haft_mcp::error::INTERNAL_ERROR;
use haft_mcp::{Client, Handler, RequestError, RpcError};
use serde_json::value::RawValue;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::connection::Connection;
use super::events::InCall;
use super::failure;
use super::health::ServerState;
use super::in_flight::InFlightGuard;
use super::lists::{Lists, Resources};
use crate::caller_handle::{CallOrigin, CallerHandle};
use crate::error::ToolFailure;

impl Connection {
    /// The handler that answers the server while it works on this call.
    pub(super) fn handler_for(&self, call: &InFlightGuard) -> Arc<dyn Handler> {
        Arc::new(InCall { events: Arc::clone(&self.events), caller: call.attribution() })
    }

    /// Forwards a request. `params` is a JSON object without `_meta`, `name` what the method is about. An error of
    /// the server is returned as the server wrote it, secrets masked.
    pub async fn forward(
        &self,
        method: &str,
        name: Option<&str>,
        params: &RawValue,
        caller_handle: &Arc<dyn CallerHandle>,
    ) -> Result<Box<RawValue>, RpcError> {
        let mut call = self.events.in_flight.begin(Some(caller_handle), CallOrigin::default());
        let handler = Some(self.handler_for(&call));
        self.asking(async |client| {
            let answer = client.request(method, name, params, handler).await;
            call.settle_if_answered(&answer);
            answer
        })
        .await
    }

    /// The resources as they were last listed; listed again if they are not known, or if the server does not announce
    /// changes.
    pub async fn current_resources(&self) -> Result<Arc<Resources>, ToolFailure> {
        let announces = self.ready().is_some_and(|it| it.identity().announces("resources"));
        match self.known_resources().filter(|_| announces) {
            Some(known) => Ok(known),
            None => self.resources().await,
        }
    }

    /// The resources as they were last listed.
    pub fn known_resources(&self) -> Option<Arc<Resources>> {
        self.events.resources.load_full()
    }

    /// True if the server declares a capability. A server that starts at first use is known from its last connection.
    pub fn has(&self, capability: &str) -> bool {
        if let Some(client) = self.ready() {
            return client.identity().can(capability);
        }
        let is_unused = self.health().state == ServerState::Configured;
        let declares = |lists: Arc<Lists>| lists.capabilities.iter().any(|it| it == capability);
        is_unused && self.lists().is_some_and(declares)
    }

    pub(super) async fn asking<T>(
        &self,
        ask: impl AsyncFnOnce(&Client) -> Result<T, RequestError>,
    ) -> Result<T, RpcError> {
        let _in_use: TaskTrackerToken = self.in_use();
        let failed = |failure: ToolFailure| {
            let failure = failure.without_secrets(self.redactor());
            RpcError::new(INTERNAL_ERROR, failure.to_string())
        };
        let client =
            self.client().await.map_err(|reason| failed(failure::unavailable(self, &reason)))?;
        ask(&client).await.map_err(|error| {
            self.report_if_lost(&client, &error);
            match error {
                RequestError::Rpc(error) => {
                    RpcError { message: self.redactor().text(&error.message).into_owned(), ..error }
                }
                error => failed(failure::of_call(self, self.name(), &error)),
            }
        })
    }
}
