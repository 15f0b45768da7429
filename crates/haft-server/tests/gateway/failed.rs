//! Servers that do not work, as the client sees them; and what is offered beside them.

use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;

use crate::support::{Client, server};

/// One server that works, one whose entry names a variable that is not set, one whose program is missing.
fn toolbox(more: &Value) -> Workspace {
    let mut config = json!({
        "servers": {
            // First: its column is shown, and the paths in the other entries differ between machines.
            "unset": {"command": "x", "env": {"TOKEN": "${NOT_SET_ANYWHERE}"}},
            "good": server(&json!({"tools": ["echo"]})),
            "gone": {"command": "/nowhere/at/all", "reconnect": {"attempts": 0}},
        },
    });
    let Value::Object(more) = more else { panic!("settings are an object") };
    config.as_object_mut().unwrap().extend(more.clone());
    Workspace::with(&[("haft.json", &config.to_string())])
}

fn initialize(client: &mut Client) -> String {
    let asked = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let answer = client.ask(&json!("hello"), "initialize", &asked);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    answer["result"]["instructions"].as_str().unwrap_or_default().to_owned()
}

/// The names of the tools, and the log messages before the list.
fn listed(client: &mut Client) -> (Vec<String>, Vec<String>) {
    client.request(&json!("list"), "tools/list", &json!({}));
    let mut messages = Vec::new();
    loop {
        let message = client.next();
        if message["method"] == "notifications/message" {
            assert_eq!(message["params"]["level"], "warning", "{message}");
            messages.push(message["params"]["data"].as_str().unwrap().to_owned());
        } else if message["id"] == "list" {
            let tools = message["result"]["tools"].as_array().unwrap().iter();
            return (tools.map(|it| it["name"].as_str().unwrap().to_owned()).collect(), messages);
        }
    }
}

/// A broken entry disables only itself, and the client learns of it in three ways. Out of the box a client sees no
/// built-in tool.
#[test]
fn servers_that_do_not_work_are_visible_in_the_client() {
    let workspace = toolbox(&json!({}));
    let mut client = Client::start_unchanged(&workspace);
    let instructions = initialize(&mut client);
    let (tools, messages) = listed(&mut client);
    assert_eq!(tools, ["echo", "haft_status"]);
    let status = client.call("haft_status", &json!({}));
    let shown = format!(
        "instructions:\n{instructions}\n\nmessages:\n{}\n\nhaft_status:\n{}\n\n{:#}\n",
        messages.join("\n"),
        status["content"][0]["text"].as_str().unwrap(),
        status["structuredContent"],
    );
    insta::assert_snapshot!(workspace.stable(&shown));
}

/// A client receives each failure once, however often it lists.
#[test]
fn a_failure_is_reported_once() {
    let workspace = toolbox(&json!({}));
    let mut client = Client::start_unchanged(&workspace);
    initialize(&mut client);
    let (_, messages) = listed(&mut client);
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages.iter().any(|it| it.contains("give a default: ${NOT_SET_ANYWHERE:-value}")));
    let (_, messages) = listed(&mut client);
    assert_eq!(messages, Vec::<String>::new());
}

/// A reason that is too long for the instructions is cut where a reader sees it.
#[test]
fn a_long_reason_is_cut_with_a_mark() {
    let program = format!("/nowhere/{}", "x".repeat(300));
    let servers = json!({"gone": {"command": program, "reconnect": {"attempts": 0}}});
    let workspace = Workspace::with(&[("haft.json", &json!({"servers": servers}).to_string())]);
    let instructions = initialize(&mut Client::start_unchanged(&workspace));
    assert!(instructions.contains("xxx...). `haft_status` shows more."), "{instructions}");
}

/// The tool can be hidden, and a hidden tool is an unknown one.
#[test]
fn the_status_tool_can_be_hidden() {
    let workspace = toolbox(&json!({"gateway": {"status_tool": false}}));
    let mut client = Client::start_unchanged(&workspace);
    initialize(&mut client);
    assert_eq!(listed(&mut client).0, ["echo"]);
    let params = json!({"name": "haft_status", "arguments": {}});
    let answer = client.ask(&json!(1), "tools/call", &params);
    assert_eq!(answer["error"]["message"], "Unknown tool: haft_status", "{answer}");
}

/// A server that fails after the list was given is reported when it fails.
#[test]
fn a_failure_is_reported_when_it_happens() {
    let scenario = json!({"tools": ["echo"]});
    let args: Vec<String> =
        Fixture::stdio_args(&scenario).iter().map(|arg| format!("'{arg}'")).collect();
    let script = format!(
        "while [ -e hold ]; do sleep 0.05; done\n[ -e broken ] && exit 7\nexec '{}' {}\n",
        Fixture::path().display(),
        args.join(" ")
    );
    let config = "servers: {late: {command: sh, args: [late.sh], connect_timeout: 10m}}\n";
    let workspace = Workspace::with(&[("haft.yaml", config), ("late.sh", &script)]);
    let mut client = Client::connect(&workspace);
    assert_eq!(client.tools(), ["echo"]);
    assert_eq!(client.close(), Some(0));
    workspace.write("hold", "");
    workspace.write("broken", "");
    let mut client = Client::connect(&workspace);
    assert_eq!(client.tools(), ["echo"]);
    std::fs::remove_file(workspace.path().join("hold")).unwrap();
    let message = client.next();
    let text = message["params"]["data"].as_str().unwrap_or_default();
    assert!(text.starts_with("MCP server `late` does not work: "), "{message}");
}

/// Built-in tools are offered where a file names them, and called only where they are offered.
#[test]
fn built_in_tools_are_offered_where_a_file_names_them() {
    let names = |more: Value| {
        let workspace = toolbox(&more);
        let mut client = Client::start_unchanged(&workspace);
        initialize(&mut client);
        let mut tools = listed(&mut client).0;
        tools.retain(|name| !["echo", "haft_status"].contains(&name.as_str()));
        let params = json!({"name": "web_search", "arguments": {}});
        let answer = client.ask(&json!(1), "tools/call", &params);
        let is_unknown = answer["error"]["message"] == "Unknown tool: web_search";
        assert_eq!(is_unknown, !tools.contains(&"web_search".to_owned()), "{answer}");
        tools
    };
    assert_eq!(names(json!({})), Vec::<String>::new());
    assert_eq!(names(json!({"builtin": {"web_search": true}})), ["web_search"]);
    assert_eq!(names(json!({"builtin": {"web_search": false}})), Vec::<String>::new());
    assert_eq!(
        names(json!({"builtin": {"enabled": true}})),
        ["code_execution", "web_search", "request_human_input"]
    );
    assert_eq!(names(json!({"tools": [{"name": "web_search", "timeout": 5}]})), ["web_search"]);
}
