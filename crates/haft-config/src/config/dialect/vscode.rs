//! VS Code's `mcp.json`: `servers` and `inputs`.

use serde_json::Value;

use super::{Layer, set_servers};
use crate::config::At;
use crate::config::choices::Transport;
use crate::config::node::{Node, Text};
use crate::config::quantity::EnvValue;
use crate::config::raw::RawServer;
use crate::config::read::{FromNode, Named, Reader, record};

record! {
    struct RawRoot("the file", Warn) {
        /// Servers by name.
        servers("servers"): Named<RawEntry>,
        /// Inputs to ask the user for.
        inputs("inputs"): Vec<RawInput>,
    }
}

record! {
    struct RawInput("an input", Warn) {
        /// The id that `${input:id}` refers to.
        id("id"): String,
        /// The kind of the input.
        kind("type"): String,
        /// The question for the user.
        description("description"): String,
        /// True if the answer is a secret.
        password("password"): bool,
        /// The answers to choose from.
        options("options"): Vec<Value>,
        /// The default answer.
        default("default"): Value,
    }
}

record! {
    struct RawEntry("a server", Warn) {
        /// The transport of the server.
        kind("type"): Transport,
        /// The program to start.
        command("command"): Text,
        /// Its arguments.
        args("args"): Vec<Text>,
        /// Its working directory.
        cwd("cwd"): Text,
        /// Variables for its environment.
        env("env"): Named<EnvValue>,
        /// A file with variables.
        env_file("envFile"): Text,
        /// The address of a remote server.
        url("url"): Text,
        /// HTTP headers.
        headers("headers"): Named<Text>,
    }
}

pub(super) fn read(root: &Node, layer: &mut Layer, reader: &mut Reader<'_>) {
    layer.runs_in_folder = true;
    let Some(read) = RawRoot::read(root, reader) else {
        return;
    };
    for input in read.inputs.iter().flat_map(|inputs| &inputs.value) {
        if input.id.is_none() {
            reader.error_at(&input.place, "an input has no `id`", "add \"id\": \"...\"");
        }
    }
    let Some(At { value: Named(entries), place }) = read.servers else {
        return;
    };
    let servers = entries.into_iter().map(|(name, entry)| (name, native(entry))).collect();
    set_servers(layer, servers, place);
}

fn native(entry: RawEntry) -> RawServer {
    let RawEntry { place, broken, kind, command, args, cwd, env, env_file, url, headers } = entry;
    RawServer {
        transport: kind,
        command,
        args,
        cwd,
        env,
        env_file,
        url,
        headers,
        broken,
        ..RawServer::empty(place)
    }
}
