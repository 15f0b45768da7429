//! Lists that change on request, and the clients that are notified.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rmcp::model::SubscriptionFilter;
use rmcp::service::{Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio::sync::broadcast;

/// Changes that a stream may lag behind before it misses some.
const CHANGES_MAX: usize = 64;

/// Which list has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Tools,
    Prompts,
}

/// The current lists, and the clients that want to be notified of changes.
pub(crate) struct Changes {
    more_tools: AtomicBool,
    more_prompts: AtomicBool,
    /// The streams of the modern era.
    streams: broadcast::Sender<Change>,
    /// The sessions of the legacy era, each of which is notified of everything.
    sessions: Mutex<Vec<Peer<RoleServer>>>,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            more_tools: AtomicBool::default(),
            more_prompts: AtomicBool::default(),
            streams: broadcast::Sender::new(CHANGES_MAX),
            sessions: Mutex::default(),
        }
    }
}

impl Changes {
    /// Returns true if a list has its additional entry now. It comes and goes, so that every change can be seen in
    /// the list itself.
    pub(crate) fn has_more(&self, list: Change) -> bool {
        self.more(list).load(Ordering::Relaxed)
    }

    /// Changes a list and notifies all clients.
    pub(crate) async fn trigger(&self, change: Change) {
        self.more(change).fetch_xor(true, Ordering::Relaxed);
        // An error means that there is no listener.
        let _ = self.streams.send(change);
        let sessions = {
            let mut sessions = self.sessions.lock();
            sessions.retain(|session| !session.is_transport_closed());
            sessions.clone()
        };
        for session in sessions {
            let told = match change {
                Change::Tools => session.notify_tool_list_changed().await,
                Change::Prompts => session.notify_prompt_list_changed().await,
            };
            if let Err(error) = told {
                eprintln!("a session was not notified of {change:?}: {error}");
            }
        }
    }

    pub(crate) fn add_session(&self, session: Peer<RoleServer>) {
        self.sessions.lock().push(session);
    }

    /// All changes from now on.
    pub(crate) fn hear(&self) -> broadcast::Receiver<Change> {
        self.streams.subscribe()
    }

    fn more(&self, list: Change) -> &AtomicBool {
        match list {
            Change::Tools => &self.more_tools,
            Change::Prompts => &self.more_prompts,
        }
    }
}

/// Serves one stream of the modern era with the changes it asked for, until it is cancelled.
pub(crate) async fn tell(
    context: &SubscriptionContext,
    mut changes: broadcast::Receiver<Change>,
) -> Result<(), ErrorData> {
    loop {
        let change = tokio::select! {
            () = context.cancelled() => return Ok(()),
            change = changes.recv() => change,
        };
        let change = match change {
            Ok(change) => change,
            // A slow receiver still gets the later changes.
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return Ok(()),
        };
        if !wants(context.accepted(), change) {
            continue;
        }
        let told = match change {
            Change::Tools => context.sink().notify_tool_list_changed().await,
            Change::Prompts => context.sink().notify_prompt_list_changed().await,
        };
        told.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    }
}

fn wants(filter: &SubscriptionFilter, change: Change) -> bool {
    let wanted = match change {
        Change::Tools => filter.tools_list_changed,
        Change::Prompts => filter.prompts_list_changed,
    };
    wanted == Some(true)
}
