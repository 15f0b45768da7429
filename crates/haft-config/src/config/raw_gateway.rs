//! The native keys of the toolbox as an MCP server: `gateway`, `profiles`.

use super::bytes::ByteCount;
use super::choices::Surface;
use super::quantity::{Count, Span};
use super::read::record;

record! {
    /// `gateway`.
    pub struct RawGateway("`gateway`", Reject) {
        /// The presentation of tools to clients: `all` (the default) lists each, `search` only
        /// three tools that find, describe and call them, for toolboxes too large for a model's
        /// context.
        surface("surface"): Surface,
        /// Text of a result beyond this size is kept back from clients of `/mcp` and the API, such as `64KiB`; the
        /// tool `read_output` reads on. 0 (the default) sends results whole.
        output_bytes_max("output_bytes_max"): ByteCount,
        /// Maximum number of sessions of an endpoint of `haft serve`; 1000 by default.
        sessions_max("sessions_max"): Count,
        /// Maximum idle time of a session; 30 minutes by default.
        session_idle("session_idle"): Span,
        /// Maximum time that the first `tools/list` waits for servers whose tools no earlier run
        /// has seen; 30 seconds by default. Tools that come later are announced with
        /// `list_changed`.
        first_list_timeout("first_list_timeout"): Span,
        /// True (the default) to offer `haft_status`, a read-only tool that reports the state of
        /// each server.
        status_tool("status_tool"): bool,
    }
}

record! {
    /// One entry of `profiles`.
    pub struct RawProfile("a profile", Reject) {
        /// Servers it shows, by name or pattern such as `git*`; `local` stands for the tools that run here.
        /// All by default.
        servers("servers"): Vec<String>,
        /// Tools it shows, by name or pattern such as `read_*` or `files/read_*` (of the server `files`); all
        /// by default. With `servers`, both must match.
        tools("tools"): Vec<String>,
        /// Tools it does not show, by name or pattern. Exclusion wins over `tools`.
        exclude_tools("exclude_tools"): Vec<String>,
        /// The presentation of tools to clients: `all` (the default) or `search`.
        surface("surface"): Surface,
    }
}
