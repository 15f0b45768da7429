//! One fault at a time: a server that has it, a healthy one beside it, and what must hold whatever
//! the fault is.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use haft::record::{Filter, LoggedCall, read};
use haft::{Code, Config, Content, Envelope, Runtime, ServerInfo, ServerState, ToolCall};
use serde_json::{Value, json};
use testkit::fixture::{Fixture, Running, Transport, events, messages};
use testkit::{Workspace, is_running};

use super::support::until;

/// Time limit of a hanging test. No test is expected to take a tenth of it.
const DEADLINE: Duration = Duration::from_mins(1);
const GRACE: Duration = Duration::from_secs(5);

/// The ways to a server, as test names spell them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    Stdio,
    HttpJson,
    HttpSse,
    Sse,
    Websocket,
}

impl Over {
    pub fn named(name: &str) -> Self {
        match name {
            "stdio" => Self::Stdio,
            "http_json" => Self::HttpJson,
            "http_sse" => Self::HttpSse,
            "sse" => Self::Sse,
            "websocket" => Self::Websocket,
            other => panic!("no transport is called {other}"),
        }
    }

    /// The fixture's arguments to serve it; `None` for stdio.
    fn served(self) -> Option<(Transport, &'static str, Value)> {
        match self {
            Self::Stdio => None,
            Self::HttpJson => Some((Transport::Http, "http", json!({"http": {"answer": "json"}}))),
            Self::HttpSse => Some((Transport::Http, "http", json!({"http": {"answer": "sse"}}))),
            Self::Sse => Some((Transport::Sse, "sse", json!({}))),
            Self::Websocket => Some((Transport::Ws, "websocket", json!({}))),
        }
    }
}

/// One row of the table of faults: what is wrong with the server, what is done, what is seen.
pub struct Fault {
    scenario: Value,
    settings: Value,
    call: Option<(&'static str, Value)>,
    timeout: &'static str,
    ends: Ends,
    is_cancelled: bool,
    then: Then,
    is_gone: bool,
    before: Box<dyn Fn(&Scene)>,
    also: Box<dyn Fn(&Scene)>,
}

/// The expected end of the call, or of the connection if there is no call.
enum Ends {
    Answers(&'static str),
    Fails(Code, &'static [&'static str]),
    State(ServerState, &'static [&'static str]),
}

/// The expected result of a later call of a healthy tool of the same server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Works,
    Unavailable,
    NotAsked,
}

impl Fault {
    fn new(scenario: Value, call: Option<(&'static str, Value)>, ends: Ends) -> Self {
        let then = if call.is_some() { Then::Works } else { Then::NotAsked };
        Self {
            scenario,
            settings: json!({}),
            call,
            timeout: "20s",
            ends,
            is_cancelled: false,
            then,
            is_gone: false,
            before: Box::new(|_| {}),
            also: Box::new(|_| {}),
        }
    }

    /// A server that cannot be connected, with these words in the reason.
    pub fn unavailable(scenario: Value, words: &'static [&'static str]) -> Self {
        Self::new(scenario, None, Ends::State(ServerState::Unavailable, words))
    }

    /// A server that works but lacks something, with these words in the reason.
    pub fn degraded(scenario: Value, words: &'static [&'static str]) -> Self {
        Self::new(scenario, None, Ends::State(ServerState::Degraded, words)).then(Then::Works)
    }

    /// A call that succeeds all the same.
    pub fn answers(scenario: Value, tool: &'static str, text: &'static str) -> Self {
        Self::new(scenario, Some((tool, json!({}))), Ends::Answers(text))
    }

    /// A call that fails with this code and these words.
    pub fn fails(
        scenario: Value,
        tool: &'static str,
        code: Code,
        words: &'static [&'static str],
    ) -> Self {
        Self::new(scenario, Some((tool, json!({}))), Ends::Fails(code, words))
    }

    /// A call that only its own time ends.
    pub fn times_out(scenario: Value, tool: &'static str) -> Self {
        Self { timeout: "400ms", ..Self::fails(scenario, tool, Code::Timeout, &["within 400ms"]) }
    }

    pub fn with(mut self, arguments: Value) -> Self {
        let (_, given) = self.call.as_mut().expect("a call");
        *given = arguments;
        self
    }

    pub fn set(self, settings: Value) -> Self {
        Self { settings, ..self }
    }

    /// The server receives the cancellation.
    pub fn cancelled(self) -> Self {
        Self { is_cancelled: true, ..self }
    }

    pub fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }

    /// The listener is gone when the toolbox starts.
    pub fn gone(self) -> Self {
        Self { is_gone: true, ..self }
    }

    /// A step between the start and the call.
    pub fn before(self, before: impl Fn(&Scene) + 'static) -> Self {
        Self { before: Box::new(before), ..self }
    }

    /// A further assertion, before the shutdown.
    pub fn also(self, also: impl Fn(&Scene) + 'static) -> Self {
        Self { also: Box::new(also), ..self }
    }

    /// Injects it.
    pub async fn inject(self, over: &str) {
        let run = async {
            let scene = Scene::set(Over::named(over), &self).await;
            (self.before)(&scene);
            scene.play(&self).await;
            let well = scene.call("well__text", json!({})).await;
            assert_eq!(text(&well), "plain text", "the healthy server is not concerned");
            (self.also)(&scene);
            assert_eq!(scene.starts("well"), 1, "and never was");
            scene.leave_nothing().await;
        };
        tokio::time::timeout(DEADLINE, run).await.expect("something hangs");
    }
}

