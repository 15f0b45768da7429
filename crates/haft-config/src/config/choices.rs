//! The enumerated values of the configuration.

use super::read::choice;

choice! {
    /// The transport of a server.
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
    /// The handling of a server's unconfigured tools.
    pub enum Mode("a mode") {
        /// An error.
        Strict = "strict",
        /// A tool with the server's default settings.
        Dynamic = "dynamic",
    }
}

choice! {
    /// The handling of a failed connection at start.
    pub enum ConnectFailure("a way to handle a failed connection") {
        /// Haft does not start.
        Exit = "exit",
        /// The server is left out with a WARNING.
        Skip = "skip",
    }
}

choice! {
    /// The time at which a server connects.
    pub enum Start("a time to connect") {
        /// At start.
        Eager = "eager",
        /// At first use.
        Lazy = "lazy",
    }
}

choice! {
    /// The handling of two tools with one name.
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
    /// The reaction of a call to a reached limit.
    pub enum OnLimit("a way to handle a limit") {
        /// It waits for its turn.
        Wait = "wait",
        /// It is answered `Busy` at once.
        Reject = "reject",
    }
}

choice! {
    /// The handling of an unset `${VAR}`.
    pub enum UnresolvedEnv("a way to handle unset variables") {
        /// The configuration is invalid.
        Error = "error",
        /// A WARNING; the text stays unmodified.
        Warn = "warn",
    }
}

choice! {
    /// The handling of an unconfigured tool that a strict server adds at run time.
    pub enum RuntimeViolation("a way to handle strict violations at run time") {
        /// It is not registered; Haft keeps running.
        Refuse = "refuse",
    }
}

choice! {
    /// The variables of Haft's environment that a child sees.
    pub enum InheritEnv("a way to inherit the environment") {
        /// HOME, LOGNAME, PATH, SHELL, TERM, USER, proxy and TLS variables.
        Safe = "safe",
        /// Everything.
        All = "all",
        /// No variables.
        None = "none",
    }
}

choice! {
    /// The handling of a changed tool list.
    pub enum ListChanged("a way to handle changed lists") {
        /// The list is fetched again.
        Refresh = "refresh",
        /// Ignore it.
        Ignore = "ignore",
    }
}

choice! {
    /// The handling of a server's sampling requests.
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
    /// Prefixing of tools with their server's name.
    pub enum ToolPrefix("a tool prefix") {
        /// `tool`.
        None = "none",
        /// `server__tool`.
        Server = "server",
    }
}

choice! {
    /// The protocol era to use.
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
    /// The approval that a call needs.
    pub enum Approval("a way to approve calls") {
        /// No.
        Auto = "auto",
        /// Yes, each time.
        Ask = "ask",
    }
}

choice! {
    /// The handling of calls when the log cannot be written.
    pub enum OnLogFailure("a way to handle a failing log") {
        /// Calls are refused until the log can be written again.
        Refuse = "refuse",
        /// Calls continue; entries wait in memory within its limit.
        Degrade = "degrade",
    }
}

choice! {
    /// The time at which a log entry counts as written.
    pub enum LogSync("a way to write the log") {
        /// Once the operating system has it.
        Os = "os",
        /// Once the disk has it.
        Disk = "disk",
    }
}

choice! {
    /// The place that the log is shipped to.
    pub enum LogShip("a place for the log") {
        /// It stays in its files.
        None = "none",
        /// The database of `shared`.
        Shared = "shared",
    }
}

choice! {
    /// The handling of processes that a call of a local tool leaves running.
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
    /// The runtime of a local tool.
    pub enum LocalRuntime("a runtime for local tools") {
        /// A Python script in a warm worker.
        Python = "python",
        /// Any executable, once per call.
        Command = "command",
    }
}

choice! {
    /// The presentation of tools to MCP clients.
    pub enum Surface("a surface") {
        /// Each by itself.
        All = "all",
        /// Three tools that find, describe and call them.
        Search = "search",
    }
}

choice! {
    /// The isolation of a program from the rest of the machine.
    pub enum Sandbox("a sandbox") {
        /// None: the program runs with the rights of Haft.
        None = "none",
        /// `bwrap`: an own view of the machine.
        Bubblewrap = "bubblewrap",
        /// Rules that the kernel enforces on the program and its children.
        Landlock = "landlock",
    }
}

choice! {
    /// The web search service.
    pub enum SearchBackend("a search backend") {
        /// The first that is configured, otherwise `DuckDuckGo`.
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
    /// The scripts that tools registered over the API may run.
    pub enum AllowedScripts("a choice of scripts") {
        /// Those in the registry's folder.
        Existing = "existing",
        /// Also those that the registration brings along.
        Upload = "upload",
    }
}

choice! {
    /// The handling of a definition that differs from the lock file.
    pub enum Definitions("a way to handle changed definitions") {
        /// The approved definition is offered, and calls are refused until the new one is approved.
        Block = "block",
        /// The new definition is used; a WARNING names it.
        Warn = "warn",
        /// The new definition is used.
        Follow = "follow",
    }
}

choice! {
    /// Approver of calls of tools with `approval: ask` that a served caller makes.
    pub enum Approvals("an approver of calls") {
        /// A key with the scope `approve` or `admin`, in the request or in the inbox.
        People = "people",
        /// Also the caller itself.
        Caller = "caller",
    }
}

choice! {
    /// The place of a registry's documents.
    pub enum StoreKind("a place for the registry") {
        /// Two files in `registry.dir`.
        Files = "files",
        /// The database of `shared`.
        Shared = "shared",
    }
}

choice! {
    /// The time at which the tables of the database are created and changed.
    pub enum Migrate("a time to migrate") {
        /// At the start of `haft serve`, if needed.
        Auto = "auto",
        /// Only by `haft shared migrate`.
        Manual = "manual",
    }
}
