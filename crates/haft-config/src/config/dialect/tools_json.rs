//! `tools.json`: local tools, each with its schema and the script that runs it.

use serde_json::{Map, Value, json};

use super::{Layer, LocalItem};
use crate::config::At;
use crate::config::call_limits::{Burst, Quota, Rate};
use crate::config::choices::{Approval, Background, LocalRuntime, OnLimit};
use crate::config::entry_cache::Item;
use crate::config::node::{Node, NodeValue, Text};
use crate::config::place::Place;
use crate::config::quantity::{Count, EnvValue, Span};
use crate::config::raw::RawTool;
use crate::config::raw_metadata::{RawAnnotations, RawIcon};
use crate::config::raw_sandbox::SandboxEntry;
use crate::config::read::{FromNode, Named, Reader, choice, record};

record! {
    struct RawRoot("the file", Reject) {
        /// The tools.
        tools("tools"): Vec<RawLocalTool>,
    }
}

choice! {
    /// The kind of an entry.
    pub enum EntryKind("a kind of tool") {
        /// A script or program.
        Local = "local",
        /// Settings for a tool of an MCP server.
        Mcp = "mcp",
    }
}

record! {
    /// One entry of `tools.json`.
    pub struct RawLocalTool("a tool", Reject) {
        /// The tool's name.
        name("name"): String,
        /// The purpose of the tool and when to prefer it.
        description("description"): String,
        /// `local` or `mcp`.
        kind("type"): EntryKind,
        /// JSON Schema of the arguments, or `signature`: read it from the signature and the docstring of a
        /// Python tool's function.
        input_schema("input_schema" | "inputs" | "parameters"): RawSchema,
        /// JSON Schema of the answer.
        output_schema("output_schema" | "outputs"): RawSchema,
        /// True if calls may run at the same time; `false` by default.
        parallel_capable("parallel_capable"): bool,
        /// Maximum number of concurrent calls.
        max_instances("max_instances"): Count,
        /// Time limit of one call.
        timeout("timeout"): Span,
        /// The reaction of a call to a reached limit.
        on_limit("on_limit"): OnLimit,
        /// The approval that each call needs.
        approval("approval"): Approval,
        /// The highest rate of its calls, such as `60/min`, `5/s` or `1000/h`.
        rate("rate"): Rate,
        /// Calls that may come at once under `rate`; by default the calls of one second.
        burst("burst"): Burst,
        /// The most calls of it on one UTC day, such as `10000/day`.
        quota("quota"): Quota,
        /// Requests the tool is meant for, as people write them; they help to choose it.
        examples("examples"): Vec<String>,
        /// A name for people.
        title("title"): String,
        /// Hints about its behaviour.
        annotations("annotations"): RawAnnotations,
        /// Its icons.
        icons("icons"): Vec<RawIcon>,
        /// The handling of processes that a call leaves running: `end` (the default) or `allow`.
        background("background"): Background,
        /// The sandbox of its processes: `none`, `bubblewrap`, `landlock`, or a record. It replaces `defaults.sandbox`.
        sandbox("sandbox"): SandboxEntry,
        /// The program of the tool.
        config("config"): RawLocalConfig,
        /// Short form of `config`: `entrypoint`, `script.py` or `script.py:entrypoint`.
        function("function"): Text,
    }
}

record! {
    /// `config` of an entry.
    pub struct RawLocalConfig("`config` of a tool", Reject) {
        /// The script, inside the tools directory.
        script_path("script_path"): Text,
        /// The function to call; `run` by default.
        entrypoint("entrypoint"): String,
        /// `python` or `command`; by default chosen by the script's extension.
        runtime("runtime"): LocalRuntime,
        /// Arguments of a command, after the script.
        args("args"): Vec<Text>,
        /// The program that runs the script, or that is the tool itself.
        command("command"): Argv,
        /// Variables for its environment; `null` removes one.
        env("env"): Named<EnvValue>,
        /// Packages that a Python tool needs, such as `requests==2.34.2`, installed into an environment of
        /// their own.
        requirements("requirements"): Vec<String>,
        /// The server of an entry of `type: mcp`.
        server("server"): String,
    }
}

/// A program with its first arguments: a list, or a single word.
#[derive(Debug, Clone)]
pub struct Argv(pub Vec<Text>);

impl FromNode for Argv {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::Text(text) => Some(Self(vec![text.clone()])),
            _ => Vec::read(node, reader).map(Self),
        }
    }
    fn schema() -> Value {
        json!({ "type": ["string", "array"], "items": { "type": "string" } })
    }
}

/// A JSON Schema, the short form `{"city": "string"}` of one, or [`SIGNATURE`].
#[derive(Debug, Clone)]
pub struct RawSchema(pub Value);

/// In place of a schema: it is read from the signature of the tool's function.
pub const SIGNATURE: &str = "signature";

impl FromNode for RawSchema {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        if node.as_text() == Some(SIGNATURE) {
            return Some(Self(SIGNATURE.into()));
        }
        if !node.is_map() {
            reader.expected(node, "a JSON Schema object", "{\"type\": \"object\", ...}");
            return None;
        }
        Some(Self(match node.to_json() {
            Value::Object(map) if is_short_form(&map) => long_form(map),
            schema => schema,
        }))
    }
    fn schema() -> Value {
        json!({ "type": ["object", "string"] })
    }
}

/// Only the names of types, no keyword of JSON Schema: `{"city": "string", "days": "integer"}`.
fn is_short_form(map: &Map<String, Value>) -> bool {
    const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "array", "object"];
    !map.is_empty()
        && map.iter().all(|(key, value)| {
            key != "type" && value.as_str().is_some_and(|word| TYPES.contains(&word))
        })
}

