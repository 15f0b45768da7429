//! Tools that an earlier run saw: offered at once, confirmed when their server is connected.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;

use crate::support::Client;

/// A program that waits while the file `hold` is there, then runs a server with the tool `first`, or `second` if a
/// file of that name is there.
fn script() -> String {
    let serve = |tool: &str| {
        let scenario = json!({
            "instructions": format!("Use {tool}."),
            "tools": [{"name": tool, "description": format!("Knows everything about the {tool}."), "behaves": "text"}],
        });
        let args: Vec<String> =
            Fixture::stdio_args(&scenario).iter().map(|arg| format!("'{arg}'")).collect();
        format!("exec '{}' {}", Fixture::path().display(), args.join(" "))
    };
    format!(
        "while [ -e hold ]; do sleep 0.05; done\nif [ -e second ]; then {}; fi\n{}\n",
        serve("second"),
        serve("first")
    )
}

struct Toolbox(Workspace);

impl Toolbox {
    fn new(gateway: &str) -> Self {
        let config = format!(
            "gateway: {gateway}\nservers: {{slow: {{command: sh, args: [slow.sh], connect_timeout: 10m}}}}\n"
        );
        Self(Workspace::with(&[("haft.yaml", &config), ("slow.sh", &script())]))
    }

    /// One that has run before. Its server waits now.
    fn known(gateway: &str) -> Self {
        let toolbox = Self::new(gateway);
        let mut client = Client::connect(&toolbox.0);
        assert_eq!(client.tools(), ["first"]);
        assert_eq!(client.close(), Some(0));
        toolbox.hold();
        toolbox
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn hold(&self) {
        self.0.write("hold", "");
    }

    fn release(&self) {
        fs::remove_file(self.file("hold")).unwrap();
    }
}

fn listed(client: &mut Client) -> Vec<Value> {
    let mut answer = client.ask(&json!("list"), "tools/list", &json!({}));
    match answer["result"]["tools"].take() {
        Value::Array(tools) => tools,
        other => panic!("no tools: {other} {answer}"),
    }
}

fn is_cached(tool: &Value) -> bool {
    tool["_meta"]["haft/registration"]["cached"] == json!(true)
}

/// The list is complete although the server never answers in this run: the limit for first lists is ten minutes.
#[test]
fn the_second_start_lists_what_the_first_one_saw() {
    let toolbox = Toolbox::known("{first_list_timeout: 10m}");
    let mut client = Client::start(&toolbox.0);
    let asked = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let hello = client.ask(&json!(1), "initialize", &asked);
    let instructions = hello["result"]["instructions"].as_str().unwrap();
    assert!(instructions.contains("> Use first."), "{instructions}");
    let tools = listed(&mut client);
    assert_eq!(tools.len(), 1, "{tools:?}");
    assert!(tools[0]["name"] == "first" && is_cached(&tools[0]), "{tools:?}");
}

/// A call of a tool that is only known waits for its server. The confirmed tool is the same one, so no change is
/// announced.
#[test]
fn a_call_of_a_known_tool_waits_for_its_server() {
    let toolbox = Toolbox::known("{}");
    let mut client = Client::connect(&toolbox.0);
    assert!(is_cached(&listed(&mut client)[0]));
    client.request(&json!("call"), "tools/call", &json!({"name": "first", "arguments": {}}));
    assert_eq!(client.ask(&json!("ping"), "ping", &json!({}))["result"], json!({}));
    toolbox.release();
    let mut line = client.any_line();
    // Its resources are new: an earlier run's are not kept.
    if line.contains("notifications/resources/list_changed") {
        line = client.any_line();
    }
    assert!(line.contains("\"call\"") && line.contains("content"), "{line}");
    let tools = listed(&mut client);
    assert!(!is_cached(&tools[0]), "{tools:?}");
}

/// Lists of resources are not kept, so the first one waits for a server that had resources: some clients list once.
#[test]
fn the_second_start_waits_for_servers_that_had_resources() {
    let toolbox = Toolbox::known("{first_list_timeout: 10m}");
    let mut client = Client::connect(&toolbox.0);
    client.request(&json!("resources"), "resources/list", &json!({}));
    client.request(&json!("templates"), "resources/templates/list", &json!({}));
    assert_eq!(client.ask(&json!("ping"), "ping", &json!({}))["result"], json!({}));
    toolbox.release();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let message = client.next();
        for (id, key) in [("resources", "resources"), ("templates", "resourceTemplates")] {
            if message["id"] == id {
                let items = message["result"][key].as_array().unwrap();
                assert!(!items.is_empty(), "{message}");
                seen.push(id);
            }
        }
    }
}

