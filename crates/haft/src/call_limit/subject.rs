//! The subjects of limits.

use std::sync::Arc;
use std::time::Duration;

use crate::limit_reached::{LimitKind, LimitReached, LimitSubject};

/// The subject of a limit: its kind, and the name of its count in the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Subject {
    kind: LimitSubject,
    id: Arc<str>,
}

impl Subject {
    /// A caller's key, by the owner of its calls.
    pub(super) fn key(owner: &str) -> Self {
        Self { kind: LimitSubject::Key, id: owner.into() }
    }

    /// The entries of a caller in the log.
    pub(super) fn log(owner: &str) -> Self {
        Self { kind: LimitSubject::Key, id: format!("log:{owner}").into() }
    }

    pub(super) fn server(name: &str) -> Self {
        Self { kind: LimitSubject::Server, id: format!("server:{name}").into() }
    }

    pub(super) fn tool(name: &str) -> Self {
        Self { kind: LimitSubject::Tool, id: format!("tool:{name}").into() }
    }

    /// The name of its count. No two subjects share one: owners start with `key:` or another word of their own.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn reached(&self, kind: LimitKind, max: String, wait: Duration) -> LimitReached {
        let name = self.id.split_once(':').map_or(&*self.id, |(_, name)| name);
        // An owner is the key's name and a part of its hash.
        let name = match self.kind {
            LimitSubject::Key => name.split_once('#').map_or(name, |(name, _)| name),
            LimitSubject::Server | LimitSubject::Tool => name,
        };
        LimitReached { subject: self.kind, name: name.to_owned(), kind, max, retry_after: wait }
    }
}
