//! Requests that are handed on to the server as they are, for whoever stands between it and a client.

use std::sync::Arc;

use haft_mcp::error::INTERNAL_ERROR;
use haft_mcp::{Client, Handler, RequestError, RpcError};
use serde_json::value::RawValue;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::connection::Connection;
use super::events::InCall;
use super::failure;
use super::health::ServerState;
use super::lists::{Lists, Resources};
use super::under_way::Noted;
use crate::error::ToolFailure;
use crate::requester::{Origin, Requester};

impl Connection {
    /// Who answers the server while it works on this call.
    pub(super) fn handler_for(&self, call: &Noted) -> Arc<dyn Handler> {
        Arc::new(InCall { events: Arc::clone(&self.events), caller: call.meant() })
    }

    /// Hands a request on. `params` is a JSON object without `_meta`, `name` what the method is about.
    /// What the server refuses comes as the server wrote it, secrets masked.
    pub async fn forward(
        &self,
        method: &str,
        name: Option<&str>,
        params: &RawValue,
        requester: &Arc<dyn Requester>,
    ) -> Result<Box<RawValue>, RpcError> {
        let mut noted = self.under_way.note(Some(requester), Origin::default());
        let handler = Some(self.handler_for(&noted));
        self.asking(async |client| {
            let answer = client.request(method, name, params, handler).await;
            noted.settle_if_answered(&answer);
            answer
        })
        .await
    }

    /// The resources as they were last seen; asked for where that is not known, or where the server does
    /// not announce changes.
    pub async fn current_resources(&self) -> Result<Arc<Resources>, ToolFailure> {
        let announces = self.ready().is_some_and(|it| it.identity().announces("resources"));
        match self.known_resources().filter(|_| announces) {
            Some(known) => Ok(known),
            None => self.resources().await,
        }
    }

    /// The resources as they were last seen.
    pub fn known_resources(&self) -> Option<Arc<Resources>> {
        self.resources.load_full()
    }

    /// Whether the server declares a capability. A server that starts at first use is known from its
    /// last connection.
    pub fn has(&self, capability: &str) -> bool {
        if let Some(client) = self.ready() {
            return client.identity().can(capability);
        }
        let is_unused = self.health().state == ServerState::Configured;
        let declares = |lists: Arc<Lists>| lists.capabilities.iter().any(|it| it == capability);
        is_unused && self.lists().is_some_and(declares)
    }

    /// Hears of updates of a resource for as long as the guard lives.
    pub async fn watch(self: &Arc<Self>, uri: &str) -> Result<Watched, RpcError> {
        // One after the other: a second one must know whether the server agreed to the first.
        let _turn = self.watching.lock().await;
        let is_first = {
            let mut watched = self.lock_watched();
            let count = watched.entry(uri.to_owned()).or_default();
            *count += 1;
            *count == 1
        };
        let guard = Watched { connection: Arc::clone(self), uri: uri.to_owned() };
        if is_first {
            // Where this fails, the guard takes the note back.
            self.asking(async |client| client.subscribe(uri).await).await?;
        }
        Ok(guard)
    }

    /// Tells a new connection what the old one was asked to watch.
    pub(super) fn watch_again(&self, client: &Arc<Client>) {
        let uris: Vec<String> = self.lock_watched().keys().cloned().collect();
        if uris.is_empty() {
            return;
        }
        let (server, client) = (self.name().to_owned(), Arc::clone(client));
        self.tasks.spawn(async move {
            for uri in uris {
                if let Err(error) = client.subscribe(&uri).await {
                    tracing::warn!(
                        server,
                        "updates of `{uri}` are not announced any more: {error}"
                    );
                }
            }
        });
    }

    fn unwatch(self: &Arc<Self>, uri: &str) {
        let is_last = {
            let mut watched = self.lock_watched();
            match watched.get_mut(uri) {
                Some(count) if *count > 1 => {
                    *count -= 1;
                    false
                }
                Some(_) => watched.remove(uri).is_some(),
                None => false,
            }
        };
        if let Some(client) = self.ready().filter(|_| is_last && !self.stop.is_cancelled()) {
            let uri = uri.to_owned();
            self.tasks.spawn(async move {
                // A server that goes on telling does no harm: nobody listens.
                let _ = client.unsubscribe(&uri).await;
            });
        }
    }

    async fn asking<T>(
        &self,
        ask: impl AsyncFnOnce(&Client) -> Result<T, RequestError>,
    ) -> Result<T, RpcError> {
        let _under_way: TaskTrackerToken = self.used();
        let failed = |failure: ToolFailure| {
            let failure = failure.without_secrets(self.redactor());
            RpcError::new(INTERNAL_ERROR, failure.to_string())
        };
        let client =
            self.client().await.map_err(|reason| failed(failure::unavailable(self, &reason)))?;
        ask(&client).await.map_err(|error| {
            self.note(&client, &error);
            match error {
                RequestError::Rpc(error) => {
                    RpcError { message: self.redactor().text(&error.message).into_owned(), ..error }
                }
                error => failed(failure::of_call(self, self.name(), &error)),
            }
        })
    }
}

/// A resource that is watched.
pub struct Watched {
    connection: Arc<Connection>,
    uri: String,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.connection.unwatch(&self.uri);
    }
}
