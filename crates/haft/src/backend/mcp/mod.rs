//! Tools of MCP servers: the connection to each server, its state, and the results of its tools.

mod anomalies;
mod backoff;
mod cache;
mod commands;
mod connection;
mod convert;
mod definition;
mod endpoint;
mod environment;
mod events;
mod failure;
mod forward;
mod freshness;
mod handler;
mod health;
mod in_flight;
mod link;
mod lists;
mod live_client;
mod machine;
mod memory;
mod process;
mod remote;
mod requests;
mod subscriptions;
mod supervisor;
mod tool;

pub use connection::{Connection, ConnectionContext, ServerWatch};
pub(crate) use definition::tool_definition;
pub use handler::{RefuseServers, ServerHandler};
pub use health::{Health, Reason};
pub use lists::{Lists, Resources};
pub use remote::{CLIENT_NAME, oauth_login};
pub use subscriptions::ResourceSubscription;
pub use tool::McpTool;
pub(crate) use tool::is_app_only;
