//! The lease of one open conversation, renewed by a task until it is dropped.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Context, HeldConversation, RELEASED_MAX};

/// A held conversation.
///
/// The deadline counts from before a renewal was sent, by the clock of this process, so it is never later than the one in
/// the database.
pub(super) struct Lease {
    pub(super) held: HeldConversation,
    state: Arc<State>,
    released: CancellationToken,
    /// Ends the task, which then releases the lease.
    end: DropGuard,
}

struct State {
    /// `None` once another process may hold the conversation.
    deadline: Mutex<Option<Instant>>,
}

impl State {
    fn is_held(&self) -> bool {
        self.deadline.lock().is_some_and(|deadline| Instant::now() < deadline)
    }

    fn lose(&self) {
        *self.deadline.lock() = None;
    }
}

impl Lease {
    /// Keeps a conversation that a statement took which was sent at `sent`.
    pub(super) fn start(context: Arc<Context>, held: HeldConversation, sent: Instant) -> Self {
        let state = State { deadline: Mutex::new(Some(sent + context.times.lease)) };
        let (state, end) = (Arc::new(state), CancellationToken::new());
        let released = CancellationToken::new();
        let (tasks, ended) = (context.tasks.clone(), released.clone());
        let renewing = renew(context, held, Arc::clone(&state), end.clone(), ended);
        tasks.spawn(renewing);
        Self { held, state, released, end: end.drop_guard() }
    }

    /// Returns true while no other process can hold the conversation.
    pub(super) fn is_held(&self) -> bool {
        self.state.is_held()
    }

    /// Records that the database reports another holder.
    pub(super) fn lose(&self) {
        self.state.lose();
    }

    /// Releases the conversation, so that another process can hold it at once.
    pub(super) async fn release(self) {
        let Self { held: _, state: _, released, end } = self;
        drop(end);
        // Without the database the lease expires.
        drop(timeout(RELEASED_MAX, released.cancelled()).await);
    }
}

async fn renew(
    context: Arc<Context>,
    held: HeldConversation,
    state: Arc<State>,
    end: CancellationToken,
    released: CancellationToken,
) {
    let _released = released.drop_guard();
    while end.run_until_cancelled(sleep(context.times.renewal)).await.is_some() {
        if !state.is_held() {
            state.lose();
            return;
        }
        let sent = Instant::now();
        let renewed = context.database.renew_conversation(held, context.times.lease).await;
        match renewed {
            Ok(true) => {
                let mut deadline = state.deadline.lock();
                *deadline = deadline.map(|_| sent + context.times.lease);
            }
            Ok(false) => {
                tracing::warn!(id = %held.id, "another process may continue a conversation of this one");
                state.lose();
                return;
            }
            // Writes find out when the lease has expired.
            Err(error) => tracing::debug!(%error, id = %held.id, "a lease was not renewed"),
        }
    }
    if let Err(error) = context.database.release_conversation(held).await {
        let lease = context.times.lease.as_secs();
        tracing::warn!(%error, id = %held.id, "a conversation stays in use for up to {lease} s");
    }
}
