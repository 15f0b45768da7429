//! Who has a call under way at a server, for a server that asks or tells something and does not say
//! which call it speaks of.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::requester::{Origin, Requester};

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
    /// Never used twice: who waits for the end of a call must not wait for that of a later one.
    next: u64,
}

struct Entry {
    call: u64,
    /// None for a caller that cannot be turned to.
    requester: Option<Arc<dyn Requester>>,
    origin: Origin,
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
    /// Notes a call, for as long as the guard lives.
    pub(super) fn note(&self, requester: Option<&Arc<dyn Requester>>, origin: Origin) -> Noted {
        let mut calls = self.calls();
        let call = calls.next;
        calls.next += 1;
        let requester = requester.cloned();
        calls.entries.push(Entry { call, requester: requester.clone(), origin: origin.clone() });
        drop(calls);
        let whom = requester.map_or(Whom::Program, Whom::Client);
        Noted { under_way: self.clone(), meant: Meant { whom, origin, calls: vec![call] } }
    }

    pub(super) fn meant(&self) -> Meant {
        let entries = &self.calls().entries;
        let id = |entry: &Entry| entry.requester.as_ref().map(|it| it.id());
        // The newest knows the way to its client best.
        let Some(last) = entries.last() else { return Meant::default() };
        let whom = if entries.iter().any(|entry| id(entry) != id(last)) {
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
}

impl Noted {
    /// Whom the server means where it says that it speaks of this call.
    pub(super) fn meant(&self) -> Meant {
        self.meant.clone()
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let is_other = |entry: &Entry| !self.meant.calls.contains(&entry.call);
        self.under_way.calls().entries.retain(is_other);
        self.under_way.0.ended.notify_waiters();
    }
}
