//! Where a registry is kept. Files by default; anything that can tell one state from the next and
//! refuse a change of a state that is no longer there can take their place.

use std::fmt::{self, Write};

use sha2::{Digest, Sha256};

use crate::tool::BoxFuture;

/// Keeps the two documents of a registry.
pub trait RegistryStore: Send + Sync + 'static {
    /// What the registry says now.
    fn load(&self) -> BoxFuture<'_, Result<Stored, StoreError>>;

    /// Replaces both documents, if the registry still is at `expected`, or neither. When this answers, the
    /// new state survives whatever happens to the machine; until then, readers see the old one.
    fn commit<'a>(
        &'a self,
        expected: &'a Revision,
        new: &'a Documents,
    ) -> BoxFuture<'a, Result<Revision, StoreError>>;

    /// Waits until the registry may say something else than when this was last asked. One asks at a
    /// time.
    fn changed(&self) -> BoxFuture<'_, ()>;
}

/// The two documents, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// `tools.json`: local tools, and settings of tools of servers.
    pub tools: String,
    /// `mcp.json`: servers.
    pub servers: String,
}

/// A state of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What it says.
    pub documents: Documents,
    /// Which state that is.
    pub revision: Revision,
}

/// Names a state of a registry. Equal revisions mean equal documents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(String);

impl Revision {
    /// A revision as a store names it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The revision of documents that have no other name: a hash of what they say.
    pub fn of(documents: &Documents) -> Self {
        Self(hash(&[&documents.tools, &documents.servers]))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A short hash of several texts.
pub(super) fn hash(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    let mut text = String::new();
    for byte in &hash.finalize()[..16] {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Why a registry cannot be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Somebody else changed it in the meantime. Nothing was written.
    #[error("the registry was changed by somebody else in the meantime")]
    Conflict,
    /// It cannot be read.
    #[error("`{what}` cannot be read: {cause}")]
    Read {
        /// The file, or whatever holds it.
        what: String,
        /// Why.
        cause: String,
    },
    /// It cannot be written. What it says is what it said before, unless `cause` says otherwise.
    #[error("`{what}` cannot be written: {cause}")]
    Write {
        /// The file, or whatever holds it.
        what: String,
        /// Why.
        cause: String,
    },
}

impl StoreError {
    /// What to do next.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Conflict => "try again",
            Self::Read { .. } => "see that the file is there and may be read",
            Self::Write { .. } => "see that there is room and that the folder may be written to",
        }
    }
}
