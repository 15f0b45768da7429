//! The configuration as Haft runs it: complete, checked, each value with its origin.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Dialect;
use super::agent::{AgentConfig, BuiltinConfig, InboxConfig};
use super::broken::MisconfiguredServer;
use super::bytes::FreeSpace;
use super::call_limits::LimitSettings;
use super::choices::{
    Approval, Background, ConnectFailure, InheritEnv, ListChanged, LogShip, LogSync, Mode,
    NameCollision, OnLimit, OnLogFailure, Protocol, RuntimeViolation, Sampling, Start, StoreKind,
    ToolPrefix,
};
use super::expand::VariableUse;
use super::gateway::{GatewayConfig, Profile};
use super::limits::LimitsConfig;
use super::lock_file::LockFile;
use super::metadata::ToolMetadata;
use super::oauth::OauthConfig;
use super::pattern::NamePattern;
use super::place::{Place, Problem};
use super::rules::FlowLabel;
use super::sandbox::SandboxConfig;
use super::secret::{Masked, Opaque, Secret, ServerUrl};
use super::select::SelectConfig;
use super::service::{ApiConfig, PolicyConfig, TelemetryConfig};
use super::shared::SharedConfig;
use super::tool_overrides::ToolOverrides;
use crate::definition::ToolDefinition;
use crate::schema::Schema;

/// The valid configuration from files, environment and defaults.
#[derive(Debug, Clone)]
pub struct Config {
    /// The files it was made from, with their formats.
    pub files: Vec<ConfigFile>,
    /// Defaults for every tool and server.
    pub defaults: Defaults,
    /// MCP servers, in the order of the files.
    pub servers: Vec<ServerConfig>,
    /// Explicit settings of tools, in the order of the files.
    pub tools: Vec<ToolEntry>,
    /// Local tools, in the order of the files.
    pub local: Vec<Arc<LocalTool>>,
    /// The registry's folder, if configured.
    pub registry_dir: Option<Setting<PathBuf>>,
    /// The place of the registry's documents.
    pub registry_store: Setting<StoreKind>,
    /// The database that several replicas share, if configured.
    pub shared: Option<Box<SharedConfig>>,
    /// The execution log.
    pub log: LogConfig,
    /// Limits on what clients, servers, models and files send, and on what is in flight.
    pub limits: LimitsConfig,
    /// The folder for state between runs.
    pub state_dir: Setting<PathBuf>,
    /// The HTTP API.
    pub api: ApiConfig,
    /// The policy for registrations over it.
    pub policy: PolicyConfig,
    /// The settings of tool selection.
    pub select: SelectConfig,
    /// The export of traces.
    pub telemetry: TelemetryConfig,
    /// The toolbox as an MCP server.
    pub gateway: GatewayConfig,
    /// Parts of the toolbox, in the order of the files.
    pub profiles: Vec<Profile>,
    /// The tools that Haft brings itself.
    pub builtin: Box<BuiltinConfig>,
    /// Questions to people.
    pub inbox: InboxConfig,
    /// The agent.
    pub agent: Box<AgentConfig>,
    /// The lock file beside the configuration.
    pub lock: LockFile,
    /// Every reference to a variable of the environment, resolved or not.
    pub(super) variables: Vec<VariableUse>,
    /// Servers whose entries have problems and are not used.
    pub misconfigured: Vec<MisconfiguredServer>,
    /// Problems that do not prevent the start.
    pub warnings: Vec<Problem>,
    /// The secrets of servers that were left out.
    pub(super) left_out: LeftOut,
}

/// Secrets that are masked although nothing in the configuration holds them any more.
#[derive(Debug, Clone, Default)]
pub(super) struct LeftOut {
    pub(super) secrets: Vec<Secret>,
    /// Those that are masked in descriptions too.
    pub(super) described: Vec<Secret>,
}