fn long_form(map: Map<String, Value>) -> Value {
    let required: Vec<String> = map.keys().cloned().collect();
    let properties: Map<String, Value> =
        map.into_iter().map(|(key, kind)| (key, json!({ "type": kind }))).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

pub(super) fn read(root: &Node, layer: &mut Layer, reader: &mut Reader<'_>) {
    let Some(read) = RawRoot::read(root, reader) else {
        return;
    };
    let Some(tools) = read.tools else {
        if root.get("tools").is_none_or(|tools| tools.value == NodeValue::Null) {
            reader.error(root, "the file has no list `tools`", "write {\"tools\": []}");
        }
        return;
    };
    let items = tools.value.into_iter().map(|tool| LocalItem::Raw(Box::new(tool)));
    add(items.collect(), tools.place, layer, reader);
}

/// Reads the new entries of a file that was split.
pub fn read_split(root: &Node, items: Vec<Item>, layer: &mut Layer, reader: &mut Reader<'_>) {
    let place = reader.inside("tools", |reader| reader.place(root.get("tools").unwrap_or(root)));
    let read = |(at, item)| match item {
        Item::Known(tool) => Some(LocalItem::Known(tool)),
        Item::New(node) => reader.inside("tools", |reader| {
            let read = |reader: &mut Reader<'_>| RawLocalTool::read(&node, reader);
            reader.inside(format!("[{at}]"), read).map(|tool| LocalItem::Raw(Box::new(tool)))
        }),
    };
    let items = items.into_iter().enumerate().filter_map(read).collect();
    add(items, place, layer, reader);
}

/// Adds entries to the layer: local tools, and settings for tools of servers.
fn add(items: Vec<LocalItem>, place: Place, layer: &mut Layer, reader: &mut Reader<'_>) {
    let mut settings = Vec::new();
    for item in items {
        let mut tool = match item {
            LocalItem::Raw(tool) => tool,
            LocalItem::Known(_) => {
                layer.local.push(item);
                continue;
            }
        };
        split_function(&mut tool);
        match &tool.kind {
            Some(At { value: EntryKind::Mcp, .. }) => {
                let config = tool.config.as_ref().map(|config| &config.value);
                let ignored = [
                    ("background", tool.background.as_ref().map(|at| &at.place)),
                    ("sandbox", tool.sandbox.as_ref().map(|at| &at.place)),
                    ("env", config.and_then(|it| it.env.as_ref()).map(|at| &at.place)),
                    (
                        "requirements",
                        config.and_then(|it| it.requirements.as_ref()).map(|at| &at.place),
                    ),
                ];
                for (key, place) in ignored.into_iter().filter_map(|(key, at)| Some((key, at?))) {
                    reader.error_at(
                        place,
                        format!("`{key}` has no effect on the tool of a server"),
                        "delete it: it is a setting of entries with \"type\": \"local\"",
                    );
                }
                settings.push(mcp_settings(*tool));
            }
            Some(At { value: EntryKind::Local, .. }) | None => {
                layer.local.push(LocalItem::Raw(tool));
            }
        }
    }
    layer.config.tools = Some(At { value: settings, place });
}

/// The entries of `local_tools` in a native file, all of which are local.
pub(super) fn local_tools(tools: Vec<RawLocalTool>, reader: &mut Reader<'_>) -> Vec<RawLocalTool> {
    let mut local = Vec::new();
    for mut tool in tools {
        split_function(&mut tool);
        match &tool.kind {
            Some(At { value: EntryKind::Mcp, place }) => reader.error_at(
                place,
                "an entry of `local_tools` is not a tool of a server",
                "move it to `tools`, with `mcp: SERVER`",
            ),
            Some(At { value: EntryKind::Local, .. }) => local.push(tool),
            None => {
                tool.kind = Some(At { value: EntryKind::Local, place: tool.place.clone() });
                local.push(tool);
            }
        }
    }
    local
}

/// `function: "greet"` names the entrypoint; `"hello.py:greet"` and `"hello.py"` the script too.
fn split_function(tool: &mut RawLocalTool) {
    let Some(At { value: function, place }) = tool.function.take() else {
        return;
    };
    let (script, entrypoint) = match function.text.rsplit_once(':') {
        Some((script, entrypoint)) => (Some(script), Some(entrypoint)),
        None if function.text.contains('.') => (Some(function.text.as_str()), None),
        None => (None, Some(function.text.as_str())),
    };
    let empty = || At { value: RawLocalConfig::empty(place.clone()), place: place.clone() };
    let config = &mut tool.config.get_or_insert_with(empty).value;
    if let Some(script) = script {
        let text = Text { text: script.to_owned(), shown: None };
        config.script_path = Some(At { value: text, place: place.clone() });
    }
    if let Some(entrypoint) = entrypoint {
        config.entrypoint = Some(At { value: entrypoint.to_owned(), place: place.clone() });
    }
    if tool.kind.is_none() {
        tool.kind = Some(At { value: EntryKind::Local, place });
    }
}

fn mcp_settings(tool: RawLocalTool) -> RawTool {
    RawTool {
        name: tool.name,
        mcp: tool.config.and_then(|config| config.value.server),
        max_instances: tool.max_instances,
        timeout: tool.timeout,
        parallel_capable: tool.parallel_capable,
        on_limit: tool.on_limit,
        approval: tool.approval,
        rate: tool.rate,
        burst: tool.burst,
        quota: tool.quota,
        examples: tool.examples,
        title: tool.title,
        annotations: tool.annotations,
        icons: tool.icons,
        ..RawTool::empty(tool.place)
    }
}
