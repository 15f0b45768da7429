//! The servers compared with the lock file, and the approval of what differs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::{Inner, Purpose, Runtime};
use crate::config::LoadedLock;
use crate::config::choices::Definitions;
use haft_config::Remedy;
use haft_config::lock::store::{LockWriteError, update};
use haft_config::lock::{Drift, DriftState, Lock, LockedKind, LockedServer, compare};
use haft_text::{nearest, printable};

/// The lock file and the differences to it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct LockStatus {
    /// The path of the lock file.
    pub file: PathBuf,
    /// True if the file exists.
    pub exists: bool,
    /// The handling of definitions that differ: `policy.definitions`.
    pub definitions: Definitions,
    /// Items that differ, by server.
    pub drift: Vec<Drift>,
    /// Servers that are not in the lock file.
    pub unlocked: Vec<String>,
    /// Servers of the lock file that are not configured.
    pub gone: Vec<String>,
    /// Servers that were never listed, so nothing is known about them.
    pub unlisted: Vec<String>,
}

impl LockStatus {
    /// Returns true if the lock file is not what `haft lock` would write now.
    pub fn has_drift(&self) -> bool {
        !(self.drift.is_empty() && self.unlocked.is_empty() && self.gone.is_empty())
    }
}

/// Selects differences to approve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionChoice {
    /// The server.
    pub server: String,
    /// The kind of the item; any by default.
    pub kind: Option<LockedKind>,
    /// The name of the item. Without one, everything of the server is approved.
    pub name: Option<String>,
    /// The hash of the definition that was reviewed. Another current definition is not approved.
    pub hash: Option<String>,
}

impl DefinitionChoice {
    fn fits(&self, drift: &Drift) -> bool {
        let Self { server, kind, name, hash: _ } = self;
        *server == drift.server
            && kind.is_none_or(|kind| kind == drift.kind)
            && name.as_ref().is_none_or(|name| *name == drift.name)
    }
}

/// Reasons why a definition cannot be approved. Nothing is changed.
#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    /// There is no lock file.
    #[error("there is no lock file `{}`", file.display())]
    NoLock {
        /// Its path.
        file: PathBuf,
    },
    /// No server of that name is configured.
    #[error("no server is named `{}`", printable(server))]
    UnknownServer {
        /// The requested name.
        server: String,
        /// The nearest existing name.
        nearest: Option<String>,
    },
    /// The server was never listed.
    #[error("the definitions of `{server}` are not known, because it was never connected")]
    Unlisted {
        /// The server.
        server: String,
    },
    /// The server is not in the lock file, and one of its items is to be approved.
    #[error("`{server}` is not in the lock file yet")]
    Unlocked {
        /// The server.
        server: String,
    },
    /// No item of that name differs.
    #[error("nothing named `{}` of `{server}` differs from the lock file", printable(name))]
    NoDrift {
        /// The server.
        server: String,
        /// The name.
        name: String,
    },
    /// The definition changed after it was reviewed.
    #[error("the definition of `{title}` changed again after it was reviewed")]
    Stale {
        /// The item.
        title: String,
    },
    /// The lock file cannot be changed.
    #[error("{0}")]
    Write(#[from] LockWriteError),
}

impl ApproveError {
    /// The remedy.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::NoLock { .. } => Remedy::WriteLock,
            Self::UnknownServer { nearest, .. } => Remedy::FindServer { nearest: nearest.clone() },
            Self::Unlisted { server } => Remedy::InspectServer { server: server.clone() },
            Self::Unlocked { server } => Remedy::ApproveServer { server: server.clone() },
            Self::NoDrift { .. } | Self::Stale { .. } => Remedy::ReviewDrift,
            Self::Write(error) => error.remedy(),
        }
    }
}

impl Runtime {
    /// Compares the servers with the lock file, as far as they were listed.
    pub fn lock_status(&self) -> LockStatus {
        self.inner.lock_status()
    }

    /// The state of all listed servers, as `haft lock` writes it.
    pub fn observed_lock(&self) -> Lock {
        let snapshot = self.inner.snapshot.load();
        let lock = snapshot.config().lock.lock();
        let observe = |it: &std::sync::Arc<crate::backend::mcp::Connection>| {
            let approved = lock.and_then(|lock| lock.servers.get(it.name()));
            Some((it.name().to_owned(), it.locked(approved)?))
        };
        Lock { servers: snapshot.server_pool.all().iter().filter_map(observe).collect() }
    }

    /// Lists the resource templates of connected servers, which are otherwise listed on demand.
    pub async fn list_templates(&self) {
        self.all_resources(|_| true).await;
    }

    /// Approves differences: writes the current definitions into the lock file and uses them from now on. Returns what
    /// was approved.
    pub async fn approve_definitions(
        &self,
        choice: &DefinitionChoice,
    ) -> Result<Vec<Drift>, ApproveError> {
        self.inner.approve_definitions(choice).await
    }