impl Config {
    /// Leaves all other servers out. Their secrets are still masked: one server may know those of
    /// another.
    pub fn keep_servers(&mut self, names: &[&str]) {
        let hidden = |secrets: Vec<String>| secrets.into_iter().map(Secret::new).collect();
        let (secrets, described) = (hidden(self.secrets()), hidden(self.described_secrets()));
        self.left_out = LeftOut { secrets, described };
        self.servers.retain(|server| names.contains(&server.name.as_str()));
    }

    /// Leaves out the servers that a profile cannot show: all of them if the profile is unknown.
    pub fn keep_profile(&mut self, name: &str) {
        let profile = self.profile(name).cloned();
        let shows = |server: &str| profile.as_ref().is_some_and(|it| it.may_show_server(server));
        let servers = self.servers.iter().map(|server| server.name.clone());
        let kept: Vec<String> = servers.filter(|server| shows(server)).collect();
        self.keep_servers(&kept.iter().map(String::as_str).collect::<Vec<_>>());
        self.misconfigured.retain(|server| shows(&server.name));
    }

    /// The folder for the tokens of `haft login`.
    pub fn tokens_dir(&self) -> PathBuf {
        self.state_dir.value.join("tokens")
    }

    /// The variables of Haft's environment that the entry at `entry` refers to, also those whose
    /// values are currently unused.
    pub fn variables_of(&self, entry: &Place) -> impl Iterator<Item = &str> {
        let inside = self.variables.iter().filter(|used| used.is_inside(entry));
        inside.map(|used| used.variable.as_str())
    }

