//! The state of the database for operators.

use std::time::Duration;

use crate::replicas::Replica;

/// The connection of a running service to the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseHealth {
    /// The time since the database last confirmed that nothing changed, or what did.
    pub age: Duration,
    /// The reason why it does not, with a remedy.
    pub problem: Option<(String, String)>,
    /// True within an hour after the database lost commits, such as in a failover without a synchronous standby.
    pub lost_commits: bool,
}

/// The database at a glance.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseStatus {
    /// The version of PostgreSQL.
    pub server_version: String,
    /// The version of the tables.
    pub schema_version: i32,
    /// The oldest version whose Haft can use them.
    pub works_from: i32,
    /// The revision of the registry.
    pub revision: String,
    /// Number of API keys.
    pub keys: i64,
    /// Number of rows of the execution log, as the database estimates it.
    pub calls: i64,
    /// The replicas, also dead ones of the last hour.
    pub replicas: Vec<Replica>,
}
