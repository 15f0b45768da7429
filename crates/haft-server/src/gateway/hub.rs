//! What hears the servers behind the gateway.

use haft::ServerHandler;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// How much news may wait to be looked at.
const NEWS_MAX: usize = 1024;

/// Hears the servers of a toolbox, and tells its gateways what concerns their clients. Give it to the
/// runtime as its `server_handler`.
#[derive(Debug, Clone)]
pub struct Hub(broadcast::Sender<News>);

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
        Self(broadcast::Sender::new(NEWS_MAX))
    }
}

impl Hub {
    pub(super) fn listen(&self) -> broadcast::Receiver<News> {
        self.0.subscribe()
    }
}

impl ServerHandler for Hub {
    /// What some client may be able to do. Which one can is seen when a server asks.
    fn capabilities(&self, _: &str) -> Value {
        json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} }, "roots": {} })
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
        drop(self.0.send(news));
    }
}
