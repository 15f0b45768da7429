//! `agent.yaml`: the model, its instructions, and tools of `type: mcp`.

use std::path::Path;

use super::{Layer, part, set_servers};
use crate::config::node::{Node, NodeValue, Text};
use crate::config::quantity::{Count, Span};
use crate::config::raw::RawServer;
use crate::config::raw_agent::RawAgent;
use crate::config::read::{FromNode, Reader, record};
use crate::config::{At, Place};

/// Keys of a tool entry that a native server does not have.
const OWN_KEYS: [&str; 7] =
    ["name", "type", "server", "timeout", "defer_loading", "is_retrieval", "registry_name"];

/// Types of tools that such files may have and Haft does not run.
const OTHER_TYPES: [&str; 5] =
    ["vectorstore", "hierarchical_document", "function", "prompt", "plugin"];

record! {
    struct RawOwn("a tool of `type: mcp`", Reject) {
        /// The server's name.
        name("name"): String,
        /// Always `mcp` here.
        kind("type"): String,
        /// An npm package, short for `npx -y PACKAGE`.
        server("server"): Text,
        /// Time limit for connecting.
        timeout("timeout"): Span,
        /// True if the tools are searched rather than listed.
        defer_loading("defer_loading"): bool,
        /// True if the tool retrieves documents.
        is_retrieval("is_retrieval"): bool,
        /// The package's name in a registry.
        registry_name("registry_name"): String,
    }
}

record! {
    struct RawModel("`model`", Warn) {
        /// The provider of the model, such as `openai`.
        provider("provider"): String,
        /// Its name there.
        name("name"): String,
        /// Its address, if not the provider's own.
        endpoint("endpoint"): Text,
        /// Maximum number of tokens in its answer.
        max_tokens("max_tokens"): Count,
    }
}

record! {
    struct RawInstructions("`instructions`", Warn) {
        /// The text itself.
        inline("inline"): String,
        /// A file that holds it.
        file("file"): Text,
    }
}

pub(super) fn read(root: &Node, layer: &mut Layer, reader: &mut Reader<'_>) {
    layer.runs_in_folder = true;
    agent(root, layer, reader);
    for entry in root.entries() {
        let known = ["name", "description", "tools", "model", "instructions"];
        if !known.contains(&entry.key.as_str()) {
            reader.inside(&entry.key, |reader| {
                let problem = format!("`{}` is not supported and has no effect", entry.key);
                reader.warn(
                    &entry.value,
                    problem,
                    "Haft reads model, instructions and tools of this file",
                );
            });
        }
    }
    let Some(tools) = root.get("tools").filter(|tools| tools.value != NodeValue::Null) else {
        return;
    };
    let place = reader.inside("tools", |reader| reader.place(tools));
    if !matches!(tools.value, NodeValue::List(_)) {
        reader.inside("tools", |reader| {
            reader.expected(tools, "a list", "one `- ` line for each tool");
        });
        return;
    }
    let mut servers = Vec::new();
    for (at, tool) in tools.items().iter().enumerate() {
        reader.inside(format!("tools[{at}]"), |reader| {
            servers.extend(server(tool, reader));
        });
    }
    set_servers(layer, servers, place);
}

/// The model and its instructions.
fn agent(root: &Node, layer: &mut Layer, reader: &mut Reader<'_>) {
    let present = |key: &str| root.get(key).filter(|node| node.value != NodeValue::Null);
    let mut agent = RawAgent::empty(reader.place(root));
    if let Some(text) = present("model").and_then(Node::as_text) {
        let place =
            reader.inside("model", |reader| present("model").map(|node| reader.place(node)));
        let value = Text { text: text.to_owned(), shown: None };
        agent.model = place.map(|place| At { value, place });
    } else if let Some(node) = present("model") {
        let raw = reader.inside("model", |reader| RawModel::read(node, reader));
        if let Some(RawModel { provider, name: Some(name), endpoint, max_tokens, .. }) = raw {
            let provider = provider.map_or_else(|| "openai".to_owned(), |at| at.value);
            agent.model =
                Some(name.map(|name| Text { text: format!("{provider}::{name}"), shown: None }));
            agent.base_url = endpoint;
            agent.max_output_tokens = max_tokens;
        }
    }
    if let Some(node) = present("instructions") {
        reader
            .inside("instructions", |reader| instructions(node, &mut agent, &layer.folder, reader));
    }
    let place = reader.place(root);
    layer.config.agent = Some(At { value: agent, place });
}

