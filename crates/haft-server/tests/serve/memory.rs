//! The budget of bytes in flight: many large requests, queued calls, batches and answers at once. What does not fit
//! is refused with `Busy`, memory stays below twice the budget, and everything is given back.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::{Fixture, Running, Transport};
use tokio::task::JoinSet;

use crate::faults::{call, memory, until};
use crate::served::{Answer, Served, answer};

/// Memory that the allocator keeps for threads that worked on large bodies, independent of the budget. It weighs more
/// beside the small budget of these tests than beside the default.
const ALLOCATOR_BYTES: u64 = 16 << 20;

const BUDGET: u64 = 32 * 1024 * 1024;
/// Close to the largest body.
const BODY_BYTES: usize = 3_900_000;

/// A tool that waits until the file `go` is there.
const HELD_PY: &str = "import os, time\n\ndef run(args):\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n    return {'done': True}\n";

/// A service with a small budget, the tool `held`, and a server over each of two transports.
struct Loaded {
    served: Served,
    /// The memory it took before the load, in bytes.
    idle: u64,
    _remote: Running,
}

fn scenario(server: &str) -> Value {
    let tool = |behaves: &str| json!({"name": format!("{server}_{behaves}"), "behaves": behaves, "inputSchema": {"type": "object"}});
    json!({"tools": [tool("big"), tool("echo")]})
}

impl Loaded {
    async fn start() -> Self {
        let remote = Fixture::serve(Transport::Http, &scenario("far"));
        let near = Fixture::stdio_args(&scenario("near"));
        let many = json!({"max_instances": 100});
        let config = json!({
            "limits": {"in_flight_bytes_max": BUDGET},
            "registry": {"dir": "tools"},
            "defaults": {"max_concurrent": 100},
            "servers": {
                "near": {"command": Fixture::path(), "args": near, "default_tool_config": many},
                "far": {"transport": "http", "url": remote.url, "default_tool_config": many},
            },
        });
        let tools = json!({"tools": [
            {"name": "held", "description": "Waits.", "type": "local", "input_schema": {"type": "object"}, "timeout": "2m",
             "max_instances": 1, "config": {"script_path": "held.py"}},
            {"name": "count", "description": "Gives its arguments back.", "type": "local", "input_schema": {"type": "object"},
             "config": {"command": ["cat"]}},
        ]});
        let workspace = Workspace::with(&[
            ("haft.json", &config.to_string()),
            ("tools/tools.json", &tools.to_string()),
            ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
            ("tools/held.py", HELD_PY),
        ]);
        let served = Served::open(workspace);
        until("the servers are there", async || {
            let tools = served.get("/api/v1/tools").await.text;
            (tools.contains("near_big") && tools.contains("far_big")).then_some(())
        })
        .await;
        let idle = memory(served.pid).1;
        Self { served, idle, _remote: remote }
    }

    fn call(&self, tool: &str, arguments: &str) -> reqwest::RequestBuilder {
        let path = format!("/api/v1/tools/{tool}/call");
        self.post(&path, format!("{{\"arguments\":{arguments}}}"))
    }

    fn post(&self, path: &str, body: String) -> reqwest::RequestBuilder {
        let request = self.served.request(Method::POST, path).body(body);
        request.header("content-type", "application/json")
    }

    /// The value of a figure at `/metrics`.
    async fn figure(&self, name: &str) -> u64 {
        let page = self.served.get("/metrics").await.text;
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name}: {page}")).parse().unwrap()
    }

    fn go(&self) {
        self.served.workspace.write("go", "");
    }

    /// Sends calls of `held`, and lets them end once one of them was refused.
    async fn held(&self, calls: impl IntoIterator<Item = reqwest::RequestBuilder>) -> Vec<Answer> {
        let go = self.served.workspace.path().join("go");
        if go.exists() {
            std::fs::remove_file(go).unwrap();
        }
        let before = self.figure("haft_in_flight_refused_total").await;
        let (answers, ()) = tokio::join!(all(calls), async {
            until("one is refused", async || {
                (self.figure("haft_in_flight_refused_total").await > before).then_some(())
            })
            .await;
            self.go();
        });
        answers
    }

    /// Everything is given back, calls work, and memory never was beyond twice the budget.
    async fn is_well_afterwards(&self) {
        until("everything is given back", async || {
            (self.figure("haft_in_flight_bytes").await == 0).then_some(())
        })
        .await;
        assert_eq!(self.figure("haft_in_flight_bytes_max").await, BUDGET);
        let after = call(&self.served, "count", &json!({"n": 1})).await;
        assert_eq!(
            (after.status, &after.json()["data"]),
            (200, &json!({"n": 1})),
            "{}",
            after.text
        );
        let peak = memory(self.served.pid).1;
        let grown = peak.saturating_sub(self.idle);
        let grown_max = 2 * BUDGET + ALLOCATOR_BYTES;
        assert!(grown < grown_max, "{} MB, then {} MB", self.idle >> 20, peak >> 20);
    }
}

fn is_busy(answer: &Answer) -> bool {
    let body = answer.json();
    let code = if body["code"].is_null() { &body["error"]["code"] } else { &body["code"] };
    if answer.status != 503 {
        return false;
    }
    assert_eq!(code, "Busy", "{}", answer.text);
    assert!(answer.text.contains("limits.in_flight_bytes_max"), "{}", answer.text);
    assert!(!answer.header("retry-after").is_empty());
    true
}

