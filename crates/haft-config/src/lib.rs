//! The configuration of Haft: loaded, checked, [edited](edit) and imported from the files of other tools.
//!
//! Nothing here connects, spawns or calls: an editor, an importer and `haft check` need this crate alone. What tools
//! look like to callers is part of it ([`ToolDefinition`], [`schema`]), and so is which strings are secret ([`redact`]).

pub mod config;
mod definition;
pub mod draft;
pub mod edit;
pub mod expression;
pub mod lock;
pub mod redact;
mod remedy;
pub mod schema;
pub mod tool_metadata;

pub use definition::ToolDefinition;
pub use remedy::Remedy;
