//! The clients that share the key `mcpServers`: Claude, Cursor, mcphost, Inspector.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::tools_json::Argv;
use super::{Dialect, FileContext, Layer, set_servers};
use crate::config::choices::{Approval, Protocol, Transport};
use crate::config::node::{Node, NodeValue, Text};
use crate::config::quantity::{EnvValue, Milliseconds, Span};
use crate::config::raw::{RawServer, RawTool};
use crate::config::read::{FromNode, Named, Reader, choice, record};
use crate::config::{At, Place};

choice! {
    enum Kind("a type of server") {
        /// A child process.
        Stdio = "stdio" | "local",
        /// Streamable HTTP.
        Http = "http" | "streamable_http" | "streamable-http" | "streamableHttp" | "remote",
        /// Legacy HTTP with server-sent events.
        Sse = "sse",
        /// WebSocket.
        Ws = "ws" | "websocket",
        /// Part of the client itself.
        Builtin = "builtin" | "inprocess",
    }
}

record! {
    struct RawEntry("a server", Warn) {
        /// The transport of the server.
        kind("type" | "transport"): Kind,
        /// The program to start.
        command("command"): Argv,
        /// Its arguments.
        args("args"): Vec<Text>,
        /// Its working directory.
        cwd("cwd"): Text,
        /// Variables for its environment.
        env("env" | "environment"): Named<EnvValue>,
        /// A file with variables.
        env_file("envFile"): Text,
        /// The address of a remote server.
        url("url" | "serverUrl" | "httpUrl"): Text,
        /// HTTP headers.
        headers("headers"): Headers,
        /// Time limit of one call, in milliseconds; in the files of Cline and Roo Code in seconds.
        timeout("timeout"): Timeout,
        /// Time limit for connecting, in milliseconds.
        connection_timeout("connectionTimeout"): Milliseconds,
        /// Time limit of one request, in milliseconds.
        request_timeout("requestTimeout"): Milliseconds,
        /// The protocol era.
        protocol("protocolEra"): Protocol,
        /// Only these tools.
        allowed("allowedTools" | "includeTools"): Vec<String>,
        /// All but these tools.
        excluded("excludedTools" | "excludeTools"): Vec<String>,
        /// Tools that the client calls without asking.
        approved("autoApprove" | "alwaysAllow"): Vec<String>,
        /// Leaves the server out.
        disabled("disabled"): bool,
        /// The purpose of the server.
        description("description"): String,
    }
}

/// Headers as a map, or as a list of `Name: value` lines.
#[derive(Debug, Clone)]
struct Headers {
    headers: Vec<(At<String>, Text)>,
    is_list: bool,
}

impl FromNode for Headers {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        if !matches!(node.value, NodeValue::List(_)) {
            return Named::read(node, reader)
                .map(|Named(headers)| Self { headers, is_list: false });
        }
        let lines = Vec::<At<Text>>::read(node, reader)?;
        let mut headers = Vec::new();
        for At { value: line, place } in lines {
            let Some((name, value)) = line.text.split_once(':') else {
                reader.error(node, "a header has no colon", "write \"Name: value\"");
                continue;
            };
            let shown = line.shown.as_deref().and_then(|shown| shown.split_once(':'));
            let value = Text {
                text: value.trim().to_owned(),
                shown: shown.map(|(_, shown)| shown.trim().to_owned()),
            };
            headers.push((At { value: name.trim().to_owned(), place }, value));
        }
        Some(Self { headers, is_list: true })
    }
    fn schema() -> Value {
        Named::<Text>::schema()
    }
}

/// Reads the servers of the file, and those of the project that Claude keeps for the folder Haft runs in.
pub(super) fn read(
    root: &Node,
    layer: &mut Layer,
    reader: &mut Reader<'_>,
    context: &FileContext<'_>,
) {
    let dialect = layer.dialect;
    let mut servers =
        root.get("mcpServers").map(|node| section(node, dialect, reader)).unwrap_or_default();
    for project in root.get("projects").map(Node::entries).unwrap_or_default() {
        let Some(node) = project.value.get("mcpServers") else {
            continue;
        };
        let path = format!("projects.{}", project.key);
        let found = reader.inside(path, |reader| section(node, dialect, reader));
        if Path::new(&project.key) == Path::new(context.cwd) {
            servers.extend(found);
        }
    }
    let place = reader.place(root);
    let (servers, tools): (Vec<_>, Vec<_>) = servers.into_iter().unzip();
    let tools: Vec<RawTool> = tools.into_iter().flatten().collect();
    if !tools.is_empty() {
        layer.config.tools = Some(At { value: tools, place: place.clone() });
    }
    set_servers(layer, servers, place);
}

/// A server, and the settings of its tools.
type Read = ((At<String>, RawServer), Vec<RawTool>);

fn section(node: &Node, dialect: Dialect, reader: &mut Reader<'_>) -> Vec<Read> {
    reader.inside("mcpServers", |reader| {
        let entries = Named::<RawEntry>::read(node, reader).unwrap_or_default();
        let servers = entries.0.into_iter().filter_map(|(name, entry)| {
            reader.inside(name.value.clone(), |reader| native(name, entry, dialect, node, reader))
        });
        servers.collect()
    })
}

