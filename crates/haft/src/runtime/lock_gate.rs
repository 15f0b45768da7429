//! The lists of servers behind the lock file: what it does not approve does not pass.

use std::sync::Arc;

use super::server_pool::ServerPool;
use super::snapshot::Snapshot;
use crate::backend::mcp::{ApprovedLists, Connection, Lists};
use crate::config::Config;
use crate::config::choices::Definitions;
use haft_bounds::heavy;

/// The approximate size of a tool's definition.
const TOOL_BYTES: usize = 1024;

/// The rule for the lists of one server.
#[derive(Clone)]
pub(super) enum LockGate {
    /// They are offered as they are.
    Open,
    /// Only what the lock file approves is offered; `None` until the server is listed.
    Locked(Option<Arc<ApprovedLists>>),
}

impl ServerPool {
    /// Returns the same servers with their current lists, compared with the lock file of the configuration. `before` has
    /// the comparisons that need not be made again.
    pub(super) fn with_current_lists(&self, config: &Config, before: Option<&Snapshot>) -> Self {
        let offered: Vec<_> = self.connections.iter().map(|it| it.lists()).collect();
        let lock =
            config.lock.lock().filter(|_| config.policy.definitions.value == Definitions::Block);
        let known = before.filter(|before| before.config().lock == config.lock);
        let gate = |connection: &Arc<Connection>, lists: &Option<Arc<Lists>>| {
            let Some(approved) = lock.and_then(|lock| lock.servers.get(connection.name())) else {
                return LockGate::Open;
            };
            let Some(lists) = lists else { return LockGate::Locked(None) };
            let known = known.and_then(|before| before.server_pool.approved(connection.name()));
            let checked = known.filter(|known| known.is_of(lists)).cloned();
            let compare = || {
                let weight = lists.tools.len().saturating_mul(TOOL_BYTES);
                heavy::in_place(weight, || {
                    Arc::new(ApprovedLists::new(approved, Arc::clone(lists)))
                })
            };
            LockGate::Locked(Some(checked.unwrap_or_else(compare)))
        };
        let gates =
            self.connections.iter().zip(&offered).map(|(it, lists)| gate(it, lists)).collect();
        Self { connections: self.connections.clone(), offered, gates }
    }

    /// The comparison of a locked server with the lock file.
    pub(super) fn approved(&self, server: &str) -> Option<&Arc<ApprovedLists>> {
        match self.gate(server)? {
            LockGate::Open => None,
            LockGate::Locked(approved) => approved.as_ref(),
        }
    }

    /// The lists of a server that may be offered. Those of a locked server are the approved ones.
    pub(super) fn usable_lists(&self, connection: &Connection) -> Option<Arc<Lists>> {
        match self.gate(connection.name()) {
            Some(LockGate::Locked(approved)) => approved.as_ref().map(|it| Arc::clone(&it.lists)),
            Some(LockGate::Open) | None => connection.lists(),
        }
    }

    /// Returns true if only approved definitions of a server are used.
    pub(super) fn is_locked(&self, server: &str) -> bool {
        matches!(self.gate(server), Some(LockGate::Locked(_)))
    }

    fn gate(&self, server: &str) -> Option<&LockGate> {
        let at = self.connections.iter().position(|connection| connection.name() == server)?;
        self.gates.get(at)
    }

    /// The lists as of construction, as far as they are approved.
    pub(super) fn offered_lists<'a>(
        &'a self,
        connection: &Connection,
        lists: Option<&'a Arc<Lists>>,
    ) -> Option<&'a Arc<Lists>> {
        match self.gate(connection.name()) {
            Some(LockGate::Locked(approved)) => approved.as_ref().map(|it| &it.lists),
            Some(LockGate::Open) | None => lists,
        }
    }
}