/// A toolbox with a server `sick`, which has the fault, and a server `well`.
pub struct Scene {
    pub over: Over,
    pub runtime: Runtime,
    pub remote: Option<Running>,
    workspace: Workspace,
    /// The ids of the calls made so far.
    calls: Mutex<Vec<String>>,
}

impl Scene {
    async fn set(over: Over, fault: &Fault) -> Self {
        let workspace = Workspace::new();
        let facts = workspace.path().join("sick.facts");
        let mut scenario = merged(json!({ "facts": facts }), &fault.scenario);
        let own = json!({
            "reconnect": {"attempts": 2, "base": "20ms"}, "connect_timeout": "10s",
        });
        let (remote, address) = match over.served() {
            None => (None, stdio(&scenario, &workspace)),
            Some((transport, word, more)) => {
                scenario = merged(more, &scenario);
                let mut running = Fixture::serve(transport, &scenario);
                if fault.is_gone {
                    running.kill();
                }
                let address = json!({"transport": word, "url": running.url});
                (Some(running), address)
            }
        };
        let sick = merged(merged(own, &address), &fault.settings);
        let facts = workspace.path().join("well.facts");
        let well = stdio(&json!({"facts": facts, "tools": ["text"]}), &workspace);
        let well = merged(well, &json!({"tool_prefix": "server"}));
        let tools: Vec<Value> = fault
            .call
            .iter()
            .map(|(tool, _)| json!({"name": tool, "timeout": fault.timeout, "max_instances": 1}))
            .collect();
        let config = config(&workspace, &json!({"sick": sick, "well": well}), &json!(tools));
        let runtime = Runtime::start(config).await.unwrap_or_else(|error| panic!("{error}"));
        Self { over, runtime, remote, workspace, calls: Mutex::default() }
    }

    async fn play(&self, fault: &Fault) {
        match &fault.ends {
            Ends::State(state, words) => {
                // The toolbox starts after the first attempt; the others follow while it works.
                until(|| self.sick().state == *state).await;
                let sick = self.sick();
                has_all(&sick.reason.unwrap_or_default(), words);
            }
            Ends::Answers(expected) => {
                let envelope = self.call_again(fault).await;
                assert_eq!(text(&envelope), *expected);
            }
            Ends::Fails(code, words) => {
                let envelope = self.call_again(fault).await;
                let error = envelope.error.unwrap_or_else(|| panic!("no error"));
                assert_eq!(error.code, *code, "{}", error.message);
                has_all(&error.message, words);
                if fault.is_cancelled {
                    self.hears_of_the_end().await;
                }
                // With `max_instances: 1` this call waits forever unless the first released its
                // slot.
                self.call_again(fault).await;
            }
        }
        match fault.then {
            Then::Works => {
                let after = self.call("text", json!({})).await;
                assert_eq!(text(&after), "plain text", "after the fault");
            }
            Then::Unavailable => {
                let after = self.call("text", json!({})).await;
                let error = after.error.unwrap_or_else(|| panic!("no error"));
                assert_eq!(error.code, Code::ServiceUnavailable, "{}", error.message);
                has_all(&error.message, &["server `sick` is no longer available"]);
            }
            Then::NotAsked => {}
        }
    }

    async fn call_again(&self, fault: &Fault) -> Envelope {
        let (tool, arguments) = fault.call.as_ref().expect("a call");
        self.call(tool, arguments.clone()).await
    }

    /// Calls a tool, which leaves exactly one entry in the log.
    pub async fn call(&self, tool: &str, arguments: Value) -> Envelope {
        let envelope = self.runtime.call(ToolCall::new(tool, &arguments)).await;
        let mut calls = self.calls.lock().unwrap();
        calls.push(envelope.execution_id.clone());
        let logged: Vec<String> =
            self.logged().into_iter().map(|entry| entry.execution_id).collect();
        assert_eq!(logged, *calls, "one entry for each call");
        envelope
    }