fn native(
    name: At<String>,
    entry: RawEntry,
    dialect: Dialect,
    node: &Node,
    reader: &mut Reader<'_>,
) -> Option<Read> {
    let kind = entry.kind.as_ref().map(|kind| kind.value);
    if kind == Some(Kind::Builtin) {
        let problem =
            format!("server `{}` is built into its client and cannot be used here", name.value);
        reader.warn(node, problem, "Haft runs without it");
        return None;
    }
    if let Some(headers) = entry.headers.as_ref().filter(|headers| headers.value.is_list)
        && dialect != Dialect::Mcphost
    {
        let place = &headers.place;
        reader.error_at(
            place,
            "expected a map of headers, found a list",
            "write {\"Name\": \"value\"}",
        );
        return None;
    }
    let transport = entry.kind.map(|kind| {
        kind.map(|kind| match kind {
            Kind::Stdio | Kind::Builtin => Transport::Stdio,
            Kind::Http => Transport::Http,
            Kind::Sse => Transport::Sse,
            Kind::Ws => Transport::Websocket,
        })
    });
    let (command, args) = argv(entry.command, entry.args);
    let is_in_seconds = entry.approved.is_some() || is_cline(reader.file());
    let timeout = entry.timeout.map(|at| at.map(|timeout| timeout.span(is_in_seconds)));
    let tools = approved(&name, entry.approved);
    let (allowed, excluded) = filters(dialect, entry.allowed, entry.excluded);
    let server = RawServer {
        transport,
        command,
        args,
        cwd: entry.cwd,
        env: entry.env,
        env_file: entry.env_file,
        url: entry.url,
        headers: entry.headers.map(|headers| headers.map(|it| Named(it.headers))),
        connect_timeout: millis(entry.connection_timeout),
        request_timeout: millis(entry.request_timeout).or(timeout),
        protocol: entry.protocol,
        tool_allowlist: allowed,
        tool_denylist: excluded,
        disabled: entry.disabled,
        description: entry.description,
        broken: entry.broken,
        ..RawServer::empty(entry.place)
    };
    Some(((name, server), tools))
}

/// The largest number of seconds that Cline and Roo Code take. A larger number is one of milliseconds.
const SECONDS_MAX: u64 = 3600;

/// A time limit whose unit depends on the client.
#[derive(Debug, Clone, Copy)]
struct Timeout(Milliseconds);

impl Timeout {
    fn span(self, is_in_seconds: bool) -> Span {
        let Self(Milliseconds(duration)) = self;
        match u64::try_from(duration.as_millis()) {
            Ok(number) if is_in_seconds && number <= SECONDS_MAX => {
                Span(Duration::from_secs(number))
            }
            _ => Span(duration),
        }
    }
}

impl FromNode for Timeout {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        Milliseconds::read(node, reader).map(Self)
    }

    fn schema() -> Value {
        Milliseconds::schema()
    }
}

/// The files of Cline and of Roo Code.
fn is_cline(file: &str) -> bool {
    file.ends_with("cline_mcp_settings.json") || file.contains(".roo/")
}

/// Entries for the tools that the client calls without asking, so that they stay so if the operator has Haft ask for
/// the others.
fn approved(server: &At<String>, names: Option<At<Vec<String>>>) -> Vec<RawTool> {
    let Some(At { value: names, place }) = names else { return Vec::new() };
    let at = |value: String| Some(At { value, place: place.clone() });
    let tools = names.into_iter().map(|name| RawTool {
        name: at(name),
        mcp: at(server.value.clone()),
        approval: Some(At { value: Approval::Auto, place: place.clone() }),
        ..RawTool::empty(place.clone())
    });
    tools.collect()
}

type Names = Option<At<Vec<String>>>;

/// Gemini takes both lists, and an excluded tool is excluded. mcphost refuses them, as Haft does.
fn filters(dialect: Dialect, allowed: Names, excluded: Names) -> (Names, Names) {
    match (allowed, excluded) {
        (Some(mut allowed), Some(excluded))
            if dialect != Dialect::Mcphost && !allowed.value.is_empty() =>
        {
            allowed.value.retain(|name| !excluded.value.contains(name));
            (Some(allowed), None)
        }
        lists => lists,
    }
}

fn millis(span: Option<At<Milliseconds>>) -> Option<At<Span>> {
    span.map(|at| at.map(|Milliseconds(duration)| Span(duration)))
}

type Args = Option<At<Vec<Text>>>;

/// mcphost writes the whole command line as one list.
fn argv(command: Option<At<Argv>>, args: Args) -> (Option<At<Text>>, Args) {
    let Some(At { value: Argv(words), place }) = command else {
        return (None, args);
    };
    let mut words = words.into_iter();
    // An empty list stays visible as an empty program, which is refused at its place.
    let program = words.next().unwrap_or_else(|| Text { text: String::new(), shown: None });
    let program = Some(At { value: program, place: place.clone() });
    let mut all: Vec<Text> = words.collect();
    let place: Place = args.as_ref().map_or(place, |args| args.place.clone());
    all.extend(args.map(|args| args.value).unwrap_or_default());
    (program, Some(At { value: all, place }))
}
