//! Who has a call under way at a server, for a server that asks or tells something and does not say
//! which call it speaks of.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::requester::Requester;

/// The clients with calls under way.
#[derive(Clone, Default)]
pub(super) struct UnderWay(Arc<Mutex<Vec<Entry>>>);

struct Entry {
    call: u64,
    /// None for a caller that cannot be turned to.
    requester: Option<Arc<dyn Requester>>,
}

/// Whom a server can mean.
pub(super) enum Meant {
    /// No client has a call under way that could be turned to.
    Nobody,
    /// One has, with one call or several.
    One(Arc<dyn Requester>),
    /// Several callers have: asking the wrong one would tell it of another's affairs.
    Unclear,
}

impl UnderWay {
    /// Notes a call, for as long as the guard lives.
    pub(super) fn note(&self, requester: Option<&Arc<dyn Requester>>) -> Noted {
        let mut entries = self.entries();
        let call = entries.last().map_or(0, |last| last.call + 1);
        entries.push(Entry { call, requester: requester.cloned() });
        drop(entries);
        Noted { under_way: self.clone(), call }
    }

    pub(super) fn meant(&self) -> Meant {
        let entries = self.entries();
        let id = |entry: &Entry| entry.requester.as_ref().map(|it| it.id());
        // The newest knows the way to its client best.
        let Some(last) = entries.last() else { return Meant::Nobody };
        if entries.iter().any(|entry| id(entry) != id(last)) {
            return Meant::Unclear;
        }
        match &last.requester {
            Some(requester) => Meant::One(Arc::clone(requester)),
            None => Meant::Nobody,
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call under way.
pub(super) struct Noted {
    under_way: UnderWay,
    call: u64,
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.under_way.entries().retain(|entry| entry.call != self.call);
    }
}