    /// A blocking variant.
    pub fn call_now(&self, tool: &str, arguments: Value) -> Envelope {
        let handle = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| handle.block_on(self.call(tool, arguments)))
    }

    fn logged(&self) -> Vec<LoggedCall> {
        let logs = self.workspace.path().join("logs");
        read(&logs, &Filter::default()).unwrap().map(Result::unwrap).collect()
    }

    /// The state of the server with the fault.
    pub fn sick(&self) -> ServerInfo {
        let mut servers = self.runtime.servers();
        let at = servers.iter().position(|server| server.name == "sick").unwrap();
        servers.swap_remove(at)
    }

    pub fn facts(&self, server: &str) -> PathBuf {
        self.workspace.path().join(format!("{server}.facts"))
    }

    /// Counts messages with this method that the server with the fault received.
    pub fn got(&self, method: &str) -> usize {
        messages(&self.facts("sick"), method).len()
    }

    /// The HTTP requests the server with the fault got.
    pub fn requests(&self) -> Vec<Value> {
        events(&self.facts("sick"), "http")
    }

    /// Counts the started processes of a server.
    pub fn starts(&self, server: &str) -> usize {
        events(&self.facts(server), "start").len()
    }

    /// The processes of the server with the fault, in the order of their starts.
    pub fn pids(&self) -> Vec<u32> {
        pids(&self.facts("sick"))
    }

    async fn hears_of_the_end(&self) {
        let facts = self.facts("sick");
        until(|| !messages(&facts, "notifications/cancelled").is_empty()).await;
        let told = messages(&facts, "notifications/cancelled").remove(0);
        let asked = messages(&facts, "tools/call").remove(0);
        assert_eq!(told["params"]["requestId"], asked["id"]);
    }

    /// Ends the toolbox; no process and no socket of it is left.
    async fn leave_nothing(self) {
        self.runtime.shutdown(GRACE).await;
        assert_eq!(self.logged().len(), self.calls.lock().unwrap().len(), "the end is no call");
        let mut ours = pids(&self.facts("well"));
        match &self.remote {
            None => ours.extend(self.pids()),
            Some(remote) => {
                let port = remote.port();
                until(|| sockets_to(port) == 0).await;
            }
        }
        assert_eq!(ours.into_iter().find(|pid| is_running(*pid)), None, "a process is left");
    }
}

/// A native configuration with log and state in the folder. JSON is YAML too.
pub fn config(workspace: &Workspace, servers: &Value, tools: &Value) -> Config {
    let config = json!({
        "log": {"dir": workspace.path().join("logs")},
        "state_dir": workspace.path().join("state"),
        "servers": servers,
        "tools": tools,
    });
    Config::from_yaml(&config.to_string()).unwrap_or_else(|error| panic!("{error}"))
}

/// The entry of a server that is a process. Its scenario may be longer than an argument.
pub fn stdio(scenario: &Value, workspace: &Workspace) -> Value {
    let name = scenario["facts"].as_str().and_then(|path| path.rsplit('/').next()).unwrap();
    let script = workspace.write(&format!("{name}.scenario"), scenario.to_string());
    json!({"command": Fixture::path(), "args": ["stdio", "--script", script]})
}

/// `base` with everything of `more`, which wins; objects are merged all the way down.
pub fn merged(mut base: Value, more: &Value) -> Value {
    match (&mut base, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (name, value) in more {
                let before = fields.remove(name).unwrap_or_default();
                fields.insert(name.clone(), merged(before, value));
            }
            base
        }
        (_, more) => more.clone(),
    }
}

/// The one text of an answer.
pub fn text(envelope: &Envelope) -> &str {
    match &envelope.content[..] {
        [Content::Text { text }] if envelope.error.is_none() => text,
        _ => panic!("{envelope:?}"),
    }
}

pub fn has_all(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "`{words}` is missing in: {text}");
    }
}

pub fn pids(facts: &std::path::Path) -> Vec<u32> {
    let starts = events(facts, "start").into_iter();
    starts.map(|fact| u32::try_from(fact["pid"].as_u64().unwrap()).unwrap()).collect()
}

/// Counts the open sockets to a port of this machine.
pub fn sockets_to(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let leads_there = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let to = fields[2].rsplit(':').next().and_then(|it| u16::from_str_radix(it, 16).ok());
        // A socket without a holder has no inode.
        to == Some(port) && fields[9] != "0"
    };
    table.lines().skip(1).filter(leads_there).count()
}

/// A listener that must not receive a connection.
pub struct Untouched(std::net::TcpListener);

impl Untouched {
    pub fn new() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    pub fn url(&self) -> String {
        format!("http://{}/elsewhere", self.0.local_addr().unwrap())
    }

    pub fn assert_untouched(&self) {
        let nobody = self.0.accept().map(drop).map_err(|error| error.kind());
        assert_eq!(nobody, Err(std::io::ErrorKind::WouldBlock), "somebody came");
    }
}

/// The memory this process holds.
pub fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Rows of the table: each fault over each transport is a separate test.
macro_rules! faults {
    ($($(#[$about:meta])* $name:ident over [$($over:ident),+] $fault:expr;)+) => {$(
        $(#[$about])*
        mod $name {
            #[allow(unused_imports, reason = "not every row needs everything")]
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $over() {
                    let fault: Fault = $fault;
                    fault.inject(stringify!($over)).await;
                }
            )+
        }
    )+};
}
pub(crate) use faults;
