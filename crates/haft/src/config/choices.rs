//! The words a configuration may say where there is a choice.

use super::read::choice;

choice! {
    /// How a server is reached.
    pub enum Transport("a transport") {
        /// A child process that speaks on stdin and stdout.
        Stdio = "stdio",
        /// Streamable HTTP, falling back to legacy SSE.
        Http = "http" | "streamable_http" | "streamable-http",
        /// Legacy HTTP with server-sent events.
        Sse = "sse",
        /// WebSocket.
        Websocket = "websocket" | "ws",
    }
}

choice! {
    /// What an unconfigured tool of a server means.
    pub enum Mode("a mode") {
        /// An error.
        Strict = "strict",
        /// A tool with the server's default settings.
        Dynamic = "dynamic",
    }
}

choice! {
    /// What a failed connection at start means.
    pub enum ConnectFailure("a way to handle a failed connection") {
        /// Haft does not start.
        Exit = "exit",
        /// The server is left out with a WARNING.
        Skip = "skip",
    }
}

choice! {
    /// When a server is connected.
    pub enum Start("a time to connect") {
        /// At start.
        Eager = "eager",
        /// At first use.
        Lazy = "lazy",
    }
}

choice! {
    /// What happens when two tools have one name.
    pub enum NameCollision("a way to handle colliding names") {
        /// The tool registered later answers; a WARNING names both.
        LastWins = "last_wins",
        /// The tool registered first answers; a WARNING names both.
        FirstWins = "first_wins",
        /// Haft does not start.
        Error = "error",
        /// The tool registered first keeps its name, the later one is offered as `server__tool`.
        Prefix = "prefix",
    }
}

choice! {
    /// What a call does when a limit is reached.
    pub enum OnLimit("a way to handle a limit") {
        /// It waits for its turn.
        Wait = "wait",
        /// It is answered `Busy` at once.
        Reject = "reject",
    }
}

choice! {
    /// What an unset `${VAR}` means.
    pub enum UnresolvedEnv("a way to handle unset variables") {
        /// The configuration is invalid.
        Error = "error",
        /// A WARNING; the text stays as it is.
        Warn = "warn",
    }
}

choice! {
    /// What happens to an unconfigured tool that a strict server brings at run time.
    pub enum RuntimeViolation("a way to handle strict violations at run time") {
        /// It is not registered; Haft keeps running.
        Refuse = "refuse",
    }
}

choice! {
    /// Which variables of Haft's environment a child sees.
    pub enum InheritEnv("a way to inherit the environment") {
        /// HOME, LOGNAME, PATH, SHELL, TERM, USER, proxy and TLS variables.
        Safe = "safe",
        /// Everything.
        All = "all",
        /// Nothing.
        None = "none",
    }
}

choice! {
    /// What a changed tool list means.
    pub enum ListChanged("a way to handle changed lists") {
        /// The list is fetched again.
        Refresh = "refresh",
        /// Nothing.
        Ignore = "ignore",
    }
}

choice! {
    /// Whether a server may ask the model.
    pub enum Sampling("a way to handle sampling") {
        /// No.
        Deny = "deny",
        /// A person decides each time.
        Ask = "ask",
        /// Yes.
        Allow = "allow",
    }
}

choice! {
    /// Whether tools carry their server's name.
    pub enum ToolPrefix("a tool prefix") {
        /// `tool`.
        None = "none",
        /// `server__tool`.
        Server = "server",
    }
}

choice! {
    /// Which protocol era to speak.
    pub enum Protocol("a protocol era") {
        /// Whatever the server speaks.
        Auto = "auto",
        /// Up to 2025-11-25, with `initialize`.
        Legacy = "legacy",
        /// 2026-07-28, stateless.
        Modern = "modern",
    }
}

choice! {
    /// Whether a person has to agree to a call.
    pub enum Approval("a way to approve calls") {
        /// No.
        Auto = "auto",
        /// Yes, each time.
        Ask = "ask",
    }
}

choice! {
    /// What a failing disk means for calls.
    pub enum OnLogFailure("a way to handle a failing log") {
        /// Calls are refused until the log can be written again.
        Refuse = "refuse",
        /// Calls go on; entries wait in memory as far as there is room.
        Degrade = "degrade",
    }
}

choice! {
    /// When a log entry counts as written.
    pub enum LogSync("a way to write the log") {
        /// When the operating system has it.
        Os = "os",
        /// When the disk has it.
        Disk = "disk",
    }
}

choice! {
    /// What happens to processes that a call of a local tool leaves running.
    pub enum Background("a way to handle processes that a call leaves running") {
        /// They end with the call.
        End = "end",
        /// They continue until Haft ends.
        Allow = "allow",
    }
}

#[expect(clippy::derivable_impls, reason = "the variants of `choice!` take no `#[default]`")]
impl Default for Background {
    fn default() -> Self {
        Self::End
    }
}

choice! {
    /// What runs a local tool.
    pub enum LocalRuntime("a runtime for local tools") {
        /// A Python script in a warm worker.
        Python = "python",
        /// Any executable, once per call.
        Command = "command",
    }
}

choice! {
    /// How tools are shown to MCP clients.
    pub enum Surface("a surface") {
        /// Each by itself.
        All = "all",
        /// By three tools that find, describe and call them.
        Search = "search",
    }
}

choice! {
    /// What keeps code from the rest of the machine.
    pub enum Sandbox("a sandbox") {
        /// Nothing: the code runs as Haft itself does.
        None = "none",
        /// `bwrap`: an own view of the machine in which only the working directory can be written.
        Bubblewrap = "bubblewrap",
    }
}

choice! {
    /// Who searches the web.
    pub enum SearchBackend("a search backend") {
        /// The first that is configured, else `DuckDuckGo`.
        Auto = "auto",
        /// A `SearXNG` instance.
        Searxng = "searxng",
        /// The Brave Search API.
        Brave = "brave",
        /// The Tavily API.
        Tavily = "tavily",
        /// The HTML page of `DuckDuckGo`.
        Duckduckgo = "duckduckgo",
    }
}

choice! {
    /// Approver of calls of tools with `approval: ask` that a served caller makes.
    pub enum Approvals("an approver of calls") {
        /// An admin key, in the request or in the inbox.
        People = "people",
        /// Also the caller itself.
        Caller = "caller",
    }
}
