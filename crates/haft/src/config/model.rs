//! The configuration as Haft runs it: complete, checked, each value with its origin.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Dialect;
use super::agent::{AgentConfig, BuiltinConfig, InboxConfig};
use super::bytes::FreeSpace;
use super::choices::{
    Approval, Background, ConnectFailure, InheritEnv, ListChanged, LogSync, Mode, NameCollision,
    OnLimit, OnLogFailure, Protocol, RuntimeViolation, Sampling, Start, ToolPrefix,
};
use super::expand::VariableUse;
use super::gateway::{GatewayConfig, Profile};
use super::limits::LimitsConfig;
use super::metadata::ToolMetadata;
use super::oauth::OauthConfig;
use super::place::{Place, Problem};
use super::secret::{Masked, Opaque, Secret, ServerUrl};
use super::select::SelectConfig;
use super::service::{ApiConfig, PolicyConfig, TelemetryConfig};
use crate::tool::ToolDefinition;

/// Everything the files, the environment and the defaults say, as one valid whole.
#[derive(Debug, Clone)]
pub struct Config {
    /// The files it was made from, with their formats.
    pub files: Vec<ConfigFile>,
    /// What holds for every tool and server unless it says otherwise.
    pub defaults: Defaults,
    /// MCP servers, in the order of the files.
    pub servers: Vec<ServerConfig>,
    /// Explicit settings of tools, in the order of the files.
    pub tools: Vec<ToolEntry>,
    /// Local tools, in the order of the files.
    pub local: Vec<LocalTool>,
    /// The registry's folder, where one is configured.
    pub registry_dir: Option<Setting<PathBuf>>,
    /// The execution log.
    pub log: LogConfig,
    /// Limits on what clients, servers, models and files send, and on what is in flight.
    pub limits: LimitsConfig,
    /// Where Haft keeps what it remembers between runs.
    pub state_dir: Setting<PathBuf>,
    /// The HTTP API.
    pub api: ApiConfig,
    /// What may be registered over it.
    pub policy: PolicyConfig,
    /// How tools are chosen for a request.
    pub select: SelectConfig,
    /// Where traces go.
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
    /// Every reference to a variable of the environment, resolved or not.
    pub(super) variables: Vec<VariableUse>,
    /// What is worth a line but does not stop the start.
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

    /// Where `haft login` keeps its tokens.
    pub fn tokens_dir(&self) -> PathBuf {
        self.state_dir.value.join("tokens")
    }

    /// The variables of Haft's environment that the entry at `entry` refers to, also those whose values
    /// are not used at the moment.
    pub(crate) fn variables_of(&self, entry: &Place) -> impl Iterator<Item = &str> {
        let inside = self.variables.iter().filter(|used| used.is_inside(entry));
        inside.map(|used| used.variable.as_str())
    }

    /// Whether a file is one of the registry's two.
    pub(crate) fn is_registry_file(&self, name: &str) -> bool {
        let Some(registry) = &self.registry_dir else { return false };
        let file = self.files.iter().find(|file| *file.name == *name);
        file.is_some_and(|file| file.path.parent() == Some(registry.value.as_path()))
    }
}

/// A file the configuration was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Its name, as it is shown.
    pub name: Arc<str>,
    /// Its format.
    pub dialect: Dialect,
    /// Where it lies.
    pub path: PathBuf,
    /// SHA-256 of what it said, to tell whether it says something else now.
    pub digest: [u8; 32],
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// A value nobody set.
    pub fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }
}

/// Where a value came from.
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

/// What holds for every tool and server unless it says otherwise.
#[derive(Debug, Clone)]
pub struct Defaults {
    /// How long a local tool may run.
    pub tool_timeout: Setting<Duration>,
    /// How many calls may run at once over all tools.
    pub max_concurrent: Setting<u32>,
    /// What a call does when a limit is reached.
    pub on_limit: Setting<OnLimit>,
    /// How many calls may wait for one tool.
    pub queue_max: Setting<u32>,
    /// How long a call may wait.
    pub queue_timeout: Setting<Duration>,
    /// What happens when two tools have one name.
    pub on_name_collision: Setting<NameCollision>,
    /// What an unset `${VAR}` means.
    pub unresolved_env: Setting<super::choices::UnresolvedEnv>,
    /// What happens to strict violations at run time.
    pub on_runtime_violation: Setting<RuntimeViolation>,
    /// The Python that runs script tools.
    pub python: Setting<Masked>,
    /// Text beyond this is cut from what a model is shown.
    pub output_bytes_max: Setting<u32>,
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
    /// How much of the disk is left free.
    pub keep_free: Setting<FreeSpace>,
    /// What a failing disk means for calls.
    pub on_failure: Setting<OnLogFailure>,
    /// When an entry counts as written.
    pub sync: Setting<LogSync>,
    /// Whether the request that a call serves is written too.
    pub requests: Setting<bool>,
}

