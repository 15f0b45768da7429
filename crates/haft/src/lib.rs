//! Haft gives an LLM agent one handle on every tool it may use: Rust functions, Python scripts, programs and the tools
//! of MCP servers. Every call is validated, limited, recorded and answered with one [`Envelope`].
//!
//! # A first toolbox
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use std::time::Duration;
//!
//! use haft::{ConfigBuilder, Runtime, ToolCall, ToolFailure};
//! use serde_json::json;
//!
//! /// Greets by name.
//! #[haft::tool]
//! async fn greet(name: String) -> Result<String, ToolFailure> {
//!     Ok(format!("Hello, {name}!"))
//! }
//!
//! let config = ConfigBuilder::new().folder(folder.path()).build()?;
//! let runtime = Runtime::builder(config).tool(greet()).start().await?;
//!
//! let envelope = runtime.call(ToolCall::new("greet", &json!({"name": "Ada"}))).await;
//! assert_eq!(envelope.model_text(), "Hello, Ada!");
//!
//! runtime.shutdown(Duration::from_secs(1)).await;
//! # Ok(())
//! # }
//! ```
//!
//! # Guide
//!
//! - **Configure** with [`ConfigBuilder`], [`Config::from_yaml`] or [`Config::load`]. All three make the same checks and
//!   report every problem at once. Nothing is connected before the whole configuration is valid.
//! - **Add tools** with [`macro@tool`], [`FunctionTool::typed`], [`FunctionTool::new`] or the trait [`Tool`]. Scripts,
//!   commands and MCP servers come from the configuration.
//! - **Start** with [`Runtime::builder`]. A [`Runtime`] is cheap to clone; clones share the toolbox.
//! - **Call** with [`Runtime::call`]. It always returns an [`Envelope`]; [`Envelope::into_result`] and
//!   [`Envelope::parse`] turn it into a `Result`. Dropping the future cancels the call.
//! - **Approve**: tools with `approval: ask` need [`ToolCall::approved`], or [`ToolCall::asking_people`] and an answer
//!   in [`Runtime::inbox`].
//! - **Let a model use the toolbox** with `haft_agent::Agent`.
//! - **Change** the toolbox while it runs with [`Runtime::apply`]; calls in flight keep the state they started with.
//! - **Stop** with [`Runtime::shutdown`]: no process stays behind.
//!
//! `crates/haft/examples` has whole programs: `quickstart`, `mcp_servers`, `approver`. `crates/haft-agent/examples` has
//! `agent_events` and `scripted_model`, `crates/haft-server/examples` has `axum_mcp`: `/mcp` inside your own axum app.
//!
//! # Features
//!
//! `typed` ([`macro@tool`] and [`FunctionTool::typed`], with `schemars`) is on by default.
//!
//! # Inside
//!
//! [`Runtime::call`] is the path of every call, for every caller and every kind of tool.

mod backend;
mod call;
mod call_limit;
mod caller_access;
mod caller_handle;
mod config_builder;
mod content;
mod context;
mod embeddings;
mod envelope;
mod error;
#[doc(hidden)]
pub mod fuzz;
pub mod human_input;
pub mod json;
mod limit_reached;
pub mod live;
pub mod memory;
mod outputs;
mod policy;
mod progress;
pub mod record;
pub mod registry;
mod replica_number;
mod runtime;
mod server_state;
mod session;
mod tool;
mod tool_filter;
mod trace;
mod words;

pub use backend::builtin::texts as builtin_tools;
/// Isolation of servers, scripts and commands.
pub mod sandbox {
    pub use crate::backend::sandbox::launcher;
    pub use crate::backend::sandbox::support::{Support, problems, support};
}
pub use backend::mcp::{
    CLIENT_NAME, Health, Reason as ServerReason, Resources, ServerHandler, oauth_login,
};
pub use call::{CallAnswer, CallState, CallSummary, InlineTool, RunningCall, ToolCall};
pub use caller_access::{AccessLists, CallerAccess, CallerDirectory, CallerStatus};
pub use caller_handle::{CallOrigin, CallerHandle, Question, Refusal};
pub use config::Config;
pub use config_builder::{ConfigBuilder, ServerBuilder};
pub use content::{Content, Message, ResourceAbout, ToolOutput};
pub use envelope::{Envelope, ErrorBody, Status};
pub use error::{
    CallError, CallRefusal, Code, Diagnosis, RpcFailure, Stage, ToolFailure, Violation,
};
pub use haft_config::Remedy;
/// Configuration.
pub use haft_config::config;
/// The lock file.
pub use haft_config::lock;
pub use haft_config::tool_metadata::{Icon, IconError, IconTheme, ToolAnnotations};
#[cfg(feature = "typed")]
pub use haft_macros::tool;
pub use haft_mcp::{
    Era, PromptDescription, ResourceDescription, ResourceTemplate, RpcError, ToolDescription,
    extension, http_client_builder, oauth, server as mcp_server,
};
/// The choice of a tool for a request.
pub use haft_select as select;
pub use haft_text::name::NAME_BYTES_MAX;
pub use human_input::{HumanInbox, HumanQuestion};
pub use limit_reached::{LimitKind, LimitReached, LimitSubject};
pub use outputs::READ_OUTPUT;
pub use policy::{Admitted, PolicyDecision};
pub use progress::Progress;
pub use replica_number::ReplicaNumber;
pub use runtime::{
    ApproveError, ConnectFailed, DefinitionChoice, EffectiveValue, INSTRUCTIONS_BYTES_MAX,
    LoadStats, LockStatus, ReconnectError, Runtime, RuntimeBuilder, ServerIdentity, ServerInfo,
    Shutdown, StartError, StateChange, ToolInfo, ToolLoadStats,
};
pub use runtime::{Offer, PromptInfo, RegistrationInfo, ResourceInfo, ToolOffer};
pub use server_state::ServerState;
#[cfg(feature = "typed")]
pub use tool::TypedFunction;
pub use tool::{BoxFuture, CallContext, FunctionTool, SessionState, Tool, ToolDefinition};
pub use trace::TraceContext;

/// Names for the code that [`macro@tool`] writes.
#[cfg(feature = "typed")]
#[doc(hidden)]
pub mod __private {
    pub use {schemars, serde};
}
