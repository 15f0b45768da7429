//! Receives the messages of servers behind the gateway, and answers those without a client.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use haft::extension::UI_EXTENSION;
use haft::oauth::BoxFuture;
use haft::{CallOrigin, Health, HumanInbox, Refusal, ServerHandler, ServerState};
use haft_agent::Sampler;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::people;

/// Notifications that may wait for the gateways.
const NOTIFICATIONS_MAX: usize = 1024;

/// The kind of user interface that passes through to clients (MCP Apps).
const APP_MIME_TYPE: &str = "text/html;profile=mcp-app";

/// Receives messages of a toolbox's servers, and forwards them to the gateways whose clients they concern. Give it to
/// the runtime as its `server_handler`.
#[derive(Clone)]
pub struct Hub {
    notifications: broadcast::Sender<ServerNotification>,
    /// Where people are asked. There is none where the client is all there is.
    inbox: Option<HumanInbox>,
    /// Answers sampling requests if no client does.
    sampler: Arc<ArcSwapOption<Sampler>>,
    /// True if servers with `sampling: ask` need no approval.
    agrees: bool,
}

/// A notification of a server.
#[derive(Debug, Clone)]
pub(super) enum ServerNotification {
    /// A server is connected.
    Connected,
    /// The list of its resources is another one.
    Resources { server: String },
    /// One of its resources is another one.
    Resource { server: String, uri: String },
    /// It does not work, or lacks something.
    Failed { server: String, reason: String },
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            notifications: broadcast::Sender::new(NOTIFICATIONS_MAX),
            inbox: None,
            sampler: Arc::default(),
            agrees: false,
        }
    }
}

impl Hub {
    /// Asks people in `inbox`, which has to be the runtime's own, where no client can be asked.
    pub fn with_inbox(inbox: HumanInbox) -> Self {
        Self { inbox: Some(inbox), ..Self::default() }
    }

    /// Answers servers that ask a model, where no client does, with this one from now on; with none, not at all.
    pub fn set_sampler(&self, sampler: Option<Sampler>) {
        self.sampler.store(sampler.map(Arc::new));
    }

    /// Agrees to every request of servers with `sampling: ask`.
    #[must_use]
    pub fn agreeing(mut self) -> Self {
        self.agrees = true;
        self
    }

    /// Notifies clients of a server that is connected or failed. Give it every change of a server's health.
    pub fn note_health(&self, server: &str, health: &Health) {
        if matches!(health.state, ServerState::Ready | ServerState::Degraded) {
            // Without clients there is no receiver.
            drop(self.notifications.send(ServerNotification::Connected));
        }
        let is_first_failure = match health.state {
            ServerState::Connecting => health.retries == 1,
            ServerState::Unavailable => health.retries == 0,
            ServerState::Degraded => true,
            ServerState::Misconfigured
            | ServerState::Disabled
            | ServerState::Configured
            | ServerState::Ready
            | ServerState::Stopped => false,
        };
        if let Some(reason) = health.reason.as_ref().filter(|_| is_first_failure) {
            let (server, reason) = (server.to_owned(), reason.cause.clone());
            // Without clients there is no receiver.
            drop(self.notifications.send(ServerNotification::Failed { server, reason }));
        }
    }

    /// Returns true if people can be asked beside the clients.
    pub(super) fn asks_people(&self) -> bool {
        self.inbox.is_some()
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<ServerNotification> {
        self.notifications.subscribe()
    }
}

impl ServerHandler for Hub {
    /// Capabilities that some client may have. The client is chosen when a server asks.
    fn capabilities(&self, _: &str) -> Value {
        json!({
            "sampling": {},
            "elicitation": { "form": {}, "url": {} },
            "roots": {},
            "extensions": { UI_EXTENSION: { "mimeTypes": [APP_MIME_TYPE] } },
        })
    }

    /// Of no call that is known, so for those only who answer everything.
    fn approve_sampling<'a>(
        &'a self,
        server: &'a str,
        params: &'a RawValue,
    ) -> BoxFuture<'a, bool> {
        Box::pin(
            async move { self.approve_sampling_for(&CallOrigin::default(), server, params).await },
        )
    }

    fn approve_sampling_for<'a>(
        &'a self,
        call: &'a CallOrigin,
        server: &'a str,
        params: &'a RawValue,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            match &self.inbox {
                _ if self.agrees => true,
                Some(inbox) => people::approve_sampling(inbox, call, server, params).await,
                None => false,
            }
        })
    }

    fn sample<'a>(
        &'a self,
        _: &'a str,
        params: &'a RawValue,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move {
            match self.sampler.load_full() {
                Some(sampler) => sampler.sample(params).await,
                None => Err(Refusal::new("no model is configured (`agent.model`)")),
            }
        })
    }

    fn elicit<'a>(
        &'a self,
        server: &'a str,
        params: &'a RawValue,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move { self.elicit_for(&CallOrigin::default(), server, params).await })
    }

    fn elicit_for<'a>(
        &'a self,
        call: &'a CallOrigin,
        server: &'a str,
        params: &'a RawValue,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move {
            match &self.inbox {
                Some(inbox) => people::elicit(inbox, call, server, params).await,
                None => Err(Refusal::new("no person can be asked")),
            }
        })
    }

    fn on_notification(&self, server: &str, method: &str, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Updated {
            uri: String,
        }
        let server = server.to_owned();
        let notification = match method {
            "notifications/resources/list_changed" => ServerNotification::Resources { server },
            "notifications/resources/updated" => {
                let read = params.and_then(|params| serde_json::from_str(params.get()).ok());
                let Some(Updated { uri }) = read else { return };
                ServerNotification::Resource { server, uri }
            }
            _ => return,
        };
        // Without clients there is no receiver.
        drop(self.notifications.send(notification));
    }
}