    /// The variables of the environment that the files refer to, each once, in the order of names.
    pub fn variable_names(&self) -> Vec<&str> {
        let used = self.variables.iter().map(|used| used.variable.as_str());
        let broken = self.misconfigured.iter().flat_map(|server| &server.variables);
        let mut names: Vec<&str> = used.chain(broken.map(String::as_str)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns true if a file is one of the registry's two.
    pub fn is_registry_file(&self, name: &str) -> bool {
        let Some(registry) = &self.registry_dir else { return false };
        let file = self.files.iter().find(|file| *file.name == *name);
        file.is_some_and(|file| file.path.parent() == Some(registry.value.as_path()))
    }
}

/// A file the configuration was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Its displayed name.
    pub name: Arc<str>,
    /// Its format.
    pub dialect: Dialect,
    /// Its path.
    pub path: PathBuf,
    /// SHA-256 of its content, to detect changes.
    pub digest: [u8; 32],
}

/// A value and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Its origin.
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// A default value.
    pub fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// Someone wrote it: in a file, or in an environment variable.
    Explicit(Place),
    /// The default of a server, which someone wrote.
    ServerDefault(String, Place),
    /// Follows from another setting, which is named.
    Implied(&'static str),
    /// The default of the file's format.
    Format(Dialect),
    /// The built-in default.
    Default,
}

impl Origin {
    /// `explicit`, `default` or `merged`, for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Explicit(_) => "explicit",
            Self::ServerDefault(..) | Self::Implied(_) | Self::Format(_) | Self::Default => {
                "default"
            }
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Explicit(place) => write!(f, "{place}"),
            Self::ServerDefault(server, place) => {
                write!(f, "default_tool_config of `{server}`, {place}")
            }
            Self::Implied(why) => write!(f, "{why}"),
            Self::Format(dialect) => write!(f, "default of {dialect} files"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// Defaults for every tool and server.
#[derive(Debug, Clone)]
pub struct Defaults {
    /// Time limit of a local tool.
    pub tool_timeout: Setting<Duration>,
    /// Maximum number of concurrent calls over all tools.
    pub max_concurrent: Setting<u32>,
    /// The reaction of a call to a reached limit.
    pub on_limit: Setting<OnLimit>,
    /// Maximum number of waiting calls of one tool.
    pub queue_max: Setting<u32>,
    /// Maximum wait of a call.
    pub queue_timeout: Setting<Duration>,
    /// The handling of two tools with one name.
    pub on_name_collision: Setting<NameCollision>,
    /// The handling of an unset `${VAR}`.
    pub unresolved_env: Setting<super::choices::UnresolvedEnv>,
    /// The handling of strict violations at run time.
    pub on_runtime_violation: Setting<RuntimeViolation>,
    /// The Python that runs script tools.
    pub python: Setting<Masked>,
    /// Text beyond this is cut from what a model is shown.
    pub output_bytes_max: Setting<u32>,
    /// The sandbox of servers and tools that have none of their own.
    pub sandbox: Box<Setting<SandboxConfig>>,
}

/// The execution log.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// The folder of its files.
    pub dir: Setting<PathBuf>,
    /// For how many days entries are kept at least.
    pub retain_days: Setting<u32>,
    /// The most that all files may have together.
    pub max_bytes: Setting<Option<u64>>,
    /// Disk space to keep free.
    pub keep_free: Setting<FreeSpace>,
    /// The place that entries are shipped to.
    pub ship: Setting<LogShip>,
    /// The most that files may have together while they wait to be shipped.
    pub spool_max: Setting<u64>,
    /// The handling of calls when the log cannot be written.
    pub on_failure: Setting<OnLogFailure>,
    /// The time at which an entry counts as written.
    pub sync: Setting<LogSync>,
    /// True if the user request of a call is logged too.
    pub requests: Setting<bool>,
}

/// One MCP server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Its name.
    pub name: String,
    /// The place of its configuration.
    pub place: Place,
    /// The format of that file.
    pub dialect: Dialect,
    /// The places of the parts of its endpoint, by key: `url`, `headers.Authorization`, `env.A`.
    pub(super) written: HashMap<String, Place>,
    /// Its purpose.
    pub description: Option<String>,
    /// Its endpoint.
    pub endpoint: Endpoint,
    /// The handling of its unconfigured tools.
    pub mode: Setting<Mode>,
    /// Settings of its unconfigured tools.
    pub default_tool_config: ToolSettings,
    /// The handling of a failed connection at start.
    pub on_connect_failure: Setting<ConnectFailure>,
    /// The time at which it connects.
    pub start: Setting<Start>,
    /// The reconnection policy.
    pub reconnect: Reconnect,
    /// Time limit for connecting.
    pub connect_timeout: Setting<Duration>,
    /// Time limit of one request.
    pub request_timeout: Setting<Duration>,
    /// Maximum idle time of an event stream.
    pub sse_read_timeout: Setting<Duration>,
    /// True if its session is ended on close.
    pub terminate_on_close: Setting<bool>,
    /// True if its tools are registered.
    pub load_tools: Setting<bool>,
    /// True if its prompts are listed.
    pub load_prompts: Setting<bool>,
    /// Prompts to fetch at start.
    pub prompts: Setting<Vec<String>>,
    /// The handling of a changed tool list.
    pub list_changed: Setting<ListChanged>,
    /// The handling of its sampling requests.
    pub sampling: Setting<Sampling>,
    /// The tools to register.
    pub filter: Setting<ServerToolFilter>,
    /// Prefixing of its tools with its name.
    pub tool_prefix: Setting<ToolPrefix>,
    /// The protocol era to use.
    pub protocol: Setting<Protocol>,
    /// The sandbox of its process. A remote server has none.
    pub sandbox: Setting<SandboxConfig>,
    /// The limits on calls of all its tools together.
    pub limits: LimitSettings,
    /// Settings handed to the server.
    pub config: Option<Opaque>,
    /// The role of its tools' data in a session.
    pub labels: Option<Vec<FlowLabel>>,
    /// True if it is not used.
    pub disabled: Setting<bool>,
}

impl ServerConfig {
    /// The place of a part of its endpoint, by key: `url`, `cwd`, `env_file`.
    pub fn place_of(&self, key: &str) -> Option<&Place> {
        self.written.get(key)
    }

