//! server-everything, the official server with one tool of every kind.

use std::fs;

use serde_json::{Value, json};
use testkit::peers::{self, Address, Era, Everything, Reference, free_port};

use crate::real_support::Peer;

/// One call of every kind of answer.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("echo", json!({"message": "grüße \u{1f980}\n\"quoted\""})),
        ("get-structured-content", json!({"location": "Chicago"})),
        ("get-tiny-image", json!({})),
        ("get-resource-links", json!({"count": 3})),
        ("get-resource-reference", json!({"resourceType": "Text", "resourceId": 7})),
        ("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
    ]
}

/// Proves S1-2, S1-24, S2-Q-09, S3-US1-3, S3-US4-T, S3-SC-001: over stdio, with nothing but the
/// command.
#[test]
fn everything_over_stdio_is_what_the_typescript_sdk_sees() {
    let address = Address::Stdio(peers::everything(Everything::Stdio));
    let seen = Reference::TypeScript1.see(&address, &calls());
    Peer::new(&address).assert_sees(&seen, &calls());
}

/// Proves S1-3, S2-Q-09, S3-US6-1, S3-US6-T: over SSE.
#[test]
fn everything_over_sse_is_what_the_python_sdk_sees() {
    let port = free_port();
    let _server = peers::everything(Everything::Sse(port)).listen(port);
    let address = Address::Sse(format!("http://127.0.0.1:{port}/sse"));
    let calls = calls();
    let seen = Reference::Python1.see(&address, &calls);
    Peer::new(&address).assert_sees(&seen, &calls);
}

/// Proves S1-3, S2-Q-09, S3-US8-1, S3-US8-T: over streamable HTTP. The long operation sends
/// progress before its answer, in one stream.
#[test]
fn everything_over_http_is_what_the_typescript_sdk_sees() {
    let port = free_port();
    let _server = peers::everything(Everything::StreamableHttp(port)).listen(port);
    let address = Address::Http(format!("http://127.0.0.1:{port}/mcp"));
    let mut calls = calls();
    calls.push(("trigger-long-running-operation", json!({"duration": 0.2, "steps": 4})));
    let seen = Reference::TypeScript2(Era::Legacy).see(&address, &calls);
    Peer::new(&address).assert_sees(&seen, &calls);
}

/// A tool that the server runs as a task only (2025-11-25) is called like any other, over every transport.
#[test]
fn a_tool_that_runs_as_a_task_only_can_be_called() {
    let ports = [free_port(), free_port()];
    let _http = peers::everything(Everything::StreamableHttp(ports[0])).listen(ports[0]);
    let _sse = peers::everything(Everything::Sse(ports[1])).listen(ports[1]);
    for address in [
        Address::Stdio(peers::everything(Everything::Stdio)),
        Address::Http(format!("http://127.0.0.1:{}/mcp", ports[0])),
        Address::Sse(format!("http://127.0.0.1:{}/sse", ports[1])),
    ] {
        let peer = Peer::new(&address);
        let called = peer.call("simulate-research-query", &json!({"topic": "clocks"}));
        assert_eq!(called["status"], "success", "{called}");
        let text = called["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("# Research Report: clocks"), "{text}");
    }
}

/// Proves S3-US4-2, S3-US3-6: prompts are listed and filled in.
#[test]
fn prompts_of_everything_are_listed_and_filled_in() {
    let peer = Peer::new(&Address::Stdio(peers::everything(Everything::Stdio)));
    let prompts = peer.json(&["prompts", "list"]);
    let name = |prompt: &Value| prompt["name"].as_str().unwrap().to_owned();
    let names: Vec<String> = prompts.as_array().unwrap().iter().map(name).collect();
    assert_eq!(names, ["simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"]);
    assert_eq!(prompts[1]["arguments"][0]["required"], json!(true));
    assert_eq!(prompts[1]["arguments"][1]["required"], json!(false));
    let filled = peer.run(&["prompts", "get", "args-prompt", "city=Oslo", "state=Norway"]);
    assert_eq!(filled.stdout, "user: What's weather in Oslo, Norway?\n");
    let filled =
        peer.json(&["prompts", "get", "resource-prompt", "resourceType=Text", "resourceId=3"]);
    let roles = [&filled[0]["role"], &filled[1]["role"]];
    assert_eq!(roles, ["user", "user"]);
    let resource = &filled[1]["content"][0];
    assert_eq!(resource["uri"], "demo://resource/dynamic/text/3");
    assert!(resource["text"].as_str().unwrap().starts_with("Resource 3: This is a plaintext"));
}

/// Proves S2-US4-T: every static resource is a file of the package, and reads as that file does.
#[test]
fn resources_of_everything_are_its_own_documents() {
    let server = peers::everything(Everything::Stdio);
    let package = std::path::Path::new(&server.args[0]).parent().unwrap().join("docs");
    let peer = Peer::new(&Address::Stdio(server));
    let listed = peer.json(&["resources", "list"]);
    let uris = listed.as_array().unwrap().iter().filter_map(|it| it["uri"].as_str());
    let mut listed_files: Vec<&str> = uris.filter_map(|it| it.rsplit('/').next()).collect();
    listed_files.sort_unstable();
    let files = fs::read_dir(&package).unwrap().flatten();
    let mut files: Vec<String> = files.map(|it| it.file_name().into_string().unwrap()).collect();
    files.sort_unstable();
    assert_eq!(listed_files, files);
    let uri = "demo://resource/static/document/features.md";
    let read = peer.run(&["resources", "read", uri]).stdout;
    assert_eq!(read, fs::read_to_string(package.join("features.md")).unwrap());
    let templates: Vec<&Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["uriTemplate"])
        .filter(|it| !it.is_null())
        .collect();
    assert_eq!(
        templates,
        ["demo://resource/dynamic/text/{resourceId}", "demo://resource/dynamic/blob/{resourceId}"]
    );
    let blob = peer.run(&["resources", "read", "demo://resource/dynamic/blob/5"]).stdout;
    assert!(blob.starts_with("Resource 5: This is a base64 blob created at "), "{blob}");
}
