//! Counters of changes, which replicas poll.

use tokio::time::Instant;

/// State that replicas hold copies of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// The registry.
    Registry,
    /// The API keys.
    Keys,
    /// The standing approvals.
    Approvals,
}

/// The counter of each topic. A greater or lesser number means that the state was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicSeqs {
    registry: i64,
    keys: i64,
    approvals: i64,
    server: i64,
    confirmed: Instant,
}

impl TopicSeqs {
    /// The counters before the first poll.
    pub(crate) fn unknown(now: Instant) -> Self {
        Self { registry: -1, keys: -1, approvals: -1, server: 0, confirmed: now }
    }

    /// The counters of a poll that `server` answered and that was sent at `confirmed`.
    pub(crate) fn of(
        rows: impl Iterator<Item = (String, i64)>,
        server: i64,
        confirmed: Instant,
    ) -> Self {
        let mut seqs = Self { server, ..Self::unknown(confirmed) };
        for (name, seq) in rows {
            match name.as_str() {
                "registry" => seqs.registry = seq,
                "keys" => seqs.keys = seq,
                "approvals" => seqs.approvals = seq,
                // A newer Haft has more of them.
                _ => {}
            }
        }
        seqs
    }

    /// The counter of a topic.
    pub fn seq(&self, topic: Topic) -> i64 {
        match topic {
            Topic::Registry => self.registry,
            Topic::Keys => self.keys,
            Topic::Approvals => self.approvals,
        }
    }

    /// The server that answered: the time of its start in microseconds. Another one may have lost commits and counted the
    /// same numbers for other changes, so what was read from the one before must be read again.
    pub fn server(&self) -> i64 {
        self.server
    }

    /// The time at which the last successful poll was sent: every change committed before is counted.
    pub fn confirmed(&self) -> Instant {
        self.confirmed
    }

    /// Returns true if a counter went back: the database lost commits.
    pub(crate) fn went_back(&self, before: &Self) -> bool {
        self.registry < before.registry
            || self.keys < before.keys
            || self.approvals < before.approvals
    }
}