    /// Returns true if a connection made for `self` can serve `other` too. Origins of values do not
    /// matter, and neither do settings that only registration uses.
    pub fn is_same_connection(&self, other: &Self) -> bool {
        let timeouts = |it: &Self| {
            (it.connect_timeout.value, it.request_timeout.value, it.sse_read_timeout.value)
        };
        let lists =
            |it: &Self| (it.load_tools.value, it.load_prompts.value, it.prompts.value.clone());
        let rules = |it: &Self| {
            (it.protocol.value, it.sampling.value, it.list_changed.value, it.start.value)
        };
        let pauses = |it: &Self| {
            let Reconnect { attempts, base, factor, max } = &it.reconnect;
            (attempts.value, base.value, factor.value.to_bits(), max.value)
        };
        self.name == other.name
            && self.endpoint == other.endpoint
            && self.terminate_on_close.value == other.terminate_on_close.value
            && self.config == other.config
            && self.sandbox.value == other.sandbox.value
            && timeouts(self) == timeouts(other)
            && lists(self) == lists(other)
            && rules(self) == rules(other)
            && pauses(self) == pauses(other)
    }
}

/// The endpoint of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Endpoint {
    /// A child process.
    Stdio(Box<StdioEndpoint>),
    /// Streamable HTTP, falling back to legacy SSE.
    Http(RemoteEndpoint),
    /// Legacy HTTP with server-sent events.
    Sse(RemoteEndpoint),
    /// WebSocket.
    Websocket(RemoteEndpoint),
}

impl Endpoint {
    /// The transport's word.
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
            Self::Websocket(_) => "websocket",
        }
    }
}

impl Endpoint {
    /// The OAuth settings of a remote server, if configured.
    pub fn oauth(&self) -> Option<&OauthConfig> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(remote) | Self::Sse(remote) | Self::Websocket(remote) => {
                remote.oauth.as_ref()
            }
        }
    }
}

/// The address, or the command line: the server's url in messages.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio(stdio) => {
                write!(f, "{}", stdio.command)?;
                stdio.args.iter().try_for_each(|arg| write!(f, " {arg}"))
            }
            Self::Http(remote) | Self::Sse(remote) | Self::Websocket(remote) => {
                write!(f, "{}", remote.url)
            }
        }
    }
}

/// A child process that speaks MCP on its stdin and stdout.
#[derive(Debug, Clone, PartialEq)]
pub struct StdioEndpoint {
    /// The program.
    pub command: Masked,
    /// Its arguments.
    pub args: Vec<Masked>,
    /// Its working directory; Haft's own by default.
    pub cwd: Option<PathBuf>,
    /// Variables it gets; `None` removes one. From `env_file` first, then `env`.
    pub env: Vec<(String, Option<Secret>)>,
    /// The file some of them come from.
    pub env_file: Option<PathBuf>,
    /// The variables of Haft's environment that it sees.
    pub inherit_env: Setting<InheritEnv>,
    /// The text encoding of its input and output, by its canonical name.
    pub encoding: Setting<&'static str>,
}

/// A remote server.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteEndpoint {
    /// Its address.
    pub url: ServerUrl,
    /// Headers sent with every request.
    pub headers: Vec<(String, Secret)>,
    /// Its OAuth settings, if configured.
    pub oauth: Option<OauthConfig>,
}

/// The reconnection policy.
#[derive(Debug, Clone)]
pub struct Reconnect {
    /// Maximum number of attempts after the first failure.
    pub attempts: Setting<u32>,
    /// The first pause.
    pub base: Setting<Duration>,
    /// The factor between two pauses.
    pub factor: Setting<f64>,
    /// The longest pause.
    pub max: Setting<Duration>,
}

/// The tools of a server to register. Names are the server's own, alone or as `server/tool`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerToolFilter {
    /// All.
    All,
    /// Only these.
    Allow(Vec<NamePattern>),
    /// All but these.
    Deny(Vec<NamePattern>),
}

impl ServerToolFilter {
    /// Returns true if a tool of `server` passes.
    pub fn passes(&self, server: &str, tool: &str) -> bool {
        let is_listed =
            |patterns: &[NamePattern]| patterns.iter().any(|it| it.fits_tool(server, tool));
        match self {
            Self::All => true,
            Self::Allow(patterns) => is_listed(patterns),
            Self::Deny(patterns) => !is_listed(patterns),
        }
    }
}

