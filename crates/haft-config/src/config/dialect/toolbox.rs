//! `myai.toolbox`: every server states its mode, and a dynamic one its default.

use super::{Layer, part};
use crate::config::At;
use crate::config::choices::{Mode, Transport};
use crate::config::node::{Node, NodeValue};
use crate::config::quantity::Count;
use crate::config::raw::{RawDefaults, RawServer, RawTool};
use crate::config::read::{FromNode, Named, Reader, record};
use haft_text::list;

record! {
    struct RawMyai("`myai`", Warn) {
        /// The toolbox.
        toolbox("toolbox"): RawToolbox,
    }
}

record! {
    struct RawToolbox("`toolbox`", Reject) {
        /// Maximum number of concurrent calls.
        max_concurrent("max_concurrent"): Count,
        /// Settings of single tools.
        tools("tools"): Vec<RawTool>,
        /// MCP servers.
        mcps("mcps"): Vec<ToolboxServer>,
    }
}

/// An entry of `mcps`: a native server that carries its name inside.
#[derive(Debug, Clone)]
struct ToolboxServer(At<String>, RawServer);

pub(super) fn read(root: &Node, layer: &mut Layer, reader: &mut Reader<'_>) {
    let toolbox = if let Some(myai) = root.get("myai") {
        reader.inside("myai", |reader| RawMyai::read(myai, reader)).and_then(|myai| myai.toolbox)
    } else if let Some(toolbox) = root.get("toolbox") {
        reader.inside("toolbox", |reader| At::<RawToolbox>::read(toolbox, reader))
    } else {
        At::<RawToolbox>::read(root, reader)
    };
    let Some(At { value: toolbox, place }) = toolbox else {
        return;
    };
    if let Some(max_concurrent) = toolbox.max_concurrent {
        let defaults = RawDefaults {
            max_concurrent: Some(max_concurrent),
            ..RawDefaults::empty(place.clone())
        };
        layer.config.defaults = Some(At { value: defaults, place: place.clone() });
    }
    layer.config.tools = toolbox.tools;
    layer.config.servers = toolbox.mcps.map(|mcps| {
        mcps.map(|servers| {
            Named(servers.into_iter().map(|ToolboxServer(name, server)| (name, server)).collect())
        })
    });
}

impl FromNode for ToolboxServer {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let (own, rest) = part(node, &["name"]);
        let server = RawServer::read(&rest, reader)?;
        let Some(name) = own.get("name").filter(|name| name.value != NodeValue::Null) else {
            reader.error(node, "this server has no `name`", "add `name: ...`");
            require("?", &server, node, reader);
            return None;
        };
        let name = reader.inside("name", |reader| At::<String>::read(name, reader))?;
        require(&name.value, &server, node, reader);
        Some(Self(name, server))
    }

    fn schema() -> serde_json::Value {
        RawServer::schema()
    }
}

/// The requirements of the toolbox format beyond the native one.
fn require(name: &str, server: &RawServer, node: &Node, reader: &mut Reader<'_>) {
    if server.transport.is_none() && node.get("transport").is_none() {
        let words = [Transport::Http.word(), Transport::Sse.word(), "streamable_http", "websocket"];
        reader.error(
            node,
            format!("MCP server '{name}' does not say its `transport`"),
            format!("add `transport: ...` with one of {}", list(&words)),
        );
    }
    match &server.mode {
        None if node.get("mode").is_none_or(|mode| mode.value == NodeValue::Null) => reader.error(
            node.get("mode").unwrap_or(node),
            format!("MCP server '{name}' is missing the required field 'mode'"),
            "add `mode: strict` (as before: every tool must be configured) or `mode: dynamic` with \
             a `default_tool_config`",
        ),
        Some(mode)
            if mode.value == Mode::Dynamic
                && server.default_tool_config.is_none()
                && node.get("default_tool_config").is_none_or(|it| it.value == NodeValue::Null) =>
        {
            // If a variable made the server dynamic, the problem names the variable.
            let by_variable = node.get("mode").filter(|mode| mode.variable.is_some());
            reader.error(
                    by_variable.unwrap_or(node),
                    format!(
                        "MCP server '{name}' is configured with mode='dynamic' but missing required \
                         field 'default_tool_config': default_tool_config is required when mode is \
                         'dynamic'"
                    ),
                    "add `default_tool_config: {max_instances: 10, timeout: 30s}`, or use `mode: strict`",
                );
        }
        _ => {}
    }
}
