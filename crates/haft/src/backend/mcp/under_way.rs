//! Who has a call under way at a server, for a server that asks or tells something and does not say
//! which call it speaks of.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::requester::Requester;

/// The clients with calls under way.
#[derive(Clone, Default)]
pub(super) struct UnderWay(Arc<Mutex<Vec<Entry>>>);

struct Entry {
    call: u64,
    requester: Arc<dyn Requester>,
}

/// Whom a server can mean.
pub(super) enum Meant {
    /// No client has a call under way.
    Nobody,
    /// One has, with one call or several.
    One(Arc<dyn Requester>),
    /// Several have: asking the wrong one would tell it of another's affairs.
    Unclear,
}

impl UnderWay {
    /// Notes a call, for as long as the guard lives.
    pub(super) fn note(&self, requester: &Arc<dyn Requester>) -> Noted {
        let mut entries = self.entries();
        let call = entries.last().map_or(0, |last| last.call + 1);
        entries.push(Entry { call, requester: Arc::clone(requester) });
        drop(entries);
        Noted { under_way: self.clone(), call }
    }

    pub(super) fn meant(&self) -> Meant {
        let entries = self.entries();
        match entries.first() {
            None => Meant::Nobody,
            Some(first) => {
                let id = first.requester.id();
                if entries.iter().all(|entry| entry.requester.id() == id) {
                    // The newest knows the way to the client best.
                    let last = entries.last().unwrap_or(first);
                    Meant::One(Arc::clone(&last.requester))
                } else {
                    Meant::Unclear
                }
            }
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