/// Resources that come after the list are announced, also if the server's tools are the known ones.
#[test]
fn resources_that_come_later_are_announced() {
    let toolbox = Toolbox::known("{first_list_timeout: 50ms}");
    let mut client = Client::connect(&toolbox.0);
    let listed = client.ask(&json!("early"), "resources/list", &json!({}));
    assert_eq!(listed["result"]["resources"], json!([]), "{listed}");
    toolbox.release();
    let line = client.line();
    assert!(line.contains("notifications/resources/list_changed"), "{line}");
    let listed = client.ask(&json!("late"), "resources/list", &json!({}));
    assert_ne!(listed["result"]["resources"], json!([]), "{listed}");
}

/// A tool that its server no longer has leaves the list, and a call of it that waited fails.
#[test]
fn a_known_tool_that_is_gone_leaves_the_list() {
    let toolbox = Toolbox::known("{}");
    toolbox.0.write("second", "");
    let mut client = Client::connect(&toolbox.0);
    assert_eq!(client.tools(), ["first"]);
    client.request(&json!("call"), "tools/call", &json!({"name": "first", "arguments": {}}));
    toolbox.release();
    let (mut is_refused, mut is_announced) = (false, false);
    while !(is_refused && is_announced) {
        let line = client.any_line();
        is_announced |= line.contains("notifications/tools/list_changed");
        is_refused |= line.contains("Unknown tool: first");
        assert!(is_announced || is_refused, "{line}");
    }
    assert_eq!(client.tools(), ["second"]);
}

/// The tools of one command line are not those of another.
#[test]
fn tools_of_another_configuration_are_not_offered() {
    let toolbox = Toolbox::known("{first_list_timeout: 50ms}");
    let config = fs::read_to_string(toolbox.file("haft.yaml")).unwrap();
    toolbox.0.write("haft.yaml", config.replace("[slow.sh]", "[slow.sh, more]"));
    let mut client = Client::connect(&toolbox.0);
    assert_eq!(client.tools(), Vec::<String>::new());
}

/// The limit of the first list is a setting. What comes later is announced.
#[test]
fn the_first_list_waits_as_long_as_configured() {
    let toolbox = Toolbox::new("{first_list_timeout: 50ms}");
    toolbox.hold();
    let mut client = Client::connect(&toolbox.0);
    assert_eq!(client.tools(), Vec::<String>::new());
    toolbox.release();
    let line = client.any_line();
    assert!(line.contains("notifications/tools/list_changed"), "{line}");
    assert_eq!(client.tools(), ["first"]);
}

/// Clients that list once see everything, also if a server needs longer than any other limit of a list.
#[test]
fn the_first_list_waits_for_a_server_that_starts_slowly() {
    let slow = json!({"tools": ["echo"], "start": {"delay_ms": 6_000}});
    let servers = json!({"slow": {"command": Fixture::path(), "args": Fixture::stdio_args(&slow)}});
    let workspace = Workspace::with(&[("haft.json", &json!({ "servers": servers }).to_string())]);
    assert_eq!(Client::connect(&workspace).tools(), ["echo"]);
}

/// A search includes the known tools of servers that are still being connected, and names those without any.
#[test]
fn a_search_finds_known_tools_and_names_missing_servers() {
    let find = |client: &mut Client| {
        client.call("find_tools", &json!({"query": "everything about the first"}))
    };
    let toolbox = Toolbox::new("{surface: search, first_list_timeout: 50ms}");
    toolbox.hold();
    let mut client = Client::connect(&toolbox.0);
    let found = find(&mut client);
    assert_eq!(found["structuredContent"]["missing_servers"], json!(["slow"]), "{found}");
    let text = found["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("not known yet: `slow` (connecting)."), "{text}");
    toolbox.release();
    while find(&mut client)["structuredContent"]["tools"][0]["name"] != "first" {}
    assert_eq!(client.close(), Some(0));
    toolbox.hold();
    let found = find(&mut Client::connect(&toolbox.0));
    assert_eq!(found["structuredContent"]["tools"][0]["name"], "first", "{found}");
    assert_eq!(found["structuredContent"].get("missing_servers"), None, "{found}");
}
