//! The registry: the offered tools with their names and settings.
//!
//! Registration is a pure function: the same configuration, the same discovered tools and the same
//! memory of earlier runs always give the same tools, log lines and violations.

mod active;
mod collide;
mod effective;
mod expected;
mod known;
mod overrides;
mod register;
mod reuse;
mod texts;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::choices::Mode;
use crate::config::model::{CompiledSchemas, ToolSettings};
use crate::config::tool_overrides::ToolOverrides;
use crate::error::CallError;
use haft_config::ToolDefinition;
use haft_config::schema::Schema;

pub(crate) use active::ActiveTool;
pub use effective::{Effective, SettingsOrigin};
pub use expected::would_offer;
pub use known::KnownTools;
pub use overrides::ArgumentOverrides;
pub(crate) use register::inline_tool;
pub use register::register;
pub(crate) use register::register_again;
pub(crate) use reuse::LocalRegistrations;
pub(crate) use texts::skipped;
pub use texts::{connect_failure, no_tools};

/// A tool that is offered.
#[derive(Debug, Clone)]
pub struct RegisteredTool {
    /// The name under which it is offered.
    pub name: String,
    /// The tool as its source defines it, under its own name.
    pub definition: Arc<ToolDefinition>,
    /// The origin of the tool.
    pub source: ToolSource,
    /// Its settings.
    pub effective: Effective,
    /// Arguments that callers neither see nor pass.
    pub arguments: ArgumentOverrides,
    /// The overrides of its entry, for display.
    pub overrides: Option<Arc<ToolOverrides>>,
    /// Validates the arguments, fixed ones included.
    pub input: Arc<Schema>,
    /// Validates the structured output.
    pub output: Option<Arc<Schema>>,
    /// The reason why the name may mislead: invisible or lookalike characters, or similarity to
    /// another tool's name.
    pub name_warning: Option<String>,
    /// Set if the server's definition is not the approved one, which is shown. Calls are refused.
    pub blocked: Option<BlockedDefinition>,
}

/// A tool whose current definition is not the one that the lock file approves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedDefinition {
    /// The hash of the approved definition; `None` if the tool is new.
    pub approved: Option<String>,
    /// The hash of the current definition.
    pub current: String,
}

impl RegisteredTool {
    /// The error of a call, if the tool is blocked.
    pub(crate) fn check_definition(&self) -> Result<(), CallError> {
        let (Some(blocked), Some(server)) = (&self.blocked, self.source.server()) else {
            return Ok(());
        };
        Err(CallError::DefinitionChanged {
            tool: self.name.clone(),
            server: server.to_owned(),
            name: self.definition.name.clone(),
            approved: blocked.approved.clone(),
            current: blocked.current.clone(),
        })
    }
}

/// The origin of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "lowercase")]
pub enum ToolSource {
    /// A script, command, function or built-in tool of this process.
    Local,
    /// A tool of an MCP server.
    Mcp {
        /// The server's name.
        mcp_name: String,
        /// The server's mode.
        mcp_mode: Mode,
    },
}

impl ToolSource {
    /// The server of the tool; `None` for a local one.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Local => None,
            Self::Mcp { mcp_name, .. } => Some(mcp_name),
        }
    }

    /// The phrase that follows the tool's name in a message.
    fn phrase(&self) -> String {
        match self {
            Self::Local => " (local tool)".to_owned(),
            Self::Mcp { mcp_name, .. } => format!(" from MCP server '{mcp_name}'"),
        }
    }
}

/// The input of registration.
#[derive(Debug, Default)]
pub struct Discovered {
    /// Local tools.
    pub local: Vec<LocalDiscovery>,
    /// Tools of servers, by server name. Servers that did not answer are absent.
    pub servers: Vec<(String, Vec<ToolDefinition>)>,
}

/// A local tool.
#[derive(Debug, Clone)]
pub struct LocalDiscovery {
    /// The definition of the tool.
    pub definition: Arc<ToolDefinition>,
    /// The tool's own entry in `tools.json`, which counts as its configuration; a function has
    /// none.
    pub settings: Option<Arc<ToolSettings>>,
    /// The compiled schemas of the definition, as far as they were compiled before.
    pub schemas: CompiledSchemas,
}

/// The result of registration.
#[derive(Debug)]
pub struct Registration {
    /// The tools that are offered, local ones first.
    pub tools: Vec<Arc<RegisteredTool>>,
    /// Log records, in order.
    pub records: Vec<Record>,
    /// Violations that prevent the start.
    pub violations: Vec<String>,
    /// The tools to remember for the next run.
    pub known: KnownTools,
    /// The registrations of local tools, for the next registration.
    pub(crate) locals: LocalRegistrations,
}

/// One log record, possibly with several lines of text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// Severity.
    pub level: Level,
    /// The exact text.
    pub text: String,
}

/// The severities of the required messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// Details for debugging.
    Debug,
    /// Normal operation.
    Info,
    /// A possible problem.
    Warning,
    /// A problem.
    Error,
}

impl Record {
    /// Writes the record to the log.
    pub fn emit(&self) {
        let text = &self.text;
        match self.level {
            Level::Debug => tracing::debug!("{text}"),
            Level::Info => tracing::info!("{text}"),
            Level::Warning => tracing::warn!("{text}"),
            Level::Error => tracing::error!("{text}"),
        }
    }
}
