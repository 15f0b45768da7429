//! The view that a key with a list of tools or servers has over REST.

use haft::record::RecordSource;
use haft::{READ_OUTPUT, ServerInfo, ToolInfo};

use crate::serve::Caller;

/// Returns true if the caller sees a tool.
pub(super) fn shows_tool(caller: &Caller, tool: &ToolInfo) -> bool {
    // A caller reads only the results of its own calls.
    let reads_on = tool.kind == RecordSource::Builtin && tool.name == READ_OUTPUT;
    reads_on || caller.lists.shows_tool(tool.source.server(), &tool.name)
}

/// The servers whose prompts and resources the caller sees.
pub(super) fn servers(caller: &Caller, servers: Vec<ServerInfo>) -> Vec<ServerInfo> {
    servers.into_iter().filter(|server| caller.lists.shows_server(&server.name)).collect()
}
