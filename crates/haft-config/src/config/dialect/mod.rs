//! The formats a file may be in. Each turns into native records; what follows knows only those.

mod agent_yaml;
mod client_json;
mod codex;
mod detect;
pub mod gemini;
mod goose;
mod langchain;
mod mcp_servers;
mod toolbox;
mod tools_json;
mod vscode;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use detect::detect;
pub use tools_json::{RawLocalConfig, RawLocalTool, RawSchema, SIGNATURE, read_split};

use super::choices::{ConnectFailure, Start, UnresolvedEnv};
use super::expand::{References, VariableUse, Variables};
use super::model::LocalTool;
use super::node::{Entry, Node, NodeValue, Text};
use super::raw::{RawConfig, RawServer};
use super::read::{FromNode, Named, Reader, choice};
use super::{At, Place};

choice! {
    /// The format of a file.
    pub enum Dialect("a configuration format") {
        /// Haft's own.
        Native = "native",
        /// `myai.toolbox` with `mcps` and `tools`.
        Toolbox = "toolbox",
        /// A map `mcp_servers`, also as `mcp.json` of a registry.
        McpServers = "mcp-servers",
        /// `tools.json` of a registry.
        ToolsJson = "tools-json",
        /// `agent.yaml` with tools of `type: mcp`.
        AgentYaml = "agent-yaml",
        /// VS Code's `mcp.json`.
        Vscode = "vscode",
        /// Claude Code and Claude Desktop.
        Claude = "claude",
        /// Cursor.
        Cursor = "cursor",
        /// Codex's `config.toml`.
        Codex = "codex",
        /// goose's `config.yaml`.
        Goose = "goose",
        /// The dictionary of LangChain's adapters.
        Langchain = "langchain",
        /// mcphost.
        Mcphost = "mcphost",
        /// MCP Inspector.
        Inspector = "inspector",
    }
}

impl Dialect {
    /// Returns true if the documents of the format prescribe the log lines of a start.
    pub fn prescribes_log_lines(self) -> bool {
        match self {
            Self::Toolbox | Self::McpServers | Self::ToolsJson | Self::AgentYaml => true,
            Self::Native
            | Self::Vscode
            | Self::Claude
            | Self::Cursor
            | Self::Codex
            | Self::Goose
            | Self::Langchain
            | Self::Mcphost
            | Self::Inspector => false,
        }
    }

    /// Every format, in the order of `--config-format`'s help.
    pub const ALL: [Self; 13] = [
        Self::Native,
        Self::Toolbox,
        Self::McpServers,
        Self::ToolsJson,
        Self::AgentYaml,
        Self::Vscode,
        Self::Claude,
        Self::Cursor,
        Self::Codex,
        Self::Goose,
        Self::Langchain,
        Self::Mcphost,
        Self::Inspector,
    ];

    /// The default handling of a failed connection.
    pub fn connect_failure(self) -> ConnectFailure {
        if self == Self::Toolbox { ConnectFailure::Exit } else { ConnectFailure::Skip }
    }

    /// The default time at which servers connect.
    pub fn start(self) -> Start {
        if self == Self::AgentYaml { Start::Lazy } else { Start::Eager }
    }

    /// Default time limit of a request in seconds: that of the format's own tool.
    pub fn request_timeout_secs(self) -> u64 {
        match self {
            Self::Toolbox => 30,
            Self::Codex | Self::Goose => 300,
            Self::Native
            | Self::McpServers
            | Self::ToolsJson
            | Self::AgentYaml
            | Self::Vscode
            | Self::Claude
            | Self::Cursor
            | Self::Langchain
            | Self::Mcphost
            | Self::Inspector => 60,
        }
    }

    /// Returns true if `${...}` in its strings refers to variables. Codex and goose take strings
    /// literally.
    pub(super) fn expands_variables(self) -> bool {
        !matches!(self, Self::Codex | Self::Goose)
    }

    /// Returns true if Haft reads the value at a path of the file. Clients keep other settings
    /// beside their servers, and variables there are not checked.
    pub(super) fn reads(self, path: &[String], cwd: &str) -> bool {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match self {
            Self::Claude | Self::Cursor | Self::Mcphost | Self::Inspector => match path[..] {
                [] | ["projects" | "mcpServers"] => true,
                ["projects", folder] => Path::new(folder) == Path::new(cwd),
                ["projects", _, section, ..] | [section, ..] => section == "mcpServers",
            },
            Self::AgentYaml => match path[..] {
                [] | ["tools", ..] | ["model"] => true,
                ["model", field, ..] => ["provider", "name", "endpoint"].contains(&field),
                [..] => false,
            },
            Self::McpServers => match path[..] {
                [] | ["tools"] => true,
                ["tools", section, ..] | [section, ..] => section == "mcp_servers",
            },
            Self::Toolbox => match path[..] {
                [] | ["myai"] => true,
                ["myai", section, ..] => section == "toolbox",
                [section, ..] => ["toolbox", "max_concurrent", "tools", "mcps"].contains(&section),
            },
            Self::Native
            | Self::ToolsJson
            | Self::Vscode
            | Self::Codex
            | Self::Goose
            | Self::Langchain => true,
        }
    }
}

