//! The native file, as written. Every other format is turned into these records.

use serde_json::Value;

use super::bytes::{ByteCount, FreeSpace};
use super::call_limits::{Burst, Quota, Rate};
use super::choices::{
    Approval, ConnectFailure, InheritEnv, ListChanged, LogShip, LogSync, Mode, NameCollision,
    OnLimit, OnLogFailure, Protocol, RuntimeViolation, Sampling, Start, StoreKind, ToolPrefix,
    Transport, UnresolvedEnv,
};
use super::dialect::RawLocalTool;
use super::node::Text;
use super::quantity::{Count, CountOrZero, EnvValue, Factor, Span};
use super::raw_agent::{RawAgent, RawBuiltin, RawInbox};
use super::raw_gateway::{RawGateway, RawProfile};
use super::raw_limits::RawLimits;
use super::raw_metadata::{RawAnnotations, RawIcon};
use super::raw_oauth::RawOauth;
use super::raw_rules::FlowLabel;
use super::raw_sandbox::SandboxEntry;
use super::raw_service::{RawApi, RawPolicy, RawTelemetry};
use super::raw_shared::RawShared;
use super::read::{Named, record};
use super::tool_overrides::FixedValue;

record! {
    /// A whole native file.
    pub struct RawConfig("the configuration", Reject) {
        /// Defaults for every tool and server.
        defaults("defaults"): RawDefaults,
        /// MCP servers by name.
        servers("servers"): Named<RawServer>,
        /// Settings of single tools.
        tools("tools"): Vec<RawTool>,
        /// Local tools: scripts and commands, each an entry as in `tools.json`. Scripts lie in the folder of this file.
        local_tools("local_tools"): Vec<RawLocalTool>,
        /// Folder with `tools.json` and `mcp.json`.
        registry("registry"): RawRegistry,
        /// The execution log.
        log("log"): RawLog,
        /// Limits on what clients, servers, models and files send, and on what is in flight.
        limits("limits"): RawLimits,
        /// Folder for what Haft remembers between runs; `.haft` beside the file by default.
        state_dir("state_dir"): Text,
        /// Built-in tools.
        builtin("builtin"): RawBuiltin,
        /// Questions to people.
        inbox("inbox"): RawInbox,
        /// The agent: `haft run`, `haft chat`, and runs over the API.
        agent("agent"): RawAgent,
        /// The settings of tool selection.
        select("select"): RawSelect,
        /// The HTTP API.
        api("api"): RawApi,
        /// The policy for registrations over the API.
        policy("policy"): RawPolicy,
        /// The export of traces.
        telemetry("telemetry"): RawTelemetry,
        /// The PostgreSQL database that several replicas of `haft serve` share. Without it, state is in files.
        shared("shared"): RawShared,
        /// The toolbox as an MCP server: `haft mcp`, and `/mcp` of `haft serve`.
        gateway("gateway"): RawGateway,
        /// Parts of the toolbox by name, each a separate MCP server: `haft mcp --profile NAME`, and
        /// `/mcp/NAME` of `haft serve`.
        profiles("profiles"): Named<RawProfile>,
    }
}

record! {
    /// `defaults`.
    pub struct RawDefaults("`defaults`", Reject) {
        /// Time limit of a local tool; 30 s by default.
        tool_timeout("tool_timeout"): Span,
        /// Maximum number of concurrent calls over all tools; 100 by default, in toolbox files 10.
        max_concurrent("max_concurrent"): Count,
        /// The reaction of a call to a reached limit: `wait` (the default) or `reject`.
        on_limit("on_limit"): OnLimit,
        /// Maximum number of waiting calls of one tool; 1000 by default.
        queue_max("queue_max"): Count,
        /// Maximum wait of a call for a slot; 5 minutes by default.
        queue_timeout("queue_timeout"): Span,
        /// The handling of two tools with one name: by default `prefix` (the later one is offered
        /// as `server__tool`), in toolbox files `last_wins`.
        on_name_collision("on_name_collision"): NameCollision,
        /// The handling of an unset `${VAR}`: `error` (the default) or `warn`, which keeps it
        /// unmodified.
        unresolved_env("unresolved_env"): UnresolvedEnv,
        /// The handling of an unconfigured tool that a strict server adds later: `refuse`.
        on_runtime_violation("on_runtime_violation"): RuntimeViolation,
        /// The Python that runs script tools; `python3` by default.
        python("python"): Text,
        /// Text beyond this many bytes is cut from what a model is shown; 262144 by default.
        output_bytes_max("output_bytes_max"): Count,
        /// The sandbox of stdio servers, local tools and `code_execution` that have none of their own; `none` by default.
        sandbox("sandbox"): SandboxEntry,
    }
}

