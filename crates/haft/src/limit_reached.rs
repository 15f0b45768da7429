//! The limit that a call met.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

/// The kind of subject that a limit belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitSubject {
    /// The caller's key.
    Key,
    /// The server of the tool.
    Server,
    /// The tool.
    Tool,
}

impl LimitSubject {
    /// Its name in messages and data.
    pub fn word(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Server => "server",
            Self::Tool => "tool",
        }
    }
}

/// The kind of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// Calls per second, minute or hour.
    Rate,
    /// Calls per UTC day.
    Quota,
}

impl LimitKind {
    /// The name of its setting.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Quota => "quota",
        }
    }
}

/// A limit that a call met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitReached {
    /// The kind of its subject.
    pub subject: LimitSubject,
    /// The name of that key, server or tool.
    pub name: String,
    /// Rate or quota.
    pub kind: LimitKind,
    /// The limit, such as `60/min`.
    pub max: String,
    /// The time after which a call can pass.
    pub retry_after: Duration,
}

impl LimitReached {
    /// Facts for a program.
    pub(crate) fn details(&self) -> Value {
        json!({
            "limit": self.kind.word(),
            "of": self.subject.word(),
            "name": self.name,
            "max": self.max,
            "retry_after_ms": u64::try_from(self.retry_after.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

impl fmt::Display for LimitReached {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, name, kind, max, .. } = self;
        write!(out, "the {} `{name}` has reached its {} of {max}", subject.word(), kind.word())
    }
}
