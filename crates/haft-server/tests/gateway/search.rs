//! The surface `search`: three tools for all others.

use std::fmt::Write as _;

use serde_json::{Value, json};
use testkit::eventually;
use testkit::fixture::messages;

use crate::endpoint::{Served, configure};
use crate::support::{Client, server, workspace};

const THREE: [&str; 3] = ["find_tools", "describe_tool", "call_tool"];

fn own(name: &str, description: &str) -> Value {
    let input =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    json!({"name": name, "description": description, "inputSchema": input})
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

/// The wording for models is stable.
#[test]
fn three_tools_explain_their_use() {
    let workspace = workspace(&json!({}));
    let mut client = Client::start_with(&workspace, &["--surface", "search"]);
    let asked = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let about = client.ask(&json!(1), "initialize", &asked);
    let mut shown = format!("{}\n", about["result"]["instructions"].as_str().unwrap());
    let list = client.ask(&json!(2), "tools/list", &json!({}));
    for tool in list["result"]["tools"].as_array().unwrap() {
        write!(shown, "\n{tool:#}\n").unwrap();
    }
    insta::assert_snapshot!(shown);
}

/// 500 tools, of which a model sees three: it finds, reads and calls one of the others.
#[test]
fn a_tool_among_five_hundred_is_found_described_and_called() {
    let mut tools: Vec<Value> = (0..498)
        .map(|at| {
            own(&format!("adjust_setting_{at}"), &format!("Adjusts setting {at} of the machine."))
        })
        .collect();
    tools.insert(250, own("read_file", "Reads a file from the disk.\n\nThe whole of it."));
    tools.push(own("send_email", "Sends an email to somebody."));
    let workspace = workspace(&json!({"many": server(&json!({"tools": tools}))}));
    configure(&workspace, &json!({"gateway": {"surface": "search"}}));
    let mut client = Client::connect(&workspace);
    assert_eq!(client.tools(), THREE);

    let found = client.call("find_tools", &json!({"query": "read a file from disk", "limit": 3}));
    assert_eq!(found["isError"], false);
    let structured = &found["structuredContent"];
    assert_eq!(structured["fits"], true);
    assert_eq!(structured["tools"].as_array().unwrap().len(), 3);
    assert_eq!(
        structured["tools"][0],
        json!({"name": "read_file", "description": "Reads a file from the disk."})
    );
    assert!(
        text(&found)
            .starts_with("Tools that fit, best first:\nread_file: Reads a file from the disk.\n")
    );

    let described = client.call("describe_tool", &json!({"name": "read_file"}));
    let structured = &described["structuredContent"];
    assert_eq!(structured["inputSchema"]["required"], json!(["path"]));
    assert_eq!(structured["description"], "Reads a file from the disk.\n\nThe whole of it.");
    assert_eq!(serde_json::from_str::<Value>(text(&described)).unwrap(), *structured);

    let called =
        client.call("call_tool", &json!({"name": "read_file", "arguments": {"path": "/a"}}));
    assert!(text(&called).contains("/a"), "{called}");

    let nothing = client.call("find_tools", &json!({"query": "how are you today?"}));
    assert_eq!(nothing["structuredContent"]["fits"], false);
    assert!(text(&nothing).starts_with("No tool seems to fit."), "{nothing}");
}

/// A model's mistake is a result that it can read.
#[test]
fn mistakes_are_results_that_a_model_can_read() {
    let workspace =
        workspace(&json!({"files": server(&json!({"tools": ["echo", "rpc_error", "fail"]}))}));
    let mut client = Client::connect_with(&workspace, &["--surface", "search"]);
    let mut shown = String::new();
    let mistakes = [
        ("find_tools", json!({})),
        ("find_tools", json!({"query": " "})),
        ("find_tools", json!({"query": "a", "limit": 0})),
        ("find_tools", json!({"query": "a", "count": 1})),
        ("describe_tool", json!({"name": "grete"})),
        ("describe_tool", json!({"name": "zzz"})),
        ("call_tool", json!({"name": "ecko", "arguments": {}})),
        ("call_tool", json!({"name": "find_tools", "arguments": {"query": "a"}})),
        ("call_tool", json!({"arguments": {}})),
        ("call_tool", json!({"name": "greet", "arguments": {"name": 7}})),
        ("call_tool", json!({"name": "greet", "arguments": "{\"name\": \"you\"}"})),
        ("call_tool", json!({"name": "greet"})),
        ("call_tool", json!({"name": "rpc_error", "arguments": {}})),
        ("call_tool", json!({"name": "fail", "arguments": {}})),
    ];
    for (tool, arguments) in mistakes {
        let result = client.call(tool, &arguments);
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        writeln!(shown, "{tool} {arguments}\n  {}", text(&result).replace('\n', "\n  ")).unwrap();
    }
    // Only the three are there for the protocol.
    let direct = client.ask(
        &json!(2),
        "tools/call",
        &json!({"name": "greet", "arguments": {"name": "you"}}),
    );
    assert_eq!(direct["error"]["code"], -32602);
    writeln!(shown, "greet\n  {}", direct["error"]["message"].as_str().unwrap()).unwrap();
    insta::assert_snapshot!(shown);
}

/// `call_tool` is on the one call path: progress, questions to the client, cancellation, and answers that
/// pass untouched.
#[test]
fn a_call_through_call_tool_is_a_call_like_any_other() {
    let workspace = workspace(&json!({}));
    let facts = workspace.path().join("facts");
    let tools = ["progress", "elicit", "hang", "big_numbers"];
    configure(
        &workspace,
        &json!({"servers": {"files": server(&json!({"tools": tools, "facts": facts}))}}),
    );
    let mut client = Client::connect_with(&workspace, &["--surface", "search"]);
    let params = |name: &str, arguments: &Value| {
        json!({
            "name": "call_tool", "arguments": {"name": name, "arguments": arguments},
            "_meta": {"progressToken": "mine"},
        })
    };
    client.request(
        &json!(1),
        "tools/call",
        &params("progress", &json!({"steps": 2, "every_ms": 1})),
    );
    let mut reports = 0;
    loop {
        let message = client.next();
        if message["id"] == 1 {
            break;
        }
        assert_eq!(message["params"]["progressToken"], "mine", "{message}");
        reports += 1;
    }
    assert!(reports >= 2, "{reports}");

    client.request(&json!(2), "tools/call", &params("elicit", &json!({"message": "Who?"})));
    let question = client.next();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let result = json!({"action": "accept", "content": {"name": "me"}});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
    let answer = client.next();
    assert!(answer["id"] == 2 && answer.to_string().contains("accept"), "{answer}");

    client.request(&json!(3), "tools/call", &params("big_numbers", &json!({})));
    let line = client.line();
    assert!(line.contains(r#""x-unknown":{"b":1,"a":2}"#), "{line}");
    assert!(
        line.contains(r#"{"b":12345678901234567890123,"a":0.1000000000000000055511151231257827}"#),
        "{line}"
    );

    client.request(&json!(4), "tools/call", &params("hang", &json!({})));
    let hangs = || {
        messages(&facts, "tools/call").iter().any(|it| it["params"]["name"] == "hang").then_some(())
    };
    eventually("the call arrives", hangs);
    let cancelled = json!({"requestId": 4});
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    eventually("the server is notified", || {
        messages(&facts, "notifications/cancelled").first().cloned()
    });
}

/// Hidden tools do not exist for the three search tools either.
#[test]
fn hidden_tools_are_neither_found_nor_described_nor_called() {
    let tools =
        [own("read_file", "Reads a file."), own("delete_file", "Deletes a file from the disk.")];
    let workspace = workspace(&json!({"files": server(&json!({"tools": tools}))}));
    configure(
        &workspace,
        &json!({"profiles": {
            "reader": {"tools": ["read_*"], "surface": "search"},
            "empty": {"servers": ["files"], "tools": ["nothing"], "surface": "search"},
        }}),
    );
    let served = Served::start(&workspace);
    let session = served.open("/mcp/reader", None);
    assert_eq!(session.tools(), THREE);
    let call = |tool: &str, arguments: Value| {
        let answer = session.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        answer.body["result"].clone()
    };
    let found = call("find_tools", json!({"query": "delete a file from the disk", "limit": 50}));
    let names: Vec<&Value> = found["structuredContent"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["read_file"]);
    let missing = "There is no tool `delete_file`. find_tools finds tools by what they do.";
    let described = call("describe_tool", json!({"name": "delete_file"}));
    assert_eq!((text(&described), &described["isError"]), (missing, &json!(true)));
    let called = call("call_tool", json!({"name": "delete_file", "arguments": {"path": "/a"}}));
    assert_eq!((text(&called), &called["isError"]), (missing, &json!(true)));
    let called = call("call_tool", json!({"name": "read_file", "arguments": {"path": "/a"}}));
    assert!(text(&called).contains("/a"), "{called}");

    let empty = served.open("/mcp/empty", None);
    let asked = json!({"name": "find_tools", "arguments": {"query": "read a file"}});
    let answer = empty.request("tools/call", &asked);
    assert_eq!(text(&answer.body["result"]), "There are no tools.");
}