record! {
    /// One entry of `servers`.
    pub struct RawServer("a server", Reject) {
        /// The transport of the server; by default `stdio` with a `command` and `http` with a
        /// `url`.
        transport("transport"): Transport,
        /// The purpose of the server.
        description("description"): String,
        /// The program to start.
        command("command"): Text,
        /// Its arguments.
        args("args"): Vec<Text>,
        /// Its working directory, relative to this file.
        cwd("cwd"): Text,
        /// Variables for its environment; `null` removes one.
        env("env"): Named<EnvValue>,
        /// A file with `NAME=value` lines; `env` wins over it.
        env_file("env_file" | "envFile"): Text,
        /// The variables of Haft's own environment that it sees: `safe` (the default), `all`,
        /// `none`.
        inherit_env("inherit_env"): InheritEnv,
        /// The text encoding of its input and output; `utf-8` by default.
        encoding("encoding"): Text,
        /// The sandbox of a stdio server: `none`, `bubblewrap`, `landlock`, or a record. It replaces `defaults.sandbox`.
        sandbox("sandbox"): SandboxEntry,
        /// Settings handed to the server as `MCP_CONFIG` and in `initialize`.
        config("config"): Value,
        /// The address of a remote server.
        url("url"): Text,
        /// HTTP headers sent with every request.
        headers("headers"): Named<Text>,
        /// The OAuth settings of a remote server.
        oauth("oauth"): RawOauth,
        /// `strict`: every tool needs an entry in `tools`; `dynamic`: others use the default.
        mode("mode"): Mode,
        /// Settings of tools without their own entry.
        default_tool_config("default_tool_config"): RawToolDefault,
        /// The handling of a failed connection at start: `exit` or `skip`.
        on_connect_failure("on_connect_failure"): ConnectFailure,
        /// `true` means `on_connect_failure: exit`: Haft does not start without this server.
        required("required"): bool,
        /// The time to connect: at start (`eager`) or at first use (`lazy`).
        start("start"): Start,
        /// The reconnection policy.
        reconnect("reconnect"): RawReconnect,
        /// Time limit for connecting; 30 s by default.
        connect_timeout("connect_timeout"): Span,
        /// Time limit of one request; 60 s by default.
        request_timeout("request_timeout"): Span,
        /// Maximum idle time of an event stream; 300 s by default.
        sse_read_timeout("sse_read_timeout"): Span,
        /// `true` (the default) ends the session with a DELETE when Haft closes it.
        terminate_on_close("terminate_on_close"): bool,
        /// `true` (the default) registers the server's tools.
        load_tools("load_tools"): bool,
        /// `true` (the default) lists the server's prompts.
        load_prompts("load_prompts"): bool,
        /// Prompts to fetch at start.
        prompts("prompts"): Vec<String>,
        /// The handling of a changed tool list: `refresh` (the default) or `ignore`.
        list_changed("list_changed"): ListChanged,
        /// The handling of the server's sampling requests: `deny` (the default), `ask`, `allow`.
        sampling("sampling"): Sampling,
        /// Only these tools are registered, by name or pattern such as `read_*` or `files/read_*`.
        tool_allowlist("tool_allowlist"): Vec<String>,
        /// All but these tools are registered, by name or pattern.
        tool_denylist("tool_denylist"): Vec<String>,
        /// The prefix of tool names: `none` (the default), or `server` for `server__tool`.
        tool_prefix("tool_prefix"): ToolPrefix,
        /// The protocol era to use: `auto` (the default), `legacy`, `modern`.
        protocol("protocol"): Protocol,
        /// The highest rate of calls of all its tools together, such as `60/min`, `5/s` or `1000/h`.
        rate("rate"): Rate,
        /// Calls that may come at once under `rate`; by default the calls of one second.
        burst("burst"): Burst,
        /// The most calls of all its tools together on one UTC day, such as `10000/day`.
        quota("quota"): Quota,
        /// The role of its tools' data in a session: `untrusted`, `private`, `outbound`. After results of untrusted and of
        /// private tools, outbound ones ask first.
        labels("labels"): Vec<FlowLabel>,
        /// Leaves the server out without deleting it.
        disabled("disabled"): bool,
    }
}

record! {
    /// `reconnect`.
    pub struct RawReconnect("`reconnect`", Reject) {
        /// Maximum number of attempts after the first failure; 3 by default, 0 never retries.
        attempts("attempts"): CountOrZero,
        /// The first pause; 500 ms by default.
        base("base"): Span,
        /// The factor between two pauses; 2 by default.
        factor("factor"): Factor,
        /// The longest pause; 30 s by default.
        max("max"): Span,
    }
}

record! {
    /// `default_tool_config`.
    pub struct RawToolDefault("`default_tool_config`", Reject) {
        /// Ignored: a default has no name.
        name("name"): String,
        /// Maximum number of concurrent calls of one tool; 5 by default.
        max_instances("max_instances"): Count,
        /// Time limit of one call.
        timeout("timeout"): Span,
        /// `true` lets calls of one tool run at the same time.
        parallel_capable("parallel_capable"): bool,
        /// The approval that each call needs: `auto` (the default) or `ask`.
        approval("approval"): Approval,
        /// The reaction of a call to a reached limit: `wait` or `reject`.
        on_limit("on_limit"): OnLimit,
        /// The highest rate of the calls of each tool, such as `60/min`, `5/s` or `1000/h`.
        rate("rate"): Rate,
        /// Calls of each tool that may come at once under `rate`; by default the calls of one second.
        burst("burst"): Burst,
        /// The most calls of each tool on one UTC day, such as `10000/day`.
        quota("quota"): Quota,
    }
}

