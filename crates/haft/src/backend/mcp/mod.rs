//! Tools of MCP servers: the connection to each server, its life and health, and what its tools
//! answer.

mod anomalies;
mod cache;
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
mod lists;
mod memory;
mod process;
mod remote;
mod supervisor;
mod tool;
mod under_way;

pub use connection::{Connection, ServerWatch, Surroundings};
pub use convert::{content_blocks, prompt_messages, resource_contents};
pub use forward::Watched;
pub use handler::{RefuseServers, ServerHandler};
pub use health::{Health, Reason, ServerState};
pub use lists::{Lists, Resources};
pub use remote::{CLIENT_NAME, oauth_login};
pub use tool::McpTool;
pub(crate) use tool::is_app_only;
