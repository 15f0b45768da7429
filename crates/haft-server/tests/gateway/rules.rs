//! `policy.rules` at `/mcp`: profiles, hints of tools, and people who are asked.

use serde_json::{Value, json};
use testkit::{Program, Workspace};

use crate::endpoint::{Served, configure};
use crate::support::{Client, server, workspace};

fn files(rules: &Value) -> Workspace {
    let tool = |name: &str, read_only: bool| {
        json!({
            "name": name, "annotations": {"readOnlyHint": read_only},
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
        })
    };
    let tools = json!([tool("read_file", true), tool("write_file", false)]);
    let workspace = workspace(&json!({"files": server(&json!({"tools": tools}))}));
    let profiles = json!({"reader": {}, "writer": {}});
    configure(&workspace, &json!({"profiles": profiles, "policy": {"rules": rules}}));
    workspace
}

fn text(answer: &Value) -> String {
    let result = if answer.get("result").is_some() { &answer["result"] } else { answer };
    format!("{}: {}", result["isError"], result["content"][0]["text"].as_str().unwrap_or_default())
}

/// A rule matches the profile of the endpoint and the hints of the tool. The client sees the reason.
#[test]
fn a_rule_limits_a_profile_to_tools_that_only_read() {
    let rules = json!([
        {"name": "readers", "match": {"profile": "reader", "server": "files", "annotations": {"readOnlyHint": false}},
         "effect": "deny", "reason": "this profile only reads"},
    ]);
    let workspace = files(&rules);
    let served = Served::start(&workspace);
    let call = |path: &str, tool: &str| {
        let session = served.open(path, None);
        text(&session.request("tools/call", &json!({"name": tool, "arguments": {}})).body)
    };
    let denied = "true: Denied: the call of `write_file` is denied by the rule `readers`: this profile only reads";
    assert!(call("/mcp/reader", "write_file").starts_with(denied));
    assert!(!call("/mcp/reader", "read_file").contains("denied"));
    assert!(!call("/mcp/writer", "write_file").contains("denied"));
    assert!(!call("/mcp", "write_file").contains("denied"));
}

/// Over stdio no person can be asked, so a rule that asks denies, and names the way to ask one.
#[test]
fn a_rule_that_asks_denies_over_stdio() {
    let rules = json!([
        {"name": "etc", "match": {"tool": "files/*", "when": "has(args.path) && args.path.startsWith('/etc/')"},
         "effect": "ask"},
    ]);
    let workspace = files(&rules);
    let mut client = Client::connect_with(&workspace, &["--profile", "reader"]);
    let params = json!({"name": "read_file", "arguments": {"path": "/etc/passwd"}});
    let answer = text(&client.ask(&json!(1), "tools/call", &params));
    let expected = "true: Denied: the rule `etc` lets `read_file` run only when a person agrees to the call; approvals are not";
    assert!(answer.starts_with(expected), "{answer}");
    let params = json!({"name": "read_file", "arguments": {"path": "/tmp/x"}});
    assert!(!text(&client.ask(&json!(2), "tools/call", &params)).contains("rule"));
}

/// `check --connect` compares rules with the schemas of a server's tools.
#[test]
fn check_compares_rules_with_the_schemas_of_servers() {
    let rules = json!([{"match": {"server": "files", "when": "has(args.pth) && args.pth == 'x'"}, "effect": "deny"}]);
    let workspace = files(&rules);
    let haft =
        |args: &[&str]| Program::new(env!("CARGO_BIN_EXE_haft"), &workspace).args(args).run();
    assert_eq!(haft(&["check"]).code, 0);
    let checked = haft(&["check", "--connect"]);
    assert_eq!(checked.code, 2, "{}{}", checked.stdout, checked.stderr);
    let expected = "for the tool `read_file`: there is no argument `args.pth`";
    assert!(checked.stderr.contains(expected), "{}", checked.stderr);
    assert!(checked.stderr.contains("did you mean `path`?"), "{}", checked.stderr);
}
