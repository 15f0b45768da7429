//! The calls in flight: running, waiting, and their cancellation.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::ToolCall;

/// One call in flight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunningCall {
    /// The id that its answer and its log entry will carry.
    pub execution_id: String,
    /// The requested tool.
    pub tool: String,
    /// The caller's name.
    pub caller: Option<String>,
    /// The session or run it belongs to.
    pub session: Option<String>,
    /// The time of the request.
    #[serde(with = "crate::record::rfc3339")]
    pub started: Timestamp,
    /// Waiting or running.
    pub state: CallState,
}

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallState {
    /// It is being checked, or waits for its turn.
    Waiting,
    /// Its tool works on it.
    Running,
}

/// Every call in flight, by its id.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls(Mutex<CallsById>);

type CallsById = HashMap<Uuid, Arc<Call>, BuildHasherDefault<IdHasher>>;

/// 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes the bytes of an id before its last two. Haft makes the ids itself: these bytes are random, and the last two are
/// the number of the replica, the same for all.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk() {
            // The table takes the low bits for the place and the highest for a tag; the factor spreads the random
            // bytes to both.
            self.0 = (u64::from_be_bytes(*last) >> 16).wrapping_mul(SPREAD);
        }
    }
}

#[derive(Debug)]
struct Call {
    asked: Arc<ToolCall>,
    started: Timestamp,
    is_admitted: AtomicBool,
    cancel: CancellationToken,
}

impl RunningCalls {
    /// Lists a call for as long as the guard lives.
    pub(super) fn enter(
        &self,
        id: Uuid,
        call: &Arc<ToolCall>,
        started: Timestamp,
    ) -> RunningCallGuard<'_> {
        let cancel = call.cancel.as_ref().map(CancellationToken::child_token);
        let entry = Arc::new(Call {
            asked: Arc::clone(call),
            started,
            is_admitted: AtomicBool::new(false),
            cancel: cancel.unwrap_or_default(),
        });
        self.calls().insert(id, Arc::clone(&entry));
        RunningCallGuard { calls: self, id, entry }
    }

    pub(crate) fn list(&self) -> Vec<RunningCall> {
        let mut calls: Vec<(Uuid, Arc<Call>)> =
            self.calls().iter().map(|(id, call)| (*id, Arc::clone(call))).collect();
        // The ids begin with the time.
        calls.sort_unstable_by_key(|(id, _)| *id);
        calls.into_iter().map(|(id, call)| call.shown(id)).collect()
    }

    pub(crate) fn cancel(&self, execution_id: &str) -> bool {
        let Ok(id) = Uuid::try_parse(execution_id) else { return false };
        // Outside the lock, because a listener may read the list.
        let call = self.calls().get(&id).cloned();
        call.inspect(|call| call.cancel.cancel()).is_some()
    }

    fn calls(&self) -> MutexGuard<'_, CallsById> {
        self.0.lock()
    }
}

impl Call {
    fn shown(&self, id: Uuid) -> RunningCall {
        let Self { asked, started, is_admitted, cancel: _ } = self;
        let is_admitted = is_admitted.load(Ordering::Relaxed);
        RunningCall {
            execution_id: id.to_string(),
            tool: asked.tool.clone(),
            caller: asked.caller.clone(),
            session: asked.session.clone(),
            started: *started,
            state: if is_admitted { CallState::Running } else { CallState::Waiting },
        }
    }
}

/// A call's place in the list, left when dropped.
#[derive(Debug)]
pub(crate) struct RunningCallGuard<'a> {
    calls: &'a RunningCalls,
    id: Uuid,
    entry: Arc<Call>,
}

impl RunningCallGuard<'_> {
    /// The call has its turn.
    pub(super) fn admitted(&self) {
        self.entry.is_admitted.store(true, Ordering::Relaxed);
    }

    /// Fires when the call is cancelled from any side.
    pub(super) fn cancel(&self) -> CancellationToken {
        self.entry.cancel.clone()
    }
}

impl Drop for RunningCallGuard<'_> {
    fn drop(&mut self) {
        self.calls.calls().remove(&self.id);
    }
}
