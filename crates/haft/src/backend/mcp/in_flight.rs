//! The calls in flight at one server, to find the client that a message of the server concerns if the message does not
//! name its call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_mcp::{RequestError, Sent};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::caller_handle::{CallOrigin, CallerHandle};

/// The time in which the server may still send a request for a call that ended without its answer. Until then such a
/// request could belong to that call, so other clients do not receive it.
const ABANDONED_MAX: Duration = Duration::from_mins(1);

/// The calls in flight.
#[derive(Clone, Default)]
pub(super) struct InFlightCalls(Arc<Shared>);

#[derive(Default)]
struct Shared {
    calls: Mutex<Calls>,
    /// A call has ended.
    ended: Notify,
}

#[derive(Default)]
struct Calls {
    /// By their numbers, so the newest comes last.
    entries: BTreeMap<u64, Entry>,
    /// Calls that ended without an answer, on which the server may still be working.
    abandoned: Vec<Abandoned>,
    /// The audiences whose calls the current connection has carried.
    users: Users,
    /// Never used twice: a task that waits for the end of a call must not wait for a later one.
    next: u64,
}

struct Entry {
    /// None for a caller that receives no messages of servers.
    caller_handle: Option<Arc<dyn CallerHandle>>,
    origin: CallOrigin,
}

/// A call that ended without the server's answer.
struct Abandoned {
    audience: Option<u64>,
    at: Instant,
}

impl Abandoned {
    fn is_recent(&self) -> bool {
        self.at.elapsed() < ABANDONED_MAX
    }
}

/// The audiences that have used a connection since it was opened.
#[derive(Clone, Copy, Default)]
enum Users {
    #[default]
    None,
    One(Option<u64>),
    Several,
}

impl Users {
    fn add(&mut self, audience: Option<u64>) {
        *self = match *self {
            Self::None => Self::One(audience),
            Self::One(only) if only == audience => Self::One(only),
            Self::One(_) | Self::Several => Self::Several,
        };
    }
}

impl Entry {
    fn audience(&self) -> Option<u64> {
        self.caller_handle.as_ref().map(|it| it.audience())
    }
}

/// The caller that a message of the server concerns, and the calls it may belong to.
#[derive(Clone, Default)]
pub(super) struct Attribution {
    pub(super) target: Target,
    /// The common attributes of the calls.
    pub(super) origin: CallOrigin,
    calls: Vec<u64>,
}

/// The receiver of a message.
#[derive(Clone, Default)]
pub(super) enum Target {
    /// The embedding program: no client with a call in flight receives messages.
    #[default]
    Program,
    /// The only client with calls in flight.
    Client(Arc<dyn CallerHandle>),
    /// None: several callers have calls in flight, and the wrong one would see data of another.
    Unclear,
}

impl InFlightCalls {
    /// Adds a call with a caller's data, for as long as the guard lives.
    pub(super) fn begin(
        &self,
        caller_handle: Option<&Arc<dyn CallerHandle>>,
        origin: CallOrigin,
    ) -> InFlightGuard {
        self.calls().users.add(caller_handle.map(|it| it.audience()));
        self.add(caller_handle, origin)
    }

    /// Adds a request of Haft itself, which carries no caller's data.
    pub(super) fn begin_own(&self) -> InFlightGuard {
        let mut guard = self.add(None, CallOrigin::default());
        guard.settle();
        guard
    }

    fn add(
        &self,
        caller_handle: Option<&Arc<dyn CallerHandle>>,
        origin: CallOrigin,
    ) -> InFlightGuard {
        let mut calls = self.calls();
        let call = calls.next;
        calls.next += 1;
        let caller_handle = caller_handle.cloned();
        let entry = Entry { caller_handle: caller_handle.clone(), origin: origin.clone() };
        calls.entries.insert(call, entry);
        drop(calls);
        let target = caller_handle.map_or(Target::Program, Target::Client);
        let attribution = Attribution { target, origin, calls: vec![call] };
        InFlightGuard { in_flight: self.clone(), attribution, is_settled: false }
    }

