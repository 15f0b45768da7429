//! Tools: listed, called, reported on, cancelled.

use serde_json::{Value, json};
use testkit::eventually;
use testkit::fixture::messages;

use crate::support::{Client, server, workspace};

/// Proves S1-1, S0-22: local tools and those of servers stand in one list, local ones first.
#[test]
fn local_tools_and_those_of_servers_stand_in_one_list() {
    let workspace = workspace(&json!({"files": server(&json!({"tools": ["echo", "annotated"]}))}));
    let mut client = Client::connect(&workspace);
    let answer = client.ask(&json!(1), "tools/list", &json!({}));
    let tools = &answer["result"]["tools"];
    let names: Vec<&Value> = tools.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["greet", "echo", "annotated"]);
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["name"]));
    // A server's description of its tool reaches the client.
    assert_eq!(tools[2]["title"], "Annotated");
    assert_eq!(tools[2]["annotations"]["readOnlyHint"], true);

    let greeted = client.call("greet", &json!({"name": "you"}));
    assert_eq!(greeted["structuredContent"], json!({"greeting": "Hello, you!"}));
    assert_eq!(greeted["isError"], false);
    assert_eq!(client.close(), Some(0));
}

/// Proves S3-SC-008: all tools, page by page, each once.
#[test]
fn five_hundred_tools_come_in_pages() {
    let workspace = workspace(&json!({"many": server(&json!({"tools": 500, "page_size": 60}))}));
    let mut client = Client::connect(&workspace);
    let names = client.tools();
    assert_eq!(names.len(), 501);
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 501);
    // The order is the same each time.
    assert_eq!(client.tools(), names);
    let answer = client.ask(&json!(2), "tools/list", &json!({"cursor": "nonsense"}));
    assert_eq!(answer["error"]["code"], -32602);
}

#[test]
fn what_a_server_answers_reaches_the_client_byte_by_byte() {
    let workspace =
        workspace(&json!({"files": server(&json!({"tools": ["big_numbers", "fail"]}))}));
    let mut client = Client::connect(&workspace);
    client.request(&json!(1), "tools/call", &json!({"name": "big_numbers", "arguments": {}}));
    assert_eq!(
        client.line(),
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"numbers","x-unknown":{"b":1,"a":2}}],"structuredContent":{"b":12345678901234567890123,"a":0.1000000000000000055511151231257827},"resultType":"complete","x-unknown":true}}"#
    );
    let failed = client.call("fail", &json!({}));
    assert_eq!(failed["isError"], true);
}

#[test]
fn wrong_calls_are_refused_in_the_way_the_protocol_wants() {
    let workspace = workspace(&json!({}));
    let mut client = Client::connect(&workspace);
    // A tool that is not there is a mistake of the client, wrong arguments one of its model.
    let unknown = client.ask(&json!(1), "tools/call", &json!({"name": "nothing"}));
    assert_eq!(unknown["error"], json!({"code": -32602, "message": "Unknown tool: nothing"}));
    let invalid = client.call("greet", &json!({"name": 7}));
    assert_eq!(invalid["isError"], true);
    let text = invalid["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("ValidationError: the arguments of `greet` are invalid"), "{text}");
    let nameless = client.ask(&json!(2), "tools/call", &json!({}));
    assert_eq!(nameless["error"]["code"], -32602);
    let strange = client.ask(&json!(3), "tools/strange", &json!({}));
    assert_eq!(strange["error"]["code"], -32601);
    // Every call left its entry.
    let log = std::fs::read_dir(workspace.path().join("logs")).unwrap();
    let text: String =
        log.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap_or_default()).collect();
    assert_eq!(
        text.lines().filter(|line| line.contains("\"caller\":\"mcp\"")).count(),
        2,
        "{text}"
    );
}

#[test]
fn progress_comes_before_the_answer_and_only_on_request() {
    let workspace = workspace(&json!({"files": server(&json!({"tools": ["progress"]}))}));
    let mut client = Client::connect(&workspace);
    let arguments = json!({"steps": 3, "every_ms": 1});
    let params =
        json!({"name": "progress", "arguments": arguments, "_meta": {"progressToken": "mine"}});
    client.request(&json!(1), "tools/call", &params);
    let mut reports = 0;
    loop {
        let message = client.next();
        if message["id"] == 1 {
            break;
        }
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(message["params"]["progressToken"], "mine");
        reports += 1;
    }
    assert!(reports >= 3, "{reports}");
    client.request(&json!(2), "tools/call", &json!({"name": "progress", "arguments": arguments}));
    assert_eq!(client.next()["id"], 2);
}

#[test]
fn a_call_that_the_client_cancels_is_cancelled_at_its_server() {
    let workspace = workspace(&json!({}));
    let facts = workspace.path().join("facts");
    let servers = json!({"files": server(&json!({"tools": ["hang", "echo"], "facts": facts}))});
    workspace.write("haft.json", json!({"servers": servers}).to_string());
    let mut client = Client::connect(&workspace);
    client.request(&json!(7), "tools/call", &json!({"name": "hang", "arguments": {}}));
    eventually("the call arrives", || messages(&facts, "tools/call").first().cloned());
    let cancelled = json!({"requestId": 7, "reason": "enough"});
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    eventually("the server is notified", || {
        messages(&facts, "notifications/cancelled").first().cloned()
    });
    // A cancelled request has no answer, and its id is free again.
    let answer = client.ask(&json!(7), "tools/call", &json!({"name": "echo", "arguments": {}}));
    assert!(answer.get("result").is_some(), "{answer}");
}

/// If no person can approve, the client gets the address where people can.
#[test]
fn a_call_without_a_possible_approval_names_the_inbox() {
    let workspace = workspace(&json!({}));
    let config =
        r#"{"registry": {"dir": "tools"}, "tools": [{"name": "greet", "approval": "ask"}]}"#;
    workspace.write("haft.json", config);
    let mut client = Client::connect(&workspace);
    let denied = client.call("greet", &json!({"name": "you"}));
    assert_eq!(denied["isError"], true);
    assert_eq!(
        denied["content"][0]["text"],
        "Denied: `greet` runs only when a person agrees to the call (`approval: ask`); approvals are not possible over stdio: connect the client to `haft serve`, where people approve in the inbox, or set `approval: auto` for the tool"
    );
}
