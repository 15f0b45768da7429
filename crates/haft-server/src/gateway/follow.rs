//! Notifies clients of changes: compares snapshots of their lists.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Weak;

use haft::mcp_server::Change;
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::Gateway;
use super::hub::ServerNotification;
use super::status::failure_message;
use super::tools::unmarked;

/// Follows the toolbox for as long as the gateway lives.
pub(super) async fn follow(
    gateway: Weak<Gateway>,
    mut notifications: broadcast::Receiver<ServerNotification>,
) {
    let Some(first) = gateway.upgrade() else { return };
    let mut changes = first.runtime.changes();
    let mut seen = Seen::of(&first);
    drop(first);
    loop {
        let told = tokio::select! {
            replaced = changes.changed() => match replaced {
                Ok(()) => None,
                Err(_) => return,
            },
            received = notifications.recv() => match received {
                Ok(notification) => Some(notification),
                // What was missed may have been anything.
                Err(RecvError::Lagged(_)) => None,
                Err(RecvError::Closed) => return,
            },
        };
        let Some(gateway) = gateway.upgrade() else { return };
        match told {
            // The lists of a server that connects may be those that an earlier run saw; its resources are new.
            None | Some(ServerNotification::Connected) => {
                let now = Seen::of(&gateway);
                now.tell(&seen, &gateway);
                seen = now;
            }
            Some(notification) => gateway.pass_on(notification),
        }
    }
}

/// A fingerprint of the lists that clients saw.
#[derive(PartialEq)]
struct Seen {
    tools: u64,
    prompts: u64,
    servers_with_resources: Vec<String>,
}

impl Seen {
    fn of(gateway: &Gateway) -> Self {
        Self {
            tools: digest(&unmarked(gateway.listed_tools())),
            prompts: digest(&gateway.prompts().map(|it| it.listed).collect::<Vec<_>>()),
            servers_with_resources: gateway.servers_with("resources"),
        }
    }

    fn tell(&self, before: &Self, gateway: &Gateway) {
        if self.tools != before.tools {
            gateway.tell(Change::Tools);
        }
        if self.prompts != before.prompts {
            gateway.tell(Change::Prompts);
        }
        if self.servers_with_resources != before.servers_with_resources {
            gateway.tell(Change::Resources);
        }
    }
}

impl Gateway {
    fn pass_on(&self, notification: ServerNotification) {
        match notification {
            ServerNotification::Resources { server } if self.view.shows_server(&server) => {
                self.tell(Change::Resources);
            }
            ServerNotification::Resource { server, uri } if self.view.shows_server(&server) => {
                self.tell(Change::Resource(uri.into()));
            }
            ServerNotification::Failed { server, reason } if self.view.shows_server(&server) => {
                if !self.reported.lock().is_empty() {
                    self.tell(Change::Log(failure_message(&server, &reason, None)));
                }
            }
            ServerNotification::Connected
            | ServerNotification::Resources { .. }
            | ServerNotification::Resource { .. }
            | ServerNotification::Failed { .. } => {}
        }
    }

    fn tell(&self, change: Change) {
        // Without clients there is no receiver.
        drop(self.changes.send(change));
    }
}

fn digest(items: &impl Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    // What cannot be written cannot be listed either.
    serde_json::to_string(items).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