/// The instructions, or the file that holds them.
fn instructions(node: &Node, agent: &mut RawAgent, folder: &Path, reader: &mut Reader<'_>) {
    if let Some(text) = node.as_text() {
        agent.system = Some(At { value: text.to_owned(), place: reader.place(node) });
        return;
    }
    let Some(RawInstructions { inline, file, .. }) = RawInstructions::read(node, reader) else {
        return;
    };
    agent.system = inline;
    let beside =
        |file: Text| Text { text: folder.join(file.text).display().to_string(), shown: None };
    agent.system_file = file.map(|at| at.map(beside));
}

fn server(tool: &Node, reader: &mut Reader<'_>) -> Option<(At<String>, RawServer)> {
    match tool.get("type").and_then(Node::as_text) {
        Some("mcp") => {}
        Some(other) if OTHER_TYPES.contains(&other) => {
            let problem = format!("a tool of `type: {other}` is not supported and has no effect");
            reader.warn(tool, problem, "Haft reads the tools of `type: mcp`");
            return None;
        }
        Some(other) => {
            let problem = format!("`{other}` is not a type of tool");
            reader.error(tool.get("type").unwrap_or(tool), problem, "did you mean `type: mcp`?");
            return None;
        }
        None => {
            reader.error(tool, "this tool does not say its `type`", "add `type: mcp`");
            return None;
        }
    }
    let (own, rest) = part(tool, &OWN_KEYS);
    let own = RawOwn::read(&own, reader)?;
    let mut server = RawServer::read(&rest, reader)?;
    let Some(name) = own.name else {
        reader.error(
            tool,
            "this tool has no `name`",
            "add `name: ...`, such as `name: filesystem`",
        );
        return None;
    };
    if let Some(package) = own.server {
        shorthand(&mut server, package, reader, tool);
    }
    server.connect_timeout = server.connect_timeout.or(own.timeout);
    let ignored = [
        ("defer_loading", own.defer_loading.map(|at| at.place)),
        ("is_retrieval", own.is_retrieval.map(|at| at.place)),
        ("registry_name", own.registry_name.map(|at| at.place)),
    ];
    for (key, place) in ignored {
        if place.is_some() {
            let problem = format!("`{key}` is not supported and has no effect");
            reader.warn(tool, problem, "Haft runs without it");
        }
    }
    Some((name, server))
}

/// `server: "@scope/package"` is `command: npx`, `args: [-y, "@scope/package", ...]`.
fn shorthand(server: &mut RawServer, package: At<Text>, reader: &mut Reader<'_>, tool: &Node) {
    if server.command.is_some() || server.url.is_some() {
        reader.error(
            tool,
            "`server` stands for a command, but `command` or `url` is given too",
            "keep one of them",
        );
        return;
    }
    if package.value.text.trim().is_empty() {
        reader.error_at(
            &package.place,
            "`server` is empty",
            "name an npm package, such as \"@scope/package\"",
        );
        return;
    }
    let place: Place = package.place.clone();
    let word = |text: &str| Text { text: text.into(), shown: None };
    let mut args = vec![word("-y"), package.value];
    args.extend(server.args.take().map(|args| args.value).unwrap_or_default());
    server.command = Some(At { value: word("npx"), place: place.clone() });
    server.args = Some(At { value: args, place });
}