    /// Writes the state of all listed servers into the lock file. Servers that are no longer configured are removed from
    /// it, those that were not listed stay.
    pub async fn write_lock(&self) -> Result<Lock, LockWriteError> {
        let observed = self.observed_lock();
        let config = self.config();
        let configured: Vec<String> = config.servers.iter().map(|it| it.name.clone()).collect();
        self.inner
            .change_lock(move |lock| {
                lock.servers.retain(|name, _| configured.contains(name));
                lock.servers.extend(observed.servers);
            })
            .await
    }
}

impl Inner {
    pub(super) fn lock_status(&self) -> LockStatus {
        let snapshot = self.snapshot.load_full();
        let config = snapshot.config();
        let mut status = LockStatus {
            file: config.lock.path.clone(),
            exists: config.lock.loaded.is_some(),
            definitions: config.policy.definitions.value,
            drift: Vec::new(),
            unlocked: Vec::new(),
            gone: Vec::new(),
            unlisted: Vec::new(),
        };
        let Some(lock) = config.lock.lock() else { return status };
        for connection in snapshot.server_pool.all() {
            let name = connection.name();
            let approved = lock.servers.get(name);
            match (connection.locked(approved), approved) {
                (None, _) => status.unlisted.push(name.to_owned()),
                (Some(_), None) => status.unlocked.push(name.to_owned()),
                (Some(current), Some(approved)) => {
                    status.drift.extend(compare(name, approved, &current));
                }
            }
        }
        let is_gone = |name: &&String| !config.servers.iter().any(|server| server.name == **name);
        status.gone = lock.servers.keys().filter(is_gone).cloned().collect();
        status
    }

    pub(super) async fn approve_definitions(
        &self,
        choice: &DefinitionChoice,
    ) -> Result<Vec<Drift>, ApproveError> {
        let snapshot = self.snapshot.load_full();
        let config = snapshot.config();
        let Some(lock) = config.lock.lock() else {
            return Err(ApproveError::NoLock { file: config.lock.path.clone() });
        };
        let server = choice.server.clone();
        let Some(connection) = snapshot.server_pool.find(&server) else {
            let names = config.servers.iter().map(|it| it.name.as_str());
            let nearest = nearest(&server, names).map(ToOwned::to_owned);
            return Err(ApproveError::UnknownServer { server, nearest });
        };
        let approved = lock.servers.get(&server);
        let Some(current) = connection.locked(approved) else {
            return Err(ApproveError::Unlisted { server });
        };
        if approved.is_none() && choice.name.is_some() {
            return Err(ApproveError::Unlocked { server });
        }
        let nothing = LockedServer::default();
        let mut drifts = compare(&server, approved.unwrap_or(&nothing), &current);
        drifts.retain(|drift| choice.fits(drift));
        if let (true, Some(name)) = (drifts.is_empty(), &choice.name) {
            return Err(ApproveError::NoDrift { server, name: name.clone() });
        }
        if let Some(hash) = &choice.hash {
            let is_other = |drift: &&Drift| drift.current.as_ref() != Some(hash);
            if let Some(other) = drifts.iter().find(is_other) {
                return Err(ApproveError::Stale { title: other.title() });
            }
        }
        let approved = drifts.clone();
        self.change_lock(move |lock| {
            let locked = lock.servers.entry(server).or_default();
            for drift in &approved {
                locked.approve(drift.kind, &drift.name, &current);
                if let (DriftState::Renamed, Some(from)) = (drift.state, &drift.renamed_from) {
                    locked.approve(drift.kind, from, &current);
                }
            }
        })
        .await?;
        Ok(drifts)
    }

    /// Changes the file and then, in a toolbox that is used, what is enforced.
    async fn change_lock(
        &self,
        change: impl FnOnce(&mut Lock) + Send + 'static,
    ) -> Result<Lock, LockWriteError> {
        let path = self.snapshot.load().config().lock.path.clone();
        let file = path.display().to_string();
        let written = tokio::task::spawn_blocking(move || update(&path, change)).await;
        let (text, lock) = written.unwrap_or_else(|error| {
            Err(LockWriteError::Io { file, cause: std::io::Error::other(error) })
        })?;
        if self.parts.purpose == Purpose::Call {
            self.relock(LoadedLock::new(&text, lock.clone())).await;
        }
        Ok(lock)
    }
}

/// The blocking differences, by server, kind, name and current hash.
pub(super) type OpenDrifts = BTreeMap<(String, LockedKind, String, String), Drift>;

impl Inner {
    /// The differences that block something, if the lock file is enforced.
    pub(super) fn blocking_drifts(&self) -> OpenDrifts {
        let status = self.lock_status();
        let is_enforced = status.definitions == Definitions::Block;
        let blocking = status.drift.into_iter().filter(|it| is_enforced && it.is_blocking());
        blocking
            .map(|drift| {
                let Drift { server, kind, name, current, .. } = &drift;
                let hash = current.clone().unwrap_or_default();
                ((server.clone(), *kind, name.clone(), hash), drift)
            })
            .collect()
    }
}
