//! What hears the servers behind the gateway, and answers those that no client is behind.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use haft::agent::Sampler;
use haft::extension::UI_EXTENSION;
use haft::oauth::BoxFuture;
use haft::{Inbox, Origin, Refusal, ServerHandler};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::people;

/// How much news may wait to be looked at.
const NEWS_MAX: usize = 1024;

/// The kind of user interface that passes through to clients (MCP Apps).
const APP_MIME_TYPE: &str = "text/html;profile=mcp-app";

/// Hears the servers of a toolbox, and tells its gateways what concerns their clients. Give it to the
/// runtime as its `server_handler`.
#[derive(Clone)]
pub struct Hub {
    news: broadcast::Sender<News>,
    /// Where people are asked. There is none where the client is all there is.
    inbox: Option<Inbox>,
    /// What answers servers that ask a model, where no client does.
    sampler: Arc<ArcSwapOption<Sampler>>,
    /// Whether servers with `sampling: ask` need not be asked about.
    agrees: bool,
}

/// Something a server told.
#[derive(Debug, Clone)]
pub(super) enum News {
    /// The list of its resources is another one.
    Resources { server: String },
    /// One of its resources is another one.
    Resource { server: String, uri: String },
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            news: broadcast::Sender::new(NEWS_MAX),
            inbox: None,
            sampler: Arc::default(),
            agrees: false,
        }
    }
}

impl Hub {
    /// Asks people in `inbox`, which has to be the runtime's own, where no client can be asked.
    pub fn with_inbox(inbox: Inbox) -> Self {
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

    /// Whether people can be asked beside the clients.
    pub(super) fn asks_people(&self) -> bool {
        self.inbox.is_some()
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }
}

impl ServerHandler for Hub {
    /// What some client may be able to do. Which one can is seen when a server asks.
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
        Box::pin(async move { self.approve_sampling_for(&Origin::default(), server, params).await })
    }

    fn approve_sampling_for<'a>(
        &'a self,
        call: &'a Origin,
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
        Box::pin(async move { self.elicit_for(&Origin::default(), server, params).await })
    }

    fn elicit_for<'a>(
        &'a self,
        call: &'a Origin,
        server: &'a str,
        params: &'a RawValue,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move {
            match &self.inbox {
                Some(inbox) => people::elicit(inbox, call, server, params).await,
                None => Err(Refusal::new("there is nobody to ask")),
            }
        })
    }

    fn on_notification(&self, server: &str, method: &str, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Updated {
            uri: String,
        }
        let server = server.to_owned();
        let news = match method {
            "notifications/resources/list_changed" => News::Resources { server },
            "notifications/resources/updated" => {
                let read = params.and_then(|params| serde_json::from_str(params.get()).ok());
                let Some(Updated { uri }) = read else { return };
                News::Resource { server, uri }
            }
            _ => return,
        };
        // Nobody listens where there are no clients.
        drop(self.news.send(news));
    }
}
