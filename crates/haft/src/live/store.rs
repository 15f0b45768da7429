//! Storage of a registry. Files by default; any store with revisions and conditional writes can
//! replace them.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::tool::BoxFuture;

/// Stores the two documents of a registry.
pub trait RegistryStore: Send + Sync + 'static {
    /// Loads the current documents.
    fn load(&self) -> BoxFuture<'_, Result<Stored, StoreError>>;

    /// Replaces both documents if the registry is still at `expected`, or neither. On success the
    /// new state is durable; until then, readers see the old one.
    fn commit<'a>(
        &'a self,
        expected: &'a Revision,
        new: &'a Documents,
    ) -> BoxFuture<'a, Result<Revision, StoreError>>;

    /// Waits until the registry may have changed since the last call. Called by one task at a time.
    fn changed(&self) -> BoxFuture<'_, ()>;

    /// Returns true if several services edit the registry. An unknown name is then looked up in the store before a
    /// request is refused.
    fn is_shared(&self) -> bool {
        false
    }
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
    /// Its documents.
    pub documents: Documents,
    /// Its revision.
    pub revision: Revision,
}

/// Identifies a state of a registry. Equal revisions mean equal documents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(String);

impl Revision {
    /// Creates a revision with the store's own name.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The revision of documents without another name: a hash of their text.
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

/// A short hash of several strings.
pub(super) fn hash(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    haft_text::hex(&hash.finalize()[..16])
}

/// Reasons why a registry cannot be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another writer changed it in the meantime. Nothing was written.
    #[error("the registry was changed by another process in the meantime")]
    Conflict,
    /// Reading failed.
    #[error("`{what}` cannot be read: {cause}")]
    Read {
        /// The file or other location.
        what: String,
        /// The cause.
        cause: String,
    },
    /// Writing failed. The old content stays, unless `cause` states otherwise.
    #[error("`{what}` cannot be written: {cause}")]
    Write {
        /// The file or other location.
        what: String,
        /// The cause.
        cause: String,
    },
    /// The store cannot be used now. Nothing was written.
    #[error("the registry cannot be used now: {cause}")]
    Unavailable {
        /// The cause.
        cause: String,
        /// The remedy.
        remedy: String,
    },
    /// The store became unreachable while it was written, so the change may be there or not.
    #[error("it is not known whether the change was written: {cause}")]
    Unknown {
        /// The cause.
        cause: String,
    },
}

impl StoreError {
    /// The remedy.
    pub fn remedy(&self) -> &str {
        match self {
            Self::Unavailable { remedy, .. } => remedy,
            Self::Unknown { .. } => "read the entry again before you repeat the change",
            Self::Conflict => "try again",
            Self::Read { .. } => "see that the file is there and may be read",
            Self::Write { .. } => "see that there is room and that the folder may be written to",
        }
    }
}