/// Arguments of about `bytes` bytes.
fn text(bytes: usize) -> String {
    format!("{{\"text\":\"{}\"}}", "x".repeat(bytes))
}

async fn all(requests: impl IntoIterator<Item = reqwest::RequestBuilder>) -> Vec<Answer> {
    let mut running = JoinSet::new();
    for request in requests {
        running.spawn(answer(request));
    }
    running.join_all().await
}

/// Twelve clients with bodies close to the limit, of every shape that takes much memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_are_bounded() {
    let loaded = Loaded::start().await;
    let numbers = format!("{{\"list\":[{}0]}}", "0,".repeat(BODY_BYTES / 2));
    let objects = format!("{{\"list\":[{}0]}}", "{},".repeat(BODY_BYTES / 3));
    let keys: Vec<String> = (0..BODY_BYTES / 12).map(|n| format!("\"{n:07}\":1")).collect();
    let keys = format!("{{{}}}", keys.join(","));
    for arguments in [numbers, objects, keys] {
        let answers = all((0..12).map(|_| loaded.call("count", &arguments))).await;
        for answer in answers.iter().filter(|it| !is_busy(it)) {
            assert_eq!(answer.status, 413, "so many values never fit: {}", answer.text);
            assert!(answer.text.contains("limits.message_nodes_max"), "{}", answer.text);
        }
    }
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "held", "arguments": {"text": "x".repeat(BODY_BYTES)}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}});
    let gateway = || {
        loaded
            .post("/mcp", message.to_string())
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "held")
    };
    let answers = loaded.held((0..12).map(|_| gateway())).await;
    assert!(answers.iter().any(is_busy), "some find no room");
    let texts = text(BODY_BYTES);
    let answers = loaded.held((0..12).map(|_| loaded.call("held", &texts))).await;
    let busy = answers.iter().filter(|it| is_busy(it)).count();
    assert!((1..12).contains(&busy), "some fit and some do not: {busy}");
    assert!(answers.iter().all(|it| it.status == 200 || it.status == 503));
    loaded.is_well_afterwards().await;
}

/// Calls that wait for their turn hold their arguments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_calls_with_large_arguments_are_bounded() {
    let loaded = Loaded::start().await;
    let arguments = text(500_000);
    let (answers, ()) =
        tokio::join!(all((0..60).map(|_| loaded.call("held", &arguments))), async {
            until("the queue is full", async || {
                (loaded.figure("haft_in_flight_refused_total").await >= 40).then_some(())
            })
            .await;
            assert!(loaded.figure("haft_in_flight_bytes").await <= BUDGET);
            loaded.go();
        });
    let busy = answers.iter().filter(|it| is_busy(it)).count();
    assert!((40..60).contains(&busy), "{busy}");
    assert_eq!(answers.iter().filter(|it| it.status == 200).count(), 60 - busy);
    loaded.is_well_afterwards().await;
}

/// Batches hold all of their calls until the last one is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_are_bounded() {
    let loaded = Loaded::start().await;
    let one = format!("{{\"tool\":\"held\",\"arguments\":{}}}", text(150_000));
    let batch = format!("{{\"calls\":[{}]}}", vec![one; 20].join(","));
    let (answers, ()) =
        tokio::join!(all((0..12).map(|_| loaded.post("/api/v1/calls", batch.clone()))), async {
            until("some are refused", async || {
                (loaded.figure("haft_in_flight_refused_total").await > 0).then_some(())
            })
            .await;
            loaded.go();
        });
    let busy = answers.iter().filter(|it| is_busy(it)).count();
    assert!((1..12).contains(&busy), "{busy}");
    for answer in answers.iter().filter(|it| it.status == 200) {
        assert_eq!(answer.json()["results"].as_array().unwrap().len(), 20);
    }
    loaded.is_well_afterwards().await;
}

/// Servers that answer many callers at length: an answer that does not fit fails its own call, and the connection
/// stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_answers_of_servers_are_bounded() {
    let loaded = Loaded::start().await;
    for server in ["near", "far"] {
        let tool = format!("{server}_big");
        let sizes = [1_500_000, 1_500_000, 6_000_000].into_iter().cycle().take(12);
        let calls = sizes.map(|bytes| loaded.call(&tool, &json!({"bytes": bytes}).to_string()));
        let answers = all(calls).await;
        let mut fitted = 0;
        for answer in &answers {
            assert_eq!(answer.header("content-length"), answer.text.len().to_string());
            let body = answer.json();
            if body["error"].is_null() {
                fitted += 1;
                continue;
            }
            assert_eq!(body["error"]["code"], "ServiceUnavailable", "{}", answer.text);
            let message = body["error"]["message"].as_str().unwrap();
            assert!(message.contains("though the tool has run"), "{message}");
            assert!(message.contains("limits.in_flight_bytes_max"), "{message}");
        }
        assert!((1..=8).contains(&fitted), "the longer ones never fit; {server}: {fitted} did");
        let echo = call(&loaded.served, &format!("{server}_echo"), &json!({"n": 1})).await;
        assert!(echo.json()["error"].is_null(), "{}", echo.text);
        let state = loaded.served.get(&format!("/api/v1/servers/{server}")).await.json();
        assert_eq!((&state["state"], &state["retries"]), (&json!("ready"), &json!(0)), "{state}");
    }
    loaded.is_well_afterwards().await;
    assert_eq!(loaded.served.log().len(), 27, "one entry for each call");
}