    /// Starts over with a new connection: messages of the old one are not read any more.
    pub(super) fn reconnected(&self) {
        let mut calls = self.calls();
        let calls = &mut *calls;
        calls.abandoned.clear();
        calls.users = Users::default();
        for entry in calls.entries.values() {
            calls.users.add(entry.audience());
        }
    }

    /// True if a message that names no call can only concern this client: no other caller has used the connection, so
    /// it cannot be a late one about another caller's call.
    pub(super) fn is_only_user(&self, caller_handle: &dyn CallerHandle) -> bool {
        match self.calls().users {
            Users::One(only) => only == Some(caller_handle.audience()),
            Users::None | Users::Several => false,
        }
    }

    /// The attribution of a message that does not name its call.
    pub(super) fn attribute(&self) -> Attribution {
        let mut calls = self.calls();
        calls.abandoned.retain(Abandoned::is_recent);
        let Calls { entries, abandoned, .. } = &*calls;
        let id = |entry: &Entry| entry.caller_handle.as_ref().map(|it| it.id());
        // The newest call has the most recent handle of its client.
        let Some((_, last)) = entries.last_key_value() else { return Attribution::default() };
        let may_be_late = abandoned.iter().any(|call| call.audience != last.audience());
        let target = if may_be_late || entries.values().any(|entry| id(entry) != id(last)) {
            Target::Unclear
        } else {
            last.caller_handle.clone().map_or(Target::Program, Target::Client)
        };
        let origin = entries
            .values()
            .map(|entry| entry.origin.clone())
            .reduce(|one, other| one.common(&other));
        let calls = entries.keys().copied().collect();
        Attribution { target, origin: origin.unwrap_or_default(), calls }
    }

    /// Waits until none of these calls is in flight. Without any call it waits forever.
    pub(super) async fn over(&self, attribution: &Attribution) {
        if attribution.calls.is_empty() {
            return std::future::pending().await;
        }
        loop {
            // Before the check, so that an end in between is not missed.
            let ended = self.0.ended.notified();
            if !self.is_any_in_flight(&attribution.calls) {
                return;
            }
            ended.await;
        }
    }

    fn is_any_in_flight(&self, numbers: &[u64]) -> bool {
        let calls = self.calls();
        numbers.iter().any(|number| calls.entries.contains_key(number))
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.calls.lock()
    }
}

/// A call in flight, until the guard is dropped.
pub(super) struct InFlightGuard {
    in_flight: InFlightCalls,
    attribution: Attribution,
    /// The server has answered, or never got the call.
    is_settled: bool,
}

impl InFlightGuard {
    /// The server has nothing more to do for the call.
    pub(super) fn settle(&mut self) {
        self.is_settled = true;
    }

    /// The call is about to be sent, perhaps again.
    pub(super) fn unsettle(&mut self) {
        self.is_settled = false;
    }

    /// Settles the call if this outcome shows that the server is done with it.
    pub(super) fn settle_if_answered<T>(&mut self, outcome: &Result<T, RequestError>) {
        let is_done = match outcome {
            Ok(_) | Err(RequestError::Rpc(_)) => true,
            Err(error) => error.sent() == Sent::No,
        };
        self.is_settled = is_done;
    }

    /// The attribution of messages that name this call.
    pub(super) fn attribution(&self) -> Attribution {
        self.attribution.clone()
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut calls = self.in_flight.calls();
        let own = self.attribution.calls.first();
        if let Some(entry) = own.and_then(|own| calls.entries.remove(own))
            && !self.is_settled
        {
            let audience = entry.audience();
            // One for each audience is enough: the latest lasts longest.
            calls.abandoned.retain(|it| it.audience != audience && it.is_recent());
            calls.abandoned.push(Abandoned { audience, at: Instant::now() });
        }
        drop(calls);
        self.in_flight.0.ended.notify_waiters();
    }
}
