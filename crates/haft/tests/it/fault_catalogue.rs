//! Every failure of an MCP server in words: each text names the server, the cause and a next step.

use std::time::Duration;

use haft::{CallError, Runtime, ToolCall};
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::{Fixture, Running, Transport};

use super::fault_support::{config, merged, stdio};

/// The message and the remedy for a person or model.
struct Told {
    about: &'static str,
    message: String,
    remedy: Option<String>,
}

/// A server with a fault; the process behind it lives as long as this does.
struct Sick {
    workspace: Workspace,
    entry: Value,
    _remote: Option<Running>,
}

impl Sick {
    fn stdio(scenario: &Value) -> Self {
        let workspace = Workspace::new();
        let facts = json!({"facts": workspace.path().join("sick.facts")});
        let entry = stdio(&merged(facts, scenario), &workspace);
        Self { workspace, entry, _remote: None }
    }

    fn remote(transport: Transport, scenario: &Value) -> Self {
        let running = Fixture::serve(transport, scenario);
        let word = match transport {
            Transport::Http => "http",
            Transport::Sse => "sse",
            Transport::Ws => "websocket",
        };
        let entry = json!({"transport": word, "url": running.url});
        Self { workspace: Workspace::new(), entry, _remote: Some(running) }
    }

    fn at(url: &str, transport: &str) -> Self {
        let entry = json!({"transport": transport, "url": url});
        Self { workspace: Workspace::new(), entry, _remote: None }
    }

    fn set(mut self, settings: &Value) -> Self {
        self.entry = merged(self.entry, settings);
        self
    }

    async fn start(&self) -> Runtime {
        let own = json!({"reconnect": {"attempts": 0}, "connect_timeout": "5s"});
        let servers = json!({"sick": merged(own, &self.entry)});
        let hasty = ["hang", "wrong_id", "plain_text", "wide"]
            .map(|name| json!({"name": name, "timeout": "300ms"}));
        Runtime::start(config(&self.workspace, &servers, &json!(hasty))).await.unwrap()
    }

    /// The message of a server that could not be connected.
    async fn unreachable(self, about: &'static str) -> Told {
        let runtime = self.start().await;
        let failure = runtime.ping("sick").await.unwrap_err();
        let error = CallError::Failed { tool: String::new(), failure: Box::new(failure) };
        runtime.shutdown(Duration::ZERO).await;
        self.told(about, &error.to_string(), error.remedy().map(|it| it.to_string()))
    }

    /// The message of a call.
    async fn calling(self, about: &'static str, tool: &str, arguments: Value) -> Told {
        let runtime = Box::pin(self.start()).await;
        let envelope = runtime.call(ToolCall::new(tool, &arguments)).await;
        runtime.shutdown(Duration::ZERO).await;
        let error = envelope.error.unwrap_or_else(|| panic!("{about} is no failure"));
        self.told(about, &error.message, error.remedy.map(|it| it.to_string()))
    }

    /// Paths and ports differ from run to run.
    fn told(&self, about: &'static str, message: &str, remedy: Option<String>) -> Told {
        let message = self.workspace.stable(message);
        let path = std::env::var("PATH").unwrap();
        let message = message.replace(&path, "PATH");
        let mut shown = String::new();
        let mut rest = message.as_str();
        while let Some((before, after)) = rest.split_once("127.0.0.1:") {
            shown.push_str(before);
            shown.push_str("127.0.0.1:PORT");
            rest = after.trim_start_matches(|character: char| character.is_ascii_digit());
        }
        shown.push_str(rest);
        Told { about, message: shown, remedy }
    }
}

fn hit(action: &Value) -> Value {
    json!({"faults": [{ "do": action }]})
}

fn hit_calls(action: &Value) -> Value {
    json!({"faults": [{"rpc": "tools/call", "do": action}]})
}

async fn stdio_failures() -> Vec<Told> {
    let silent = json!({"silent_on": ["initialize"]});
    let hasty = json!({"connect_timeout": "1s"});
    let exits = json!({"start": {"exit": 3, "stderr": "no licence\n"}});
    let no_list = json!({"silent_on": ["tools/list"]});
    let refuses = json!({"errors_on": {"initialize": {"code": -32000, "message": "not today"}}});
    let odd = json!({"tools": [{"name": "odd", "inputSchema": {"type": "object"},
        "result": {"content": 5}}]});
    let texts = json!({"tools": [{"name": "odd", "inputSchema": {"type": "object"},
        "result": "fine"}]});
    let healthy = json!({});
    let sick = Sick::stdio;
    let gone = json!({"command": "nope-not-here", "args": []});
    let elsewhere = json!({"cwd": "/nope/not/here"});
    vec![
        sick(&healthy).set(&gone).unreachable("command not found").await,
        sick(&healthy).set(&elsewhere).unreachable("folder missing").await,
        sick(&exits).unreachable("exits at startup").await,
        sick(&json!({"exit_on": {"initialize": 4}})).unreachable("exits in the handshake").await,
        sick(&silent).set(&hasty).unreachable("hangs before initialize").await,
        sick(&refuses).unreachable("refuses initialize").await,
        sick(&json!({"protocol_versions": ["1999-01-01"]})).unreachable("another version").await,
        sick(&no_list)
            .set(&json!({"request_timeout": "300ms"}))
            .unreachable("hangs before its list")
            .await,
        sick(&healthy).calling("hangs in a call", "hang", json!({})).await,
        sick(&healthy).calling("crashes in a call", "crash", json!({})).await,
        sick(&healthy).calling("answers somebody else", "wrong_id", json!({})).await,
        sick(&healthy).calling("the id as a string", "text_id", json!({})).await,
        sick(&healthy).calling("plain text as an answer", "plain_text", json!({})).await,
        sick(&healthy).calling("an answer in UTF-16", "wide", json!({})).await,
        sick(&healthy)
            .set(&json!({"encoding": "utf-16le", "connect_timeout": "1s"}))
            .unreachable("another encoding than configured")
            .await,
        sick(&healthy).calling("half a message", "half_line", json!({})).await,
        sick(&healthy).calling("invalid UTF-8", "bad_utf8", json!({})).await,
        sick(&healthy).calling("too deep", "deep", json!({"depth": 200})).await,
        sick(&healthy).calling("too long", "big", json!({"bytes": 9 << 20})).await,
        sick(&healthy).calling("too much noise", "flood", json!({"bytes": 20 << 20})).await,
        sick(&healthy).calling("an error response", "rpc_error", json!({})).await,
        sick(&odd).calling("a result that is none", "odd", json!({})).await,
        sick(&texts).calling("a result that is a string", "odd", json!({})).await,
    ]
}

