//! The memory that a server's messages take.

use haft_mcp::{ByteBudget, HeldBytes};

use super::connection::Connection;
use crate::memory::{Held, MemoryBudget, OverBudget, Owner};

/// Answers up to this size are not counted.
pub(super) const FREE_BYTES: usize = 64 * 1024;
/// An answer is there several times: as it came, as blocks, and in the log's queue.
const ANSWER_COPIES: usize = 3;

/// The share of one server.
#[derive(Debug)]
pub(super) struct ServerMemory {
    budget: MemoryBudget,
    server: String,
}

impl ServerMemory {
    pub(super) fn of(connection: &Connection) -> Self {
        let budget = connection.context.memory.clone();
        Self { budget, server: connection.name().to_owned() }
    }
}

impl ByteBudget for ServerMemory {
    fn reserve(&self, bytes: usize) -> Result<HeldBytes, String> {
        match self.budget.reserve(bytes, Owner::Server(&self.server)) {
            Ok(reservation) => Ok(Box::new(reservation)),
            Err(over) => Err(over.to_string()),
        }
    }
}

impl Connection {
    /// Reserves the memory that an answer of this size takes until it is handed on.
    pub(super) fn answer_memory(&self, bytes: usize) -> Result<Held, OverBudget> {
        if bytes <= FREE_BYTES {
            return Ok(Held::default());
        }
        let bytes = bytes.saturating_mul(ANSWER_COPIES);
        let reserved = self.context.memory.reserve(bytes, Owner::Server(self.name()))?;
        Ok(reserved.into())
    }
}
