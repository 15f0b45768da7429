//! A map `mcp_servers`, at the root or under `tools`; also a registry's `mcp.json`.

use super::Layer;
use crate::config::node::Node;
use crate::config::raw::RawServer;
use crate::config::read::{FromNode, Named, Reader, record};

record! {
    struct RawRoot("the file", Reject) {
        /// Servers by name.
        mcp_servers("mcp_servers"): Named<RawServer>,
    }
}

record! {
    struct RawNested("the file", Warn) {
        /// The section that holds them.
        tools("tools"): RawSection,
    }
}

record! {
    struct RawSection("`tools`", Warn) {
        /// Servers by name.
        mcp_servers("mcp_servers"): Named<RawServer>,
    }
}

pub(super) fn read(root: &Node, layer: &mut Layer, reader: &mut Reader<'_>) {
    layer.config.servers = if root.get("tools").is_some() {
        let tools = RawNested::read(root, reader).and_then(|root| root.tools);
        tools.and_then(|tools| tools.value.mcp_servers)
    } else {
        RawRoot::read(root, reader).and_then(|root| root.mcp_servers)
    };
    let is_there = root.get("tools").unwrap_or(root).get("mcp_servers").is_some();
    if root.is_map() && !is_there {
        reader.error(root, "the file has no `mcp_servers`", "write {\"mcp_servers\": {}}");
    }
}
