//! Every real server starts, and the official clients of two languages see the same of it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::{Value, json};
use testkit::peers::{self, Address, CommandLine, Era, Everything, Reference, Seen, free_port};
use testkit::{Workspace, eventually, is_running};

/// Tools of the Python servers that always answer alike.
const PYTHON_TOOLS: [&str; 5] = ["add", "echo", "image", "weather", "fail"];

fn tool_count(server: CommandLine, client: Reference) -> usize {
    client.see(&Address::Stdio(server), &[]).tools.len()
}

fn python_calls() -> Vec<(&'static str, Value)> {
    vec![
        ("add", json!({"a": 1, "b": 2})),
        ("echo", json!({"message": "grüße"})),
        ("image", json!({})),
        ("weather", json!({"city": "Rome"})),
        ("fail", json!({"reason": "no such thing"})),
    ]
}

/// The answers of the Python servers, each reduced to what stays across releases.
fn assert_python_answers(seen: &Seen) {
    assert_eq!(seen.tool_names(), PYTHON_TOOLS);
    let results: Vec<&Value> = seen.results.iter().map(|answer| &answer["result"]).collect();
    let [add, echo, image, weather, fail] = results[..] else {
        panic!("five results, not {:?}", seen.results);
    };
    assert_eq!(add["content"], json!([{"type": "text", "text": "3"}]));
    assert_eq!(add["structuredContent"], json!({"result": 3}));
    assert_eq!(echo["structuredContent"], json!({"result": "grüße"}));
    assert_eq!(image["content"][0]["mimeType"], "image/png");
    let expected = json!({"city": "Rome", "celsius": 21.5, "tags": ["dry", "windy"]});
    assert_eq!(weather["structuredContent"], expected);
    assert_eq!(fail["isError"], true);
}

#[test]
fn the_npm_servers_list_their_tools() {
    let workspace = Workspace::new();
    let folder = workspace.path();
    let count = |server| tool_count(server, Reference::TypeScript1);
    // There are more for clients that offer roots, sampling or elicitation.
    assert_eq!(count(peers::everything(Everything::Stdio)), 13);
    assert_eq!(count(peers::filesystem(folder)), 14);
    assert_eq!(count(peers::memory(&folder.join("memory.jsonl"))), 9);
    assert_eq!(count(peers::sequential_thinking()), 1);
}

#[test]
fn the_python_servers_list_their_tools_in_the_legacy_era() {
    let workspace = Workspace::new();
    peers::git_repository(workspace.path());
    let count = |server| tool_count(server, Reference::TypeScript1);
    assert_eq!(count(peers::time(Era::Legacy)), 2);
    assert_eq!(count(peers::git(Era::Legacy, workspace.path())), 12);
    assert_eq!(count(peers::fetch(Era::Legacy)), 1);
}

#[test]
fn the_python_servers_list_their_tools_in_the_modern_era() {
    let workspace = Workspace::new();
    peers::git_repository(workspace.path());
    let count = |server| tool_count(server, Reference::TypeScript2(Era::Modern));
    assert_eq!(count(peers::time(Era::Modern)), 2);
    assert_eq!(count(peers::git(Era::Modern, workspace.path())), 12);
    assert_eq!(count(peers::fetch(Era::Modern)), 1);
}

#[test]
fn fetch_reads_a_page_of_this_machine() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("a bound port"));
    let page = "<html><body><h1>News</h1><p>Nothing happened.</p></body></html>";
    let length = page.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}");
    let answer = format!("{head}\r\nConnection: close\r\n\r\n{page}");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut request = BufReader::new(&stream).lines();
            while request.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            (&stream).write_all(answer.as_bytes()).expect("a client that reads");
        }
    });
    let address = Address::Stdio(peers::fetch(Era::Legacy));
    let seen = Reference::Python1.see(&address, &[("fetch", json!({"url": url}))]);
    let text = format!("Contents of {url}:\n# News\n\nNothing happened.");
    assert_eq!(seen.results[0]["result"]["content"], json!([{"type": "text", "text": text}]));
}

#[test]
fn everything_is_reached_over_four_transports() {
    let (http, sse, websocket) = (free_port(), free_port(), free_port());
    let stdio = peers::everything(Everything::Stdio);
    let _running = [
        peers::everything(Everything::StreamableHttp(http)).listen(http),
        peers::everything(Everything::Sse(sse)).listen(sse),
        peers::supergateway_ws(&stdio, websocket).listen(websocket),
    ];
    let calls = [("echo", json!({"message": "hi"})), ("get-sum", json!({"a": 2, "b": 3}))];
    let seen = |address| Reference::TypeScript1.see(&address, &calls);
    let expected = seen(Address::Stdio(stdio));
    assert_eq!(expected.results[0]["result"]["content"][0]["text"], "Echo: hi");
    for address in [
        Address::Http(format!("http://127.0.0.1:{http}/mcp")),
        Address::Sse(format!("http://127.0.0.1:{sse}/sse")),
        Address::WebSocket(format!("ws://127.0.0.1:{websocket}/message")),
    ] {
        let found = seen(address.clone());
        assert_eq!(found.tools, expected.tools, "{address:?}");
        assert_eq!(found.results, expected.results, "{address:?}");
    }
}

#[test]
fn two_languages_see_the_same_over_websocket_and_sse() {
    let (websocket, sse) = (free_port(), free_port());
    let _running = [
        peers::python_websocket_server(websocket).listen(websocket),
        peers::python_sse_server(sse).listen(sse),
    ];
    for address in [
        Address::WebSocket(format!("ws://127.0.0.1:{websocket}/ws")),
        Address::Sse(format!("http://127.0.0.1:{sse}/sse")),
    ] {
        let python = Reference::Python1.see(&address, &python_calls());
        assert_python_answers(&python);
        let typescript = Reference::TypeScript1.see(&address, &python_calls());
        assert_eq!(python.tools, typescript.tools);
        assert_eq!(python.results, typescript.results);
    }
}

#[test]
fn a_server_of_both_eras_answers_in_each() {
    let port = free_port();
    let _running = peers::python_streamable_http_server(Era::Modern, port).listen(port);
    let address = Address::Http(format!("http://127.0.0.1:{port}/mcp"));
    let clients = [
        Reference::Python1,
        Reference::Python2(Era::Modern),
        Reference::TypeScript2(Era::Legacy),
        Reference::TypeScript2(Era::Modern),
    ];
    let mut versions = BTreeSet::new();
    for client in clients {
        let seen = client.see(&address, &python_calls());
        assert_python_answers(&seen);
        versions.extend(seen.protocol_version.as_str().map(str::to_owned));
    }
    let both = ["2025-11-25", "2026-07-28"].map(str::to_owned);
    assert_eq!(versions, BTreeSet::from(both));
}

#[test]
fn a_listening_server_ends_with_its_children() {
    let port = free_port();
    let gateway = peers::supergateway_ws(&peers::everything(Everything::Stdio), port);
    let running = gateway.listen(port);
    let gateway = running.pid();
    let server = eventually("the gateway starts its server", || child_of(gateway));
    drop(running);
    assert!(!is_running(gateway));
    eventually("the server ends", || (!is_running(server)).then_some(()));
}

/// A child of a process.
fn child_of(parent: u32) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name in parentheses: state, parent.
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        fields.split(' ').nth(1) == Some(&parent.to_string())
    })
}
