//! Subscriptions to updates of resources.

use std::collections::HashMap;
use std::sync::Arc;

use haft_mcp::RpcError;
use parking_lot::{Mutex, MutexGuard};

use super::connection::Connection;
use super::live_client::LiveClient;

/// The subscriptions at one server, across its connections.
#[derive(Default)]
pub(super) struct Subscriptions {
    /// The number of subscribers by URI.
    subscribers: Mutex<HashMap<String, usize>>,
    /// Held during the request, so that a second subscriber knows its result.
    turn: tokio::sync::Mutex<()>,
}

impl Subscriptions {
    /// Adds a subscriber; true for the first one of the URI.
    fn add(&self, uri: &str) -> bool {
        let mut subscribers = self.lock();
        let count = subscribers.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// Removes a subscriber; true for the last one of the URI.
    fn remove(&self, uri: &str) -> bool {
        let mut subscribers = self.lock();
        match subscribers.get_mut(uri) {
            Some(count) if *count > 1 => {
                *count -= 1;
                false
            }
            Some(_) => subscribers.remove(uri).is_some(),
            None => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.subscribers.lock()
    }
}

impl Connection {
    /// Receives updates of a resource, as notifications, for as long as the guard lives.
    pub async fn subscribe(self: &Arc<Self>, uri: &str) -> Result<ResourceSubscription, RpcError> {
        let _turn = self.subscriptions.turn.lock().await;
        let is_first = self.subscriptions.add(uri);
        // Dropped on failure, it removes the subscriber again.
        let guard = ResourceSubscription { connection: Arc::clone(self), uri: uri.to_owned() };
        if is_first {
            self.asking(async |client| client.subscribe(uri).await).await?;
        }
        Ok(guard)
    }

    /// Subscribes a new connection to everything the old one was subscribed to.
    pub(super) fn resubscribe(&self, client: &Arc<LiveClient>) {
        let uris: Vec<String> = self.subscriptions.lock().keys().cloned().collect();
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

    fn unsubscribe(&self, uri: &str) {
        let is_last = self.subscriptions.remove(uri);
        let is_stopped = self.stop_token().is_cancelled();
        if let Some(client) = self.ready().filter(|_| is_last && !is_stopped) {
            let uri = uri.to_owned();
            self.tasks.spawn(async move {
                // A server that keeps sending updates does no harm: they are not forwarded.
                let _ = client.unsubscribe(&uri).await;
            });
        }
    }
}

/// A subscription to one resource, until it is dropped.
pub struct ResourceSubscription {
    connection: Arc<Connection>,
    uri: String,
}

impl Drop for ResourceSubscription {
    fn drop(&mut self) {
        self.connection.unsubscribe(&self.uri);
    }
}