/// One file, turned into native records.
pub struct Layer {
    /// Its format.
    pub dialect: Dialect,
    /// The base of its relative paths.
    pub folder: PathBuf,
    /// Its content.
    pub config: RawConfig,
    /// Local tools it defines.
    pub local: Vec<LocalItem>,
    /// True if servers run in `folder` by default.
    pub runs_in_folder: bool,
    /// References to variables in it.
    pub variables: Vec<VariableUse>,
}

/// A local tool of a file.
pub enum LocalItem {
    /// It has to be compiled.
    Raw(Box<RawLocalTool>),
    /// An earlier load compiled it.
    Known(Arc<LocalTool>),
}

impl LocalItem {
    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Raw(tool) => tool.name.as_ref().map(|name| name.value.as_str()),
            Self::Known(tool) => Some(&tool.definition.name),
        }
    }

    /// Its place.
    pub fn place(&self) -> &Place {
        match self {
            Self::Raw(tool) => &tool.place,
            Self::Known(tool) => &tool.place,
        }
    }
}

/// The environment of a file, for its format.
pub struct FileContext<'a> {
    /// The folder Haft runs in.
    pub cwd: &'a str,
    /// The environment and what an unset variable means.
    pub variables: &'a Variables<'a>,
}

impl FileContext<'_> {
    /// The value of a variable that the file names without `${...}`.
    fn variable(&self, name: &str, place: &Place, reader: &mut Reader<'_>) -> Option<Text> {
        let shown = format!("${{{name}}}");
        self.variables.record(name, reader);
        if self.variables.references == References::Keep {
            return Some(Text { text: shown, shown: None });
        }
        if let Some(value) = self.variables.environment.get(name) {
            return Some(Text { text: value.clone(), shown: Some(shown) });
        }
        let problem = format!("Environment variable '{name}' not found");
        match self.variables.unresolved {
            UnresolvedEnv::Error => reader.error_at(place, problem, "Please set it and try again"),
            UnresolvedEnv::Warn => reader.warn_at(place, problem, format!("set {name}")),
        }
        None
    }

    /// The value of a variable that is passed on only if it is set.
    fn variable_if_set(&self, name: &str, place: &Place, reader: &mut Reader<'_>) -> Option<Text> {
        let shown = format!("${{{name}}}");
        self.variables.record(name, reader);
        let value = self.variables.environment.get(name);
        match (self.variables.references, value) {
            (References::Resolve, value) => Some(Text { text: value?.clone(), shown: Some(shown) }),
            (References::Keep, Some(_)) => Some(Text { text: shown, shown: None }),
            (References::Keep, None) => {
                let problem =
                    format!("`{name}` is handed on where it is set, and it is not set here");
                let remedy = format!("if the server needs it, add `{name}: {shown}` to its `env`");
                reader.warn_at(place, problem, remedy);
                None
            }
        }
    }
}

/// Reads a parsed file in its format.
pub fn read(root: &Node, layer: &mut Layer, reader: &mut Reader<'_>, context: &FileContext<'_>) {
    let dialect = layer.dialect;
    match dialect {
        Dialect::Native => {
            if let Some(mut config) = RawConfig::read(root, reader) {
                let local = config.local_tools.take().map(|it| it.value).unwrap_or_default();
                let local = tools_json::local_tools(local, reader).into_iter();
                layer.local.extend(local.map(|tool| LocalItem::Raw(Box::new(tool))));
                layer.config = config;
            }
        }
        Dialect::Toolbox => toolbox::read(root, layer, reader),
        Dialect::McpServers => mcp_servers::read(root, layer, reader),
        Dialect::ToolsJson => tools_json::read(root, layer, reader),
        Dialect::AgentYaml => agent_yaml::read(root, layer, reader),
        Dialect::Vscode => vscode::read(root, layer, reader),
        Dialect::Claude | Dialect::Cursor | Dialect::Mcphost | Dialect::Inspector => {
            client_json::read(root, layer, reader, context);
        }
        Dialect::Codex => codex::read(root, layer, reader, context),
        Dialect::Goose => goose::read(root, layer, reader, context),
        Dialect::Langchain => langchain::read(root, layer, reader),
    }
}

/// Parts of a map in two: the entries with the given keys, and the others.
fn part(node: &Node, keys: &[&str]) -> (Node, Node) {
    let (taken, rest): (Vec<Entry>, Vec<Entry>) =
        node.entries().iter().cloned().partition(|entry| keys.contains(&entry.key.as_str()));
    let map = |entries| Node::new(NodeValue::Map(entries), node.mark);
    (map(taken), map(rest))
}

/// Adds servers to the layer.
fn set_servers(layer: &mut Layer, servers: Vec<(At<String>, RawServer)>, place: Place) {
    layer.config.servers = Some(At { value: Named(servers), place });
}
