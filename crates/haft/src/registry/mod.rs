//! Which tools are offered, under which names, with which settings.
//!
//! Registration is a pure function: the same configuration, the same discovered tools and the same
//! memory of earlier runs always give the same tools, log lines and violations.

mod active;
mod collide;
mod effective;
mod expected;
mod known;
mod register;
mod texts;

use std::sync::Arc;

use serde::Serialize;

use crate::config::choices::Mode;
use crate::config::model::ToolSettings;
use crate::definition::ToolDefinition;
use crate::schema::Schema;

pub(crate) use active::ActiveTool;
pub use effective::{Effective, SettingsOrigin};
pub use expected::would_offer;
pub use known::KnownTools;
#[cfg(feature = "agent")]
pub(crate) use register::inline_tool;
pub use register::register;
pub(crate) use texts::skipped;
pub use texts::{connect_failure, no_tools};

/// A tool that is offered.
#[derive(Debug, Clone)]
pub struct RegisteredTool {
    /// The name under which it is offered.
    pub name: String,
    /// The tool as its source defines it, under its own name.
    pub definition: Arc<ToolDefinition>,
    /// Where it comes from.
    pub source: Source,
    /// Its settings.
    pub effective: Effective,
    /// Checks its arguments.
    pub input: Arc<Schema>,
    /// Checks its structured answer.
    pub output: Option<Arc<Schema>>,
    /// Why its name may mislead: characters that are invisible or look like others, or a name that looks
    /// like another tool's.
    pub name_warning: Option<String>,
}

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "source", rename_all = "lowercase")]
pub enum Source {
    /// It runs here.
    Local,
    /// An MCP server has it.
    Mcp {
        /// The server's name.
        mcp_name: String,
        /// The server's mode.
        mcp_mode: Mode,
    },
}

impl Source {
    /// The server that has it; none for one that runs here.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Local => None,
            Self::Mcp { mcp_name, .. } => Some(mcp_name),
        }
    }

    /// The part of a sentence after the name of a tool.
    fn phrase(&self) -> String {
        match self {
            Self::Local => " (local tool)".to_owned(),
            Self::Mcp { mcp_name, .. } => format!(" from MCP server '{mcp_name}'"),
        }
    }
}

/// What was found before registration.
#[derive(Debug, Default)]
pub struct Discovered {
    /// Tools that run here.
    pub local: Vec<LocalDiscovery>,
    /// Tools of servers, by the server's name. A server that could not be asked is not in here.
    pub servers: Vec<(String, Vec<ToolDefinition>)>,
}

/// A tool that runs here.
#[derive(Debug, Clone)]
pub struct LocalDiscovery {
    /// What it is.
    pub definition: Arc<ToolDefinition>,
    /// Its own entry in `tools.json`, which counts as its configuration; a function has none.
    pub settings: Option<ToolSettings>,
}

/// What registration yields.
#[derive(Debug)]
pub struct Registration {
    /// The tools that are offered, local ones first.
    pub tools: Vec<RegisteredTool>,
    /// What to log, in order.
    pub records: Vec<Record>,
    /// What must stop the start.
    pub violations: Vec<String>,
    /// What to remember for the next run.
    pub known: KnownTools,
}

/// One log line, possibly of several lines of text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// How bad it is.
    pub level: Level,
    /// The text, exact.
    pub text: String,
}

/// The levels the texts speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// For those who look closely.
    Debug,
    /// Worth knowing.
    Info,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
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
