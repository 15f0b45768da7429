//! goose's `config.yaml`: `extensions`.

use super::{FileContext, Layer, set_servers};
use crate::config::choices::Transport;
use crate::config::node::{Node, Text};
use crate::config::quantity::{EnvValue, Span};
use crate::config::raw::RawServer;
use crate::config::read::{FromNode, Named, Reader, record};
use crate::config::{At, Place};

record! {
    struct RawEntry("an extension", Warn) {
        /// The kind of the extension.
        kind("type"): String,
        /// Its name.
        name("name"): String,
        /// Its name for people.
        display_name("display_name"): String,
        /// Its purpose.
        description("description"): String,
        /// The program to start.
        cmd("cmd"): Text,
        /// Its arguments.
        args("args"): Vec<Text>,
        /// Variables for its environment.
        envs("envs"): Named<EnvValue>,
        /// Variables of our own environment that it gets.
        env_keys("env_keys"): Vec<At<String>>,
        /// The address of a remote server.
        uri("uri"): Text,
        /// HTTP headers.
        headers("headers"): Named<Text>,
        /// Time limit of one call, in seconds.
        timeout("timeout"): Span,
        /// Leaves it out where `false`.
        enabled("enabled"): bool,
        /// True if goose ships it.
        bundled("bundled"): bool,
        /// Only these tools.
        available_tools("available_tools"): Vec<String>,
    }
}

pub(super) fn read(
    root: &Node,
    layer: &mut Layer,
    reader: &mut Reader<'_>,
    context: &FileContext<'_>,
) {
    let Some(section) = root.get("extensions") else {
        return;
    };
    reader.inside("extensions", |reader| {
        let place = reader.place(section);
        let Some(Named(entries)) = Named::<RawEntry>::read(section, reader) else {
            return;
        };
        let servers = entries
            .into_iter()
            .filter_map(|(name, entry)| {
                reader.inside(name.value.clone(), |reader| {
                    native(entry, reader, context).map(|server| (name, server))
                })
            })
            .collect();
        set_servers(layer, servers, place);
    });
}

fn native(
    entry: RawEntry,
    reader: &mut Reader<'_>,
    context: &FileContext<'_>,
) -> Option<RawServer> {
    let place: Place = entry.place;
    let Some(kind) = entry.kind else {
        reader.error_at(
            &place,
            "this extension has no `type`",
            "add `type: stdio` or `type: streamable_http`",
        );
        return None;
    };
    let transport = match kind.value.as_str() {
        "stdio" => Transport::Stdio,
        "streamable_http" => Transport::Http,
        "sse" => Transport::Sse,
        "builtin" | "platform" | "frontend" | "inline_python" => {
            let problem = format!("an extension of `type: {}` runs only inside goose", kind.value);
            reader.warn_at(&place, problem, "Haft runs without it");
            return None;
        }
        other => {
            let problem = format!("`{other}` is not a type of extension");
            reader.error_at(&place, problem, "use `stdio`, `streamable_http` or `sse`");
            return None;
        }
    };
    let mut env = entry.envs.map(|envs| envs.value.0).unwrap_or_default();
    for name in entry.env_keys.map(|keys| keys.value).unwrap_or_default() {
        if let Some(value) = context.variable(&name.value, &name.place, reader) {
            env.push((name, EnvValue(Some(value))));
        }
    }
    let allowed = entry.available_tools.filter(|tools| !tools.value.is_empty());
    let native = |key| match key {
        "cmd" => "command",
        "uri" => "url",
        other => other,
    };
    Some(RawServer {
        broken: entry.broken.into_iter().map(native).collect(),
        transport: Some(kind.map(|_| transport)),
        command: entry.cmd,
        args: entry.args,
        env: (!env.is_empty()).then(|| At { value: Named(env), place: place.clone() }),
        url: entry.uri,
        headers: entry.headers,
        request_timeout: entry.timeout,
        disabled: entry.enabled.map(|enabled| enabled.map(|yes| !yes)),
        tool_allowlist: allowed,
        description: entry.description,
        ..RawServer::empty(place)
    })
}