/// Settings of tools as far as someone wrote them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolSettings {
    /// Maximum number of concurrent calls.
    pub max_instances: Option<Setting<u32>>,
    /// Time limit of one call.
    pub timeout: Option<Setting<Duration>>,
    /// True if calls may run at the same time.
    pub parallel_capable: Option<Setting<bool>>,
    /// The approval that calls need.
    pub approval: Option<Setting<Approval>>,
    /// The reaction of a call to a reached limit.
    pub on_limit: Option<Setting<OnLimit>>,
    /// The limits of its calls.
    pub limits: LimitSettings,
    /// Requests the tool is meant for.
    pub examples: Option<Setting<Vec<String>>>,
}

/// Explicit settings of one tool.
#[derive(Debug, Clone)]
pub struct ToolEntry {
    /// The tool's name.
    pub name: String,
    /// The server it must come from, if stated.
    pub mcp: Option<String>,
    /// Overrides the server's mode.
    pub mode: Option<Setting<Mode>>,
    /// Its settings.
    pub settings: ToolSettings,
    /// Declared metadata, which replaces the tool's own.
    pub metadata: ToolMetadata,
    /// Its name, description and arguments, as far as they are overridden.
    pub overrides: ToolOverrides,
    /// The role of its data in a session, in place of its server's labels.
    pub labels: Option<Vec<FlowLabel>>,
    /// The place of the entry.
    pub place: Place,
}

/// One tool that runs here.
#[derive(Debug, Clone)]
pub struct LocalTool {
    /// The definition for callers, `metadata` included.
    pub definition: Arc<ToolDefinition>,
    /// The compiled schemas of the definition, as far as its entry has them.
    pub schemas: CompiledSchemas,
    /// The metadata that its entry declares.
    pub metadata: ToolMetadata,
    /// The settings of its entry, which counts as the tool's configuration.
    pub settings: Arc<ToolSettings>,
    /// Its program.
    pub program: LocalProgram,
    /// The handling of processes that a call leaves running.
    pub background: Setting<Background>,
    /// The sandbox of its processes.
    pub sandbox: Setting<SandboxConfig>,
    /// The origin of its input schema.
    pub schema: SchemaSource,
    /// Variables it gets; `None` removes one.
    pub env: Vec<(String, Option<Secret>)>,
    /// The result of its preparation, which comes after the configuration is loaded.
    pub prepared: PreparedTool,
    /// The folder its script must lie in.
    pub tools_dir: PathBuf,
    /// The place of its definition.
    pub place: Place,
}

/// Schemas that were compiled when the configuration was loaded.
#[derive(Clone, Default)]
pub struct CompiledSchemas {
    /// Validates the arguments.
    pub input: Option<Arc<Schema>>,
    /// Validates the structured output.
    pub output: Option<Arc<Schema>>,
}

impl fmt::Debug for CompiledSchemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, output } = self;
        let (input, output) = (input.is_some(), output.is_some());
        f.debug_struct("CompiledSchemas").field("input", &input).field("output", &output).finish()
    }
}

/// The result of preparing a local tool for its registration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PreparedTool {
    /// True if each argument is a parameter of the function.
    pub is_by_name: bool,
    /// The Python with its packages, if it needs any.
    pub python: Option<PathBuf>,
    /// The reason why it is not registered.
    pub problem: Option<String>,
}

/// The origin of a local tool's input schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaSource {
    /// Its entry.
    Entry,
    /// The signature and the docstring of its function.
    Signature,
}

/// The program of a local tool.
#[derive(Debug, Clone, PartialEq)]
pub enum LocalProgram {
    /// A Python script in a warm worker.
    Python {
        /// The script, relative to the tools directory.
        script_path: String,
        /// The function to call.
        entrypoint: String,
        /// The packages it needs.
        requirements: Vec<String>,
    },
    /// Any executable, once per call.
    Command {
        /// The program and its first arguments; empty where the script itself is run.
        command: Vec<Masked>,
        /// The script, relative to the tools directory.
        script_path: Option<String>,
        /// Arguments after the script.
        args: Vec<Masked>,
    },
}
