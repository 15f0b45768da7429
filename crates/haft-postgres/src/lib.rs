//! The state that several replicas of `haft serve` share, in one PostgreSQL database.
//!
//! The only crate that names the driver and holds SQL. A call never touches the database: replicas hold snapshots in
//! memory, and a poll twice a second tells them when to read again. One operation is one statement, so there is no
//! open transaction and no pool, and a proxy that pools transactions is sufficient.

mod approvals;
mod calls;
mod connection;
mod conversations;
mod database;
mod error;
mod keys;
mod leases;
mod log;
mod migrate;
mod random;
mod registry;
mod replicas;
mod schema;
mod settings;
mod status;
mod tls;
mod topics;
mod watch;

pub use approvals::{ApprovalRow, ApprovalRows};
pub use calls::{FoundCall, chunks};
pub use conversations::{ConversationDeleted, ConversationRow, MessageRow};
pub use database::Database;
pub use error::DatabaseError;
pub use keys::{KeyInserted, KeyRow, KeyRows, NewKeyRow};
pub use leases::{HeldConversation, NewConversation};
pub use log::PostgresLog;
pub use migrate::Migrations;
pub use registry::PostgresRegistry;
pub use replicas::{OwnReplica, Replica, ReplicaTable};
pub use schema::SCHEMA_VERSION;
pub use settings::{ReplicaSettings, Settings};
pub use status::{DatabaseHealth, DatabaseStatus};
pub use topics::{Topic, TopicSeqs};
