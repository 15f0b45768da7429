//! Haft gives an LLM agent one handle on every tool it may use.
//!
//! Read [`mod@call`] first: it is the path every call takes, whoever asks and whatever runs.

#[cfg(feature = "agent")]
pub mod agent;
pub mod backend;
pub mod call;
pub mod config;
pub mod content;
mod context;
mod definition;
pub mod edit;
#[cfg(feature = "mcp")]
mod embeddings;
pub mod envelope;
pub mod error;
#[doc(hidden)]
pub mod fuzz;
pub mod inbox;
pub mod json;
pub mod json_text;
pub mod live;
mod lookalike;
pub mod memory;
#[cfg(feature = "agent")]
pub mod model;
mod name;
mod policy;
mod progress;
pub mod record;
mod redact;
pub mod registry;
mod requester;
mod runtime;
pub mod schema;
pub mod select;
mod server_state;
mod session;
mod sight;
pub mod text;
pub mod tool;
mod tool_metadata;
mod trace;

#[cfg(feature = "mcp")]
pub use backend::mcp::{
    CLIENT_NAME, Health, Reason as ServerReason, Resources, ServerHandler, oauth_login,
};
pub use call::{CallState, CallSummary, RunningCall, ToolCall};
pub use config::Config;
pub use config::nearest;
pub use content::{Content, Message, ResourceAbout, ToolOutput};
pub use envelope::{Envelope, Status};
pub use error::{CallError, Code, Diagnosis, ToolFailure};
#[cfg(feature = "mcp")]
pub use haft_mcp::{
    Era, PromptDescription, ResourceDescription, ResourceTemplate, RpcError, ToolDescription,
    extension, http_client_builder, oauth, server as mcp_server,
};
pub use inbox::{Ask, Inbox};
pub use name::NAME_BYTES_MAX;
pub use policy::Admitted;
pub use progress::Progress;
pub use requester::{Origin, Question, Refusal, Requester};
pub use runtime::{
    ConnectFailed, EffectiveValue, Figures, INSTRUCTIONS_BYTES_MAX, ReconnectError, Runtime,
    RuntimeBuilder, ServerIdentity, ServerInfo, Shutdown, StartError, ToolFigures, ToolInfo,
};
#[cfg(feature = "mcp")]
pub use runtime::{Offer, PromptInfo, Registration, ResourceInfo, ToolOffer};
pub use server_state::ServerState;
pub use tool::{CallContext, FunctionTool, Tool, ToolDefinition};
pub use tool_metadata::{Icon, IconError, IconTheme, ToolAnnotations};
pub use trace::TraceContext;
