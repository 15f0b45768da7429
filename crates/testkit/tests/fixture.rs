//! The fixture itself: each transport and each era answers, and the facts are noted.

mod raw;

use raw::{Http, Sse, Stdio, Wire, Ws};
use serde_json::{Value, json};
use testkit::fixture::{Fixture, Transport, events, facts, messages};
use testkit::{Workspace, eventually, is_running};

#[test]
fn a_legacy_client_shakes_hands_over_every_transport() {
    for transport in ["stdio", "http", "sse", "ws"] {
        let workspace = Workspace::new();
        let path = workspace.path().join("facts");
        let scenario = json!({ "facts": path });
        let mut wire = connect(transport, &scenario);

        let answer = wire.request(&initialize());
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{transport}");
        wire.notify(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let answer = wire.request(&request(2, "tools/list", json!({})));
        assert!(answer["result"]["tools"].as_array().unwrap().len() > 30, "{transport}");
        let echo = json!({ "name": "echo", "arguments": { "b": 1, "a": "x" } });
        let answer = wire.request(&request(3, "tools/call", echo));
        let structured = answer["result"]["structuredContent"].to_string();
        assert_eq!(structured, r#"{"b":1,"a":"x"}"#, "{transport}");
        let answer = wire.request(&request(4, "server/discover", json!({})));
        assert_eq!(answer["error"]["code"], -32601, "{transport}");

        assert_eq!(messages(&path, "initialize").len(), 1);
        assert_eq!(events(&path, "start").len(), 1);
        assert!(!events(&path, "connection").is_empty());
    }
}

#[test]
fn a_modern_client_discovers_and_calls() {
    for transport in ["stdio", "http", "ws"] {
        for era in ["modern", "both"] {
            let mut wire = connect(transport, &json!({ "era": era }));
            let answer = wire.request(&modern(1, "server/discover", json!({})));
            assert_eq!(answer["result"]["supportedVersions"], json!(["2026-07-28"]));
            assert_eq!(answer["result"]["resultType"], "complete");
            let text = json!({ "name": "text", "arguments": {} });
            let answer = wire.request(&modern(2, "tools/call", text));
            assert_eq!(answer["result"]["content"][0]["text"], "plain text");
            assert_eq!(answer["result"]["resultType"], "complete");
        }
    }
}

#[test]
fn a_modern_tool_asks_for_input_and_resumes_with_it() {
    let mut wire = connect("http", &json!({ "era": "modern" }));
    let mut params = json!({ "name": "elicit", "arguments": {} });
    let answer = wire.request(&modern(1, "tools/call", params.clone()));
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(result["inputRequests"]["input"]["method"], "elicitation/create");

    params["requestState"] = json!("forged");
    let answer = wire.request(&modern(2, "tools/call", params.clone()));
    assert_eq!(answer["error"]["code"], -32602);

    params["requestState"] = result["requestState"].clone();
    params["inputResponses"] = json!({ "input": { "action": "decline" } });
    let answer = wire.request(&modern(3, "tools/call", params));
    let structured = &answer["result"]["structuredContent"];
    assert_eq!(*structured, json!({ "result": { "action": "decline" } }));
}

#[test]
fn a_modern_header_must_match_the_body() {
    let server = Fixture::serve(Transport::Http, &json!({ "era": "modern" }));
    let mut wire = Http::to(server);
    let message = modern(1, "tools/call", json!({ "name": "text" }));
    let headers = raw::modern_headers(&message).replace("Mcp-Name: text", "Mcp-Name: other");
    let (status, body) = wire.post(&message, &headers);
    assert_eq!((status, &body["error"]["code"]), (400, &json!(-32020)));
}

#[test]
fn a_closed_stream_is_resumed_with_the_last_event_id() {
    let scenario = json!({ "http": { "resume_calls": 1, "retry_ms": 5 } });
    let mut wire = Http::to(Fixture::serve(Transport::Http, &scenario));
    wire.request(&initialize());
    let text = request(2, "tools/call", json!({ "name": "text" }));
    let (_, body) = wire.exchange("POST", "", &text.to_string());
    let id = body.lines().find_map(|line| line.strip_prefix("id: ")).expect("an id").to_owned();
    assert!(body.contains("retry: 5") && !body.contains("plain text"), "{body}");
    let (_, body) = wire.exchange("GET", &format!("Last-Event-ID: {id}\r\n"), "");
    assert!(body.contains("plain text"), "{body}");
}

#[test]
fn a_fault_hits_the_requests_it_names() {
    let scenario = json!({ "faults": [
        { "rpc": "initialize", "times": 1,
            "do": { "answer": { "status": 429, "headers": { "Retry-After": "1" } } } },
        { "rpc": "initialize", "times": 1, "do": "cut" },
    ] });
    let mut wire = Http::to(Fixture::serve(Transport::Http, &scenario));
    let (head, _) = wire.exchange("POST", "", &initialize().to_string());
    assert!(head.starts_with("HTTP/1.1 429") && head.contains("retry-after: 1"), "{head}");
    let (_, body) = wire.exchange("POST", "", &initialize().to_string());
    assert!(!body.trim_end().ends_with('}'), "{body}");
    assert_eq!(wire.request(&initialize())["result"]["protocolVersion"], "2025-06-18");
}

#[test]
fn a_stdio_server_ends_with_its_input_and_its_grandchild_does_not() {
    let workspace = Workspace::new();
    let path = workspace.path().join("facts");
    let mut wire = Stdio::start(&json!({ "facts": path }));
    wire.request(&initialize());
    let answer = wire.request(&request(2, "tools/call", json!({ "name": "grandchild" })));
    let pid = answer["result"]["structuredContent"]["pid"].as_u64().expect("a process id");
    let pid = u32::try_from(pid).expect("a process id");
    wire.end();
    eventually("the exit is noted", || events(&path, "exit").pop());
    let kinds: Vec<_> = facts(&path).iter().map(|fact| fact["event"].clone()).collect();
    assert_eq!(kinds, ["start", "connection", "message", "message", "stdin_end", "exit"]);
    assert!(is_running(pid));
    raw::kill(pid);
}

#[test]
fn garbage_and_latin_1_go_over_stdio() {
    let scenario = json!({ "noise": ["\u{1b}[32mhello"], "encoding": "latin-1" });
    let mut wire = Stdio::start(&scenario);
    wire.send(br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
    assert_eq!(wire.line(), b"\x1b[32mhello\n");
    wire.line();
    wire.send(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"a\":\"\xe9\"}}}");
    wire.line();
    let answer = wire.line();
    assert!(answer.windows(3).any(|bytes| bytes == b"\"\xe9\""), "{answer:?}");
}

fn connect(transport: &str, scenario: &Value) -> Box<dyn Wire> {
    match transport {
        "stdio" => Box::new(Stdio::start(scenario)),
        "http" => Box::new(Http::to(Fixture::serve(Transport::Http, scenario))),
        "sse" => Box::new(Sse::to(Fixture::serve(Transport::Sse, scenario))),
        "ws" => Box::new(Ws::to(Fixture::serve(Transport::Ws, scenario))),
        other => panic!("{other}"),
    }
}

fn initialize() -> Value {
    let client = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    request(1, "initialize", params)
}

fn request(id: u64, method: &str, params: Value) -> Value {
    let mut request = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    request["params"] = params;
    request
}

fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    request(id, method, params)
}
