//! Who has a call under way at a server, for a server that asks or tells something and does not say
//! which call it speaks of.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_mcp::{RequestError, Sent};
use tokio::sync::Notify;

use crate::requester::{Origin, Requester};

/// How long the server may still ask about a call that ended without its answer. Until then such a question
/// could belong to that call, so other clients are not asked.
const ABANDONED_MAX: Duration = Duration::from_mins(1);

/// The calls under way.
#[derive(Clone, Default)]
pub(super) struct UnderWay(Arc<Shared>);

#[derive(Default)]
struct Shared {
    calls: Mutex<Calls>,
    /// A call has ended.
    ended: Notify,
}

#[derive(Default)]
struct Calls {
    entries: Vec<Entry>,
    /// Calls that ended without an answer, on which the server may still be working.
    abandoned: Vec<Abandoned>,
    /// The audiences whose calls the current connection has carried.
    users: Users,
    /// Never used twice: who waits for the end of a call must not wait for that of a later one.
    next: u64,
}

struct Entry {
    call: u64,
    /// None for a caller that cannot be turned to.
    requester: Option<Arc<dyn Requester>>,
    origin: Origin,
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
        self.requester.as_ref().map(|it| it.audience())
    }
}

/// Whom a server can mean, and by which calls.
#[derive(Clone, Default)]
pub(super) struct Meant {
    pub(super) whom: Whom,
    /// What is known for sure of the calls.
    pub(super) origin: Origin,
    calls: Vec<u64>,
}

/// Who is turned to.
#[derive(Clone, Default)]
pub(super) enum Whom {
    /// The embedding program: no client has a call under way that could be turned to.
    #[default]
    Program,
    /// The one client that has, with one call or several.
    Client(Arc<dyn Requester>),
    /// Nobody. Several callers have: asking the wrong one would tell it of another's affairs.
    Unclear,
}

impl UnderWay {
    /// Notes a call with a caller's data, for as long as the guard lives.
    pub(super) fn note(&self, requester: Option<&Arc<dyn Requester>>, origin: Origin) -> Noted {
        self.calls().users.add(requester.map(|it| it.audience()));
        self.add(requester, origin)
    }

    /// Notes a request of Haft itself, which carries no caller's data.
    pub(super) fn note_own(&self) -> Noted {
        let mut noted = self.add(None, Origin::default());
        noted.settle();
        noted
    }

    fn add(&self, requester: Option<&Arc<dyn Requester>>, origin: Origin) -> Noted {
        let mut calls = self.calls();
        let call = calls.next;
        calls.next += 1;
        let requester = requester.cloned();
        calls.entries.push(Entry { call, requester: requester.clone(), origin: origin.clone() });
        drop(calls);
        let whom = requester.map_or(Whom::Program, Whom::Client);
        let meant = Meant { whom, origin, calls: vec![call] };
        Noted { under_way: self.clone(), meant, is_settled: false }
    }

    /// Starts over with a new connection: what the old one still sends is not read any more.
    pub(super) fn reconnected(&self) {
        let mut calls = self.calls();
        let calls = &mut *calls;
        calls.abandoned.clear();
        calls.users = Users::default();
        for entry in &calls.entries {
            calls.users.add(entry.audience());
        }
    }

    /// Whether a message that names no call can only concern this client: no other caller has used the
    /// connection, so it cannot be a late one about another caller's call.
    pub(super) fn is_only_user(&self, requester: &dyn Requester) -> bool {
        match self.calls().users {
            Users::One(only) => only == Some(requester.audience()),
            Users::None | Users::Several => false,
        }
    }

    pub(super) fn meant(&self) -> Meant {
        let mut calls = self.calls();
        calls.abandoned.retain(Abandoned::is_recent);
        let Calls { entries, abandoned, .. } = &*calls;
        let id = |entry: &Entry| entry.requester.as_ref().map(|it| it.id());
        // The newest knows the way to its client best.
        let Some(last) = entries.last() else { return Meant::default() };
        let may_be_late = abandoned.iter().any(|call| call.audience != last.audience());
        let whom = if may_be_late || entries.iter().any(|entry| id(entry) != id(last)) {
            Whom::Unclear
        } else {
            last.requester.clone().map_or(Whom::Program, Whom::Client)
        };
        let origin = entries
            .iter()
            .map(|entry| entry.origin.clone())
            .reduce(|one, other| one.common(&other));
        let calls = entries.iter().map(|entry| entry.call).collect();
        Meant { whom, origin: origin.unwrap_or_default(), calls }
    }

    /// Waits until none of the calls is under way that a question can belong to. One that came outside any
    /// call is never over.
    pub(super) async fn over(&self, meant: &Meant) {
        if meant.calls.is_empty() {
            return std::future::pending().await;
        }
        loop {
            // Before the look: an end in between is heard all the same.
            let ended = self.0.ended.notified();
            let is_under_way = |entry: &Entry| meant.calls.contains(&entry.call);
            if !self.calls().entries.iter().any(is_under_way) {
                return;
            }
            ended.await;
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call under way.
pub(super) struct Noted {
    under_way: UnderWay,
    meant: Meant,
    /// The server has answered, or never got the call.
    is_settled: bool,
}

impl Noted {
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

    /// Whom the server means where it says that it speaks of this call.
    pub(super) fn meant(&self) -> Meant {
        self.meant.clone()
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let mut calls = self.under_way.calls();
        let is_own = |entry: &Entry| self.meant.calls.contains(&entry.call);
        if let Some(at) = calls.entries.iter().position(is_own) {
            let audience = calls.entries.remove(at).audience();
            if !self.is_settled {
                // One for each audience is enough: the latest lasts longest.
                calls.abandoned.retain(|it| it.audience != audience && it.is_recent());
                calls.abandoned.push(Abandoned { audience, at: Instant::now() });
            }
        }
        drop(calls);
        self.under_way.0.ended.notify_waiters();
    }
}