/// One MCP server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Its name.
    pub name: String,
    /// Where it is configured.
    pub place: Place,
    /// The format of that file.
    pub dialect: Dialect,
    /// Where the parts of its endpoint stand, by key: `url`, `headers.Authorization`, `env.A`.
    pub(super) written: HashMap<String, Place>,
    /// What it is for.
    pub description: Option<String>,
    /// How it is reached.
    pub endpoint: Endpoint,
    /// What its unconfigured tools mean.
    pub mode: Setting<Mode>,
    /// Settings of its unconfigured tools.
    pub default_tool_config: ToolSettings,
    /// What a failed connection at start means.
    pub on_connect_failure: Setting<ConnectFailure>,
    /// When it is connected.
    pub start: Setting<Start>,
    /// How a lost connection is made again.
    pub reconnect: Reconnect,
    /// How long connecting may take.
    pub connect_timeout: Setting<Duration>,
    /// How long one request may take.
    pub request_timeout: Setting<Duration>,
    /// How long an event stream may be silent.
    pub sse_read_timeout: Setting<Duration>,
    /// Whether its session is ended on close.
    pub terminate_on_close: Setting<bool>,
    /// Whether its tools are registered.
    pub load_tools: Setting<bool>,
    /// Whether its prompts are listed.
    pub load_prompts: Setting<bool>,
    /// Prompts to fetch at start.
    pub prompts: Setting<Vec<String>>,
    /// What a changed tool list means.
    pub list_changed: Setting<ListChanged>,
    /// Whether it may ask the model.
    pub sampling: Setting<Sampling>,
    /// Which of its tools are registered.
    pub filter: Setting<ToolFilter>,
    /// Whether its tools carry its name.
    pub tool_prefix: Setting<ToolPrefix>,
    /// Which protocol era to speak.
    pub protocol: Setting<Protocol>,
    /// Settings handed to the server.
    pub config: Option<Opaque>,
    /// Whether it is left out.
    pub disabled: Setting<bool>,
}

impl ServerConfig {
    /// The place of a part of its endpoint, by key: `url`, `cwd`, `env_file`.
    pub(crate) fn place_of(&self, key: &str) -> Option<&Place> {
        self.written.get(key)
    }

    /// Whether a connection made for `self` can serve `other` too. Where a value came from does not
    /// matter, and neither does what only registration looks at.
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
            && timeouts(self) == timeouts(other)
            && lists(self) == lists(other)
            && rules(self) == rules(other)
            && pauses(self) == pauses(other)
    }
}

/// How a server is reached.
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
    /// How a remote server's OAuth tokens are got, where a file says so.
    pub fn oauth(&self) -> Option<&OauthConfig> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(remote) | Self::Sse(remote) | Self::Websocket(remote) => {
                remote.oauth.as_ref()
            }
        }
    }
}

/// The address, or the command line: what the texts of the toolbox call the server's url.
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
    /// Its working directory; Haft's own where nothing is said.
    pub cwd: Option<PathBuf>,
    /// Variables it gets; `None` removes one. From `env_file` first, then `env`.
    pub env: Vec<(String, Option<Secret>)>,
    /// The file some of them come from.
    pub env_file: Option<PathBuf>,
    /// Which of Haft's own variables it sees.
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
    /// How its OAuth tokens are got, where a file says so.
    pub oauth: Option<OauthConfig>,
}

/// How a lost connection is made again.
#[derive(Debug, Clone)]
pub struct Reconnect {
    /// How many times to try again after the first failure.
    pub attempts: Setting<u32>,
    /// The first pause.
    pub base: Setting<Duration>,
    /// What each pause is multiplied by.
    pub factor: Setting<f64>,
    /// The longest pause.
    pub max: Setting<Duration>,
}

/// Which tools of a server are registered. Names are the server's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolFilter {
    /// All.
    All,
    /// Only these.
    Allow(Vec<String>),
    /// All but these.
    Deny(Vec<String>),
}

impl ToolFilter {
    /// Whether a tool passes.
    pub fn passes(&self, tool: &str) -> bool {
        match self {
            Self::All => true,
            Self::Allow(names) => names.iter().any(|name| name == tool),
            Self::Deny(names) => !names.iter().any(|name| name == tool),
        }
    }
}

/// Settings of tools as far as someone wrote them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolSettings {
    /// How many calls may run at once.
    pub max_instances: Option<Setting<u32>>,
    /// How long one call may run.
    pub timeout: Option<Setting<Duration>>,
    /// Whether calls may run at the same time.
    pub parallel_capable: Option<Setting<bool>>,
    /// Whether a person has to agree.
    pub approval: Option<Setting<Approval>>,
    /// What a call does when a limit is reached.
    pub on_limit: Option<Setting<OnLimit>>,
    /// Requests the tool is meant for.
    pub examples: Option<Setting<Vec<String>>>,
}

/// Explicit settings of one tool.
#[derive(Debug, Clone)]
pub struct ToolEntry {
    /// The tool's name.
    pub name: String,
    /// The server it must come from, where that is said.
    pub mcp: Option<String>,
    /// Overrides the server's mode.
    pub mode: Option<Setting<Mode>>,
    /// What is set.
    pub settings: ToolSettings,
    /// What is declared for clients, in place of what the tool declares itself.
    pub metadata: ToolMetadata,
    /// Where the entry stands.
    pub place: Place,
}

/// One tool that runs here.
#[derive(Debug, Clone)]
pub struct LocalTool {
    /// What callers see, `metadata` included.
    pub definition: Arc<ToolDefinition>,
    /// What its entry declares for clients.
    pub metadata: ToolMetadata,
    /// What its entry sets; the entry counts as the tool's configuration.
    pub settings: ToolSettings,
    /// What runs it.
    pub program: LocalProgram,
    /// What happens to processes that a call leaves running.
    pub background: Setting<Background>,
    /// The folder its script must lie in.
    pub tools_dir: PathBuf,
    /// Where it is defined.
    pub place: Place,
}

/// What runs a local tool.
#[derive(Debug, Clone, PartialEq)]
pub enum LocalProgram {
    /// A Python script in a warm worker.
    Python {
        /// The script, relative to the tools directory.
        script_path: String,
        /// The function to call.
        entrypoint: String,
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