record! {
    /// One entry of `tools`.
    pub struct RawTool("an entry of `tools`", Reject) {
        /// The tool's name.
        name("name"): String,
        /// The server it comes from, where several have a tool of this name.
        mcp("mcp"): String,
        /// Maximum number of concurrent calls; 5 by default.
        max_instances("max_instances"): Count,
        /// Time limit of one call.
        timeout("timeout"): Span,
        /// `true` lets calls run at the same time; `false` means one at a time.
        parallel_capable("parallel_capable"): bool,
        /// The approval that each call needs: `auto` (the default) or `ask`.
        approval("approval"): Approval,
        /// `strict`: takes nothing from the server's default and must set everything itself.
        mode("mode"): Mode,
        /// The reaction of a call to a reached limit: `wait` or `reject`.
        on_limit("on_limit"): OnLimit,
        /// The highest rate of its calls, such as `60/min`, `5/s` or `1000/h`.
        rate("rate"): Rate,
        /// Calls that may come at once under `rate`; by default the calls of one second.
        burst("burst"): Burst,
        /// The most calls of it on one UTC day, such as `10000/day`.
        quota("quota"): Quota,
        /// Requests the tool is meant for, as people write them; they help to choose it.
        examples("examples"): Vec<String>,
        /// A name for people, in place of the tool's own.
        title("title"): String,
        /// Hints about its behaviour, each in place of the tool's own.
        annotations("annotations"): RawAnnotations,
        /// Icons, in place of the tool's own.
        icons("icons"): Vec<RawIcon>,
        /// The name it is offered under, in place of its own.
        rename("rename"): String,
        /// Its description, in place of the tool's own.
        description("description"): String,
        /// Arguments that callers neither see nor pass.
        hide_arguments("hide_arguments"): Vec<String>,
        /// Arguments that Haft passes with every call, by name. Callers neither see nor pass them.
        fixed_arguments("fixed_arguments"): Named<FixedValue>,
        /// The role of its data in a session, in place of its server's labels.
        labels("labels"): Vec<FlowLabel>,
    }
}

record! {
    /// `registry`.
    pub struct RawRegistry("`registry`", Reject) {
        /// The folder that holds `tools.json`, `mcp.json` and the scripts; with `store: shared` the scripts only.
        dir("dir"): Text,
        /// The place of the two documents: `files` (the default: in `dir`) or `shared` (in the database of `shared`).
        store("store"): StoreKind,
    }
}

record! {
    /// `log`.
    pub struct RawLog("`log`", Reject) {
        /// The folder of the log files; `logs` beside the file by default.
        dir("dir"): Text,
        /// For how many days entries are kept at least; 30 by default.
        retain_days("retain_days"): Count,
        /// The most that all log files may have together, such as `10GiB` (the default). The oldest go
        /// first. 0 means no limit.
        max_bytes("max_bytes"): ByteCount,
        /// Disk space to keep free: a size, a percentage of the disk such as `5%`, or `auto` (the
        /// default: 64 MiB, or 1% of a small disk).
        keep_free("keep_free"): FreeSpace,
        /// The place that entries are shipped to: `shared` (the database of `shared`, the default with it) or `none`. With
        /// `shared`, `dir` holds what waits to be shipped, and `retain_days` counts in the database.
        ship("ship"): LogShip,
        /// The most that log files may have together while they wait to be shipped, such as `10GiB` (the default). At
        /// that size `on_failure` applies.
        spool_max("spool_max"): ByteCount,
        /// The handling of calls when the log cannot be written: `refuse` (the default) or
        /// `degrade`.
        on_failure("on_failure"): OnLogFailure,
        /// The time at which an entry counts as written: `os` (the default) or `disk` (fsync).
        sync("sync"): LogSync,
        /// `true` logs the user request of a call too, for `haft learn`; not by default.
        requests("requests"): bool,
    }
}

record! {
    /// `select`.
    pub struct RawSelect("`select`", Reject) {
        /// A service that knows meanings better than the table in the binary.
        embeddings("embeddings"): RawEmbeddings,
    }
}

record! {
    /// `select.embeddings`.
    pub struct RawEmbeddings("`embeddings`", Reject) {
        /// The address of an OpenAI-compatible service, such as `https://api.openai.com/v1`.
        url("url"): Text,
        /// The model to request.
        model("model"): String,
        /// Sent as `Authorization: Bearer`; write `${VAR}`.
        api_key("api_key"): Text,
        /// Time limit of one request; 10 s by default.
        timeout("timeout"): Span,
    }
}
