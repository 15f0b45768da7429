//! Helpers for the tests of MCP servers: a folder, servers in it, and their recordings.

use std::path::{Path, PathBuf};

use haft::record::{Filter, LoggedCall, read};
use haft::{Code, Config, Content, Envelope, Runtime, RuntimeBuilder, ToolCall};
use serde_json::{Map, Value, json};
use testkit::Workspace;
use testkit::fixture::{Fixture, Running, Transport, events, messages};

/// One entry of `servers`: its name and its settings.
pub type Server = (&'static str, Value);

/// A folder for one test: configuration, log, memory, and what each server saw.
pub struct Stage {
    pub workspace: Workspace,
}

/// A name for each transport of an era, and one for a tool behind it.
pub fn transports(era: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    // The older transport of events belongs to the older era.
    let has_sse = era != "modern";
    let all =
        [("stdio", "over_stdio"), ("http", "over_http"), ("sse", "over_sse"), ("ws", "over_ws")];
    all.into_iter().filter(move |(name, _)| has_sse || *name != "sse")
}

impl Stage {
    pub fn new() -> Self {
        Self { workspace: Workspace::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.workspace.path().join(name)
    }

    /// The file to which a server writes what it sees.
    pub fn facts(&self, server: &str) -> PathBuf {
        self.path(&format!("{server}.facts"))
    }

    /// A server as our child process. It reconnects fast, unless `settings` override that.
    pub fn stdio(&self, name: &'static str, scenario: Value, settings: Value) -> Server {
        let scenario = with(json!({ "facts": self.facts(name) }), scenario);
        let own = json!({
            "command": Fixture::path(),
            "args": Fixture::stdio_args(&scenario),
            "reconnect": {"base": "20ms"},
        });
        (name, with(own, settings))
    }

    /// A toolbox with a server over each transport of an era, each with its tool of [`transports`].
    pub async fn start_everywhere(
        &self,
        era: &str,
        scenario: impl Fn(&str) -> Value,
    ) -> (Runtime, Vec<Running>) {
        let settings = || json!({ "protocol": era });
        let (mut servers, mut running) = (Vec::new(), Vec::new());
        for (name, tool) in transports(era) {
            let transport = match name {
                "stdio" => {
                    servers.push(self.stdio(name, scenario(tool), settings()));
                    continue;
                }
                "http" => Transport::Http,
                "sse" => Transport::Sse,
                _ => Transport::Ws,
            };
            let (server, entry) = self.remote(name, transport, scenario(tool), settings());
            running.push(server);
            servers.push(entry);
        }
        (self.start(servers, json!({})).await, running)
    }

    /// A server that listens, and its entry. It lives as long as the first of them.
    pub fn remote(
        &self,
        name: &'static str,
        transport: Transport,
        scenario: Value,
        settings: Value,
    ) -> (Running, Server) {
        let scenario = with(json!({ "facts": self.facts(name) }), scenario);
        let running = Fixture::serve(transport, &scenario);
        let word = match transport {
            Transport::Http => "http",
            Transport::Sse => "sse",
            Transport::Ws => "websocket",
        };
        let own = json!({
            "transport": word, "url": running.url, "reconnect": {"base": "20ms"},
        });
        (running, (name, with(own, settings)))
    }

    /// A healthy server without any settings.
    pub fn plain(&self, name: &'static str) -> Server {
        self.stdio(name, json!({}), json!({}))
    }

    /// A native configuration with these servers and the settings of `rest`.
    pub fn config(&self, servers: impl IntoIterator<Item = Server>, rest: Value) -> Config {
        let servers: Map<String, Value> =
            servers.into_iter().map(|(name, server)| (name.to_owned(), server)).collect();
        let own = json!({
            "log": {"dir": self.path("logs")},
            "state_dir": self.path("state"),
            "servers": servers,
        });
        // JSON is YAML too.
        Config::from_yaml(&with(own, rest).to_string()).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn builder(
        &self,
        servers: impl IntoIterator<Item = Server>,
        rest: Value,
    ) -> RuntimeBuilder {
        Runtime::builder(self.config(servers, rest))
    }

    /// A running toolbox with these servers.
    pub async fn start(&self, servers: impl IntoIterator<Item = Server>, rest: Value) -> Runtime {
        self.builder(servers, rest).start().await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Every entry of the execution log.
    pub fn logged(&self) -> Vec<LoggedCall> {
        read(&self.path("logs"), &Filter::default()).unwrap().map(Result::unwrap).collect()
    }

    /// Counts the started processes of a server.
    pub fn starts(&self, server: &str) -> usize {
        events(&self.facts(server), "start").len()
    }

    /// The messages with this method that a server got.
    pub fn messages(&self, server: &str, method: &str) -> Vec<Value> {
        messages(&self.facts(server), method)
    }

    /// The methods a server got, in order.
    pub fn methods(&self, server: &str) -> Vec<String> {
        let got = events(&self.facts(server), "message").into_iter();
        got.filter_map(|fact| Some(fact["message"]["method"].as_str()?.to_owned())).collect()
    }

    /// The process ids of a server, in the order of their starts.
    pub fn pids(&self, server: &str) -> Vec<u32> {
        let starts = events(&self.facts(server), "start").into_iter();
        starts.map(|fact| u32::try_from(fact["pid"].as_u64().unwrap()).unwrap()).collect()
    }
}

/// `base` with the fields of `more`, which win.
pub fn with(mut base: Value, more: Value) -> Value {
    if let (Value::Object(base), Value::Object(more)) = (&mut base, more) {
        base.extend(more);
    }
    base
}

/// The names under which tools are offered.
pub fn names(runtime: &Runtime) -> Vec<String> {
    runtime.tools().into_iter().map(|tool| tool.name).collect()
}

/// Calls a tool.
pub async fn call(runtime: &Runtime, tool: &str, arguments: Value) -> Envelope {
    runtime.call(ToolCall::new(tool, &arguments)).await
}

/// The structured answer of a call that must succeed.
pub async fn answer(runtime: &Runtime, tool: &str, arguments: Value) -> Value {
    let envelope = call(runtime, tool, arguments).await;
    assert!(envelope.error.is_none(), "{:?}", envelope.error);
    data(&envelope)
}

pub fn data(envelope: &Envelope) -> Value {
    let data = envelope.data.as_ref().map_or("null", |data| data.get());
    serde_json::from_str(data).unwrap()
}

/// The text blocks of an answer.
pub fn texts(envelope: &Envelope) -> Vec<&str> {
    fn text(block: &Content) -> Option<&str> {
        match block {
            Content::Text { text } => Some(text),
            Content::Image { .. } | Content::Audio { .. } | Content::Resource { .. } => None,
        }
    }
    envelope.content.iter().filter_map(text).collect()
}

/// Code and message of a call that must fail.
pub fn failure(envelope: &Envelope) -> (Code, &str) {
    let error = envelope.error.as_ref().unwrap_or_else(|| panic!("no error: {envelope:?}"));
    (error.code, &error.message)
}

/// Ends the whole server process.
pub fn kill(pid: u32) {
    let status = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.unwrap().success(), "{pid} is killed");
}

/// The files below `folder` that contain `needle`.
pub fn files_with(folder: &Path, needle: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, needle));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(needle) {
            found.push(path);
        }
    }
    found
}
