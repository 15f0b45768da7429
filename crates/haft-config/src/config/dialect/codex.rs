//! Codex's `config.toml`: `[mcp_servers.<name>]`.

use std::time::Duration;

use serde_json::Value;

use super::{FileContext, Layer, set_servers};
use crate::config::choices::{Approval, ConnectFailure};
use crate::config::node::{Node, NodeValue, Text};
use crate::config::quantity::{EnvValue, Milliseconds, Span};
use crate::config::raw::{RawServer, RawTool, RawToolDefault};
use crate::config::read::{FromNode, Named, Reader, choice, record};
use crate::config::{At, Place};

choice! {
    enum ApprovalMode("an approval mode") {
        /// Never ask.
        Auto = "auto" | "approve",
        /// Ask each time.
        Prompt = "prompt",
        /// Ask where the tool writes; Haft asks each time.
        Writes = "writes",
    }
}

record! {
    struct RawEntry("a server", Warn) {
        /// The program to start.
        command("command"): Text,
        /// Its arguments.
        args("args"): Vec<Text>,
        /// Its working directory.
        cwd("cwd"): Text,
        /// Variables for its environment.
        env("env"): Named<EnvValue>,
        /// Variables of our own environment that it gets.
        env_vars("env_vars"): Vec<EnvName>,
        /// The address of a remote server.
        url("url"): Text,
        /// HTTP headers.
        http_headers("http_headers"): Named<Text>,
        /// HTTP headers whose values come from variables.
        env_http_headers("env_http_headers"): Named<String>,
        /// The variable that holds the bearer token.
        bearer_token_env_var("bearer_token_env_var"): String,
        /// Time limit for connecting.
        startup_timeout_sec("startup_timeout_sec"): Span,
        /// Time limit for connecting, in milliseconds.
        startup_timeout_ms("startup_timeout_ms"): Milliseconds,
        /// Time limit of one call.
        tool_timeout_sec("tool_timeout_sec"): Span,
        /// Leaves the server out where `false`.
        enabled("enabled"): bool,
        /// True if Codex must not start without it.
        required("required"): bool,
        /// Only these tools.
        enabled_tools("enabled_tools"): Vec<String>,
        /// All but these tools.
        disabled_tools("disabled_tools"): Vec<String>,
        /// True if calls may run at the same time.
        parallel("supports_parallel_tool_calls"): bool,
        /// The approval that calls need.
        approval("default_tools_approval_mode"): ApprovalMode,
        /// Settings of single tools.
        tools("tools"): Named<RawToolEntry>,
    }
}

record! {
    struct RawToolEntry("a tool", Warn) {
        /// The approval that calls need.
        approval("approval_mode"): ApprovalMode,
    }
}

/// A variable's name, or `{name, source}`.
#[derive(Debug, Clone)]
struct EnvName(String);

impl FromNode for EnvName {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::Map(_) => {
                node.get("name").and_then(Node::as_text).map(|name| Self(name.into()))
            }
            _ => String::read(node, reader).map(Self),
        }
    }
    fn schema() -> Value {
        String::schema()
    }
}

pub(super) fn read(
    root: &Node,
    layer: &mut Layer,
    reader: &mut Reader<'_>,
    context: &FileContext<'_>,
) {
    let Some(section) = root.get("mcp_servers") else {
        return;
    };
    reader.inside("mcp_servers", |reader| {
        let place = reader.place(section);
        let Some(Named(entries)) = Named::<RawEntry>::read(section, reader) else {
            return;
        };
        let mut tools = Vec::new();
        let servers = entries
            .into_iter()
            .map(|(name, entry)| {
                tools.extend(tool_settings(&name, &entry));
                (name, native(entry, reader, context))
            })
            .collect();
        layer.config.tools = Some(At { value: tools, place: place.clone() });
        set_servers(layer, servers, place);
    });
}

fn native(entry: RawEntry, reader: &mut Reader<'_>, context: &FileContext<'_>) -> RawServer {
    let place = entry.place;
    let mut headers = entry.http_headers.map(|headers| headers.value.0).unwrap_or_default();
    for (header, name) in entry.env_http_headers.map(|it| it.value.0).unwrap_or_default() {
        let value = context.variable(&name, &header.place, reader);
        headers.extend(value.map(|value| (header, value)));
    }
    if let Some(At { value: name, place }) = entry.bearer_token_env_var
        && let Some(token) = context.variable(&name, &place, reader)
    {
        let bearer = Text {
            text: format!("Bearer {}", token.text),
            shown: token.shown.map(|shown| format!("Bearer {shown}")),
        };
        headers.push((At { value: "Authorization".to_owned(), place }, bearer));
    }
    let mut env = entry.env.map(|env| env.value.0).unwrap_or_default();
    // Codex passes these on if they are set; an unset one is not an error.
    for EnvName(name) in entry.env_vars.map(|names| names.value).unwrap_or_default() {
        if let Some(value) = context.variable_if_set(&name, &place, reader) {
            env.push((At { value: name, place: place.clone() }, EnvValue(Some(value))));
        }
    }
    let startup = entry.startup_timeout_sec.or(entry.startup_timeout_ms.map(|ms| {
        ms.map(|Milliseconds(duration): Milliseconds| Span(duration.max(Duration::from_millis(1))))
    }));
    let default = RawToolDefault {
        parallel_capable: entry.parallel,
        approval: entry.approval.map(|mode| mode.map(approval)),
        ..RawToolDefault::empty(place.clone())
    };
    let has_default = default.parallel_capable.is_some() || default.approval.is_some();
    RawServer {
        broken: entry.broken,
        command: entry.command,
        args: entry.args,
        cwd: entry.cwd,
        env: named(env, &place),
        url: entry.url,
        headers: named(headers, &place),
        connect_timeout: startup,
        request_timeout: entry.tool_timeout_sec,
        disabled: entry.enabled.map(|enabled| enabled.map(|yes| !yes)),
        on_connect_failure: entry
            .required
            .filter(|required| required.value)
            .map(|required| required.map(|_| ConnectFailure::Exit)),
        tool_allowlist: entry.enabled_tools,
        tool_denylist: entry.disabled_tools,
        default_tool_config: has_default.then(|| At { value: default, place: place.clone() }),
        ..RawServer::empty(place)
    }
}

fn tool_settings(server: &At<String>, entry: &RawEntry) -> Vec<RawTool> {
    let tools = entry.tools.iter().flat_map(|tools| &tools.value.0);
    tools
        .map(|(name, tool)| RawTool {
            name: Some(name.clone()),
            mcp: Some(server.clone()),
            approval: tool.approval.clone().map(|mode| mode.map(approval)),
            ..RawTool::empty(tool.place.clone())
        })
        .collect()
}

fn approval(mode: ApprovalMode) -> Approval {
    match mode {
        ApprovalMode::Auto => Approval::Auto,
        ApprovalMode::Prompt | ApprovalMode::Writes => Approval::Ask,
    }
}

fn named<T>(entries: Vec<(At<String>, T)>, place: &Place) -> Option<At<Named<T>>> {
    (!entries.is_empty()).then(|| At { value: Named(entries), place: place.clone() })
}