async fn remote_failures() -> Vec<Told> {
    let http = |scenario: &Value| Sick::remote(Transport::Http, scenario);
    let sse = |scenario: &Value| Sick::remote(Transport::Sse, scenario);
    let ws = |scenario: &Value| Sick::remote(Transport::Ws, scenario);
    let status = |code: u16| json!({"answer": {"status": code}});
    let page = json!({"answer": {"status": 200, "headers": {"Content-Type": "text/html"},
        "body": "<html>Welcome</html>"}});
    let hasty = json!({"connect_timeout": "1s"});
    let nowhere = json!({"redirect": "http://elsewhere.invalid/mcp"});
    let plain = Fixture::serve(Transport::Http, &json!({}));
    let tls = format!("https://127.0.0.1:{}/mcp", plain.port());
    let closed = {
        let mut running = Fixture::serve(Transport::Http, &json!({}));
        running.kill();
        running.url.clone()
    };
    let echo = || ("echo", json!({}));
    let mut told = vec![
        Sick::at(&closed, "http").unreachable("nobody listens").await,
        Sick::at(&tls, "http").unreachable("no TLS").await,
        http(&hit(&status(401))).unreachable("401 at the start").await,
        http(&hit(&status(403))).unreachable("403 at the start").await,
        http(&hit(&status(404))).unreachable("404 at the start").await,
        http(&hit(&status(500))).unreachable("500 at the start").await,
        http(&hit(&json!("stall"))).set(&hasty).unreachable("stalls").await,
        http(&hit(&page)).unreachable("a web page").await,
        http(&hit(&json!({"redirect": "self"}))).unreachable("a redirect loop").await,
        http(&hit(&nowhere)).unreachable("a redirect elsewhere").await,
        sse(&json!({"sse": {"endpoint": "http://elsewhere.invalid/"}}))
            .unreachable("an endpoint elsewhere")
            .await,
        ws(&hit(&status(401))).unreachable("401 for a WebSocket").await,
        ws(&hit(&page)).unreachable("no WebSocket").await,
    ];
    for (about, action) in [
        ("401 in a call", status(401)),
        ("429 in a call", status(429)),
        ("500 in a call", status(500)),
        ("cut in a call", json!("cut")),
        ("a redirect in a call", nowhere),
    ] {
        let (tool, arguments) = echo();
        told.push(http(&hit_calls(&action)).calling(about, tool, arguments).await);
    }
    let text = json!({"answer": {"status": 200, "headers": {"Content-Type": "text/plain"},
        "body": "fine"}});
    told.push(http(&hit_calls(&text)).calling("plain text over HTTP", "echo", json!({})).await);
    // Long enough for a handshake on a busy machine.
    let silent = json!({"sse_read_timeout": "1s"});
    let long = json!({"ms": 60_000});
    let streaming = http(&json!({"http": {"answer": "sse"}})).set(&silent);
    told.push(streaming.calling("a silent stream", "sleep", long.clone()).await);
    told.push(sse(&json!({})).set(&silent).calling("a silent SSE stream", "sleep", long).await);
    let closing = json!({"ws": {"close_at_call": 1}});
    told.push(ws(&closing).calling("a WebSocket closes", "echo", json!({})).await);
    told
}

/// Proves S3-SC-003, S3-US5-T: all of them, and not only 95 %.
#[tokio::test]
async fn every_failure_names_the_server_the_cause_and_a_next_step() {
    let mut all = Box::pin(stdio_failures()).await;
    all.extend(Box::pin(remote_failures()).await);
    assert!(all.len() >= 20, "{}", all.len());
    let mut texts = String::new();
    for Told { about, message, remedy } in &all {
        let remedy = remedy.as_deref().unwrap_or_else(|| panic!("{about} has no next step"));
        let names_server = message.contains("`sick`") || remedy.contains("sick");
        assert!(names_server, "{about} does not name the server: {message} / {remedy}");
        texts.push_str(&format!("{about}\n  error: {message}\n  help:  {remedy}\n"));
    }
    insta::assert_snapshot!(texts);
}
