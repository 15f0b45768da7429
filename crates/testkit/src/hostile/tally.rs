//! The actions of one kind of attack, and their results.

use std::io::Result;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::http::Answer;

/// Part of an answer in which an error is looked for.
const LOOKED_AT_BYTES: usize = 4096;

/// The counts of one kind.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) name: &'static str,
    clients: AtomicUsize,
    attacks: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    cut_off: AtomicU64,
}

/// The counts, read once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) attacks: u64,
    /// Answered as if it were an honest request.
    pub(super) accepted: u64,
    /// Answered with an error.
    pub(super) refused: u64,
    /// The service closed the connection without an answer.
    pub(super) cut_off: u64,
}

impl Tally {
    pub(super) fn of(name: &'static str) -> Self {
        Self {
            name,
            clients: AtomicUsize::new(1),
            attacks: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            cut_off: AtomicU64::new(0),
        }
    }

    pub(super) fn set_clients(&self, clients: usize) {
        self.clients.store(clients, Ordering::Relaxed);
    }

    pub(super) fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// Counts an attack that begins.
    pub(super) fn attack(&self) {
        self.attacks.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts how an attack ended.
    pub(super) fn end(&self, answer: &Result<Answer>) {
        let counter = match answer {
            Err(_) => &self.cut_off,
            Ok(answer) if is_refusal(answer) => &self.refused,
            Ok(_) => &self.accepted,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that the service closed.
    pub(super) fn cut_off(&self) {
        self.cut_off.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            attacks: read(&self.attacks),
            accepted: read(&self.accepted),
            refused: read(&self.refused),
            cut_off: read(&self.cut_off),
        }
    }
}

/// Errors of JSON-RPC and of tools travel with status 200.
fn is_refusal(answer: &Answer) -> bool {
    if answer.status >= 400 {
        return true;
    }
    let begin = &answer.body[..answer.body.len().min(LOOKED_AT_BYTES)];
    let text = String::from_utf8_lossy(begin);
    ["\"error\":{", "\"error\": {", "\"isError\":true"].iter().any(|error| text.contains(error))
}
