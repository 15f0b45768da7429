//! A server as the official SDKs see it, so that a test can compare Haft with them.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::command::CommandLine;
use super::{Era, folder, node, program, python, text};

/// A client of an official SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// Python, release 1: legacy era; stdio, HTTP, SSE, WebSocket.
    Python1,
    /// Python, release 2: both eras; stdio, HTTP, and SSE in the legacy era.
    Python2(Era),
    /// TypeScript, release 1: legacy era; stdio, HTTP, SSE, WebSocket.
    TypeScript1,
    /// TypeScript, release 2: both eras; stdio, HTTP, and SSE in the legacy era.
    TypeScript2(Era),
}

/// Where a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// The client starts it.
    Stdio(CommandLine),
    /// Streamable HTTP.
    Http(String),
    /// HTTP+SSE of 2024-11-05.
    Sse(String),
    /// WebSocket.
    WebSocket(String),
}

/// The lists and results that a client received, as JSON without the SDK's defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The protocol version agreed upon; null if the SDK does not report it.
    pub protocol_version: Value,
    /// The server's name and version; null if a modern server did not send them.
    pub server_info: Value,
    /// The server's capabilities.
    pub capabilities: Value,
    /// All tools, of all pages.
    pub tools: Vec<Value>,
    /// For each call `{"result": ...}`, `{"error": {"code", "message", "data"}}`, or
    /// `{"refused": "..."}` where Python's SDK found the result wrong.
    pub results: Vec<Value>,
}

impl Seen {
    /// The tools' names, in the server's order.
    pub fn tool_names(&self) -> Vec<&str> {
        self.tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
    }
}

impl Reference {
    /// Connects, lists all tools, makes the calls (name and arguments) one after the other, and ends.
    pub fn see(self, address: &Address, calls: &[(&str, Value)]) -> Seen {
        let request = self.request(address, calls);
        let mut command = self.command_line().command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{self:?}: {error}"));
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(request.to_string().as_bytes()).expect("a client that reads its request");
        drop(stdin);
        let output = child.wait_with_output().expect("a client that ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self:?} failed ({}):\n{stderr}", output.status);
        let mut seen: Value =
            serde_json::from_slice(&output.stdout).expect("a client that prints JSON");
        let mut list = |key: &str| match seen[key].take() {
            Value::Array(items) => items,
            other => panic!("{self:?} gave {other} as {key}"),
        };
        let (tools, results) = (list("tools"), list("results"));
        Seen {
            protocol_version: seen["protocolVersion"].take(),
            server_info: seen["serverInfo"].take(),
            capabilities: seen["capabilities"].take(),
            tools,
            results,
        }
    }

    fn request(self, address: &Address, calls: &[(&str, Value)]) -> Value {
        let era = match self {
            Self::Python1 | Self::TypeScript1 => Era::Legacy,
            Self::Python2(era) | Self::TypeScript2(era) => era,
        };
        let era = match era {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        };
        let calls: Vec<Value> =
            calls.iter().map(|(name, args)| json!({"name": name, "arguments": args})).collect();
        let mut request = match address {
            Address::Stdio(server) => {
                let env: serde_json::Map<_, _> =
                    server.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
                json!({"transport": "stdio", "command": server.words(), "env": env})
            }
            Address::Http(url) => json!({"transport": "http", "url": url}),
            Address::Sse(url) => json!({"transport": "sse", "url": url}),
            Address::WebSocket(url) => json!({"transport": "ws", "url": url}),
        };
        request["era"] = json!(era);
        request["calls"] = json!(calls);
        request
    }

    fn command_line(self) -> CommandLine {
        let typescript = |release: &str| {
            let packages = folder().join("npm");
            let script = CommandLine::new(&node()).arg(&program("client_ts.mjs"));
            script.arg(text(&packages)).arg(release)
        };
        match self {
            Self::Python1 => CommandLine::new(&python(Era::Legacy)).arg(&program("client_py1.py")),
            Self::Python2(_) => {
                CommandLine::new(&python(Era::Modern)).arg(&program("client_py2.py"))
            }
            Self::TypeScript1 => typescript("1"),
            Self::TypeScript2(_) => typescript("2"),
        }
    }
}
