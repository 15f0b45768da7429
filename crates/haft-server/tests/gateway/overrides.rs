//! Overrides of tools: another name, another description, hidden and fixed arguments.

use serde_json::{Value, json};
use testkit::{Program, Workspace};

use crate::support::{Client, server};

const TOKEN: &str = "tok-9f86d081884c7d65";

/// A server whose tool returns its arguments.
fn files() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"}, "root": {"type": "string"}, "token": {"type": "string"},
            "limit": {"type": "integer"}, "debug": {"type": "boolean"},
        },
        "required": ["path", "root", "token"],
        "additionalProperties": false,
    });
    let tool =
        |name: &str| json!({"name": name, "description": "Own words.", "inputSchema": schema});
    let tools = ["read_file", "read_dir", "write_file", "drop"].map(tool);
    server(&json!({"tools": tools}))
}

fn workspace(tools: &Value, more: &[(&str, Value)]) -> Workspace {
    let mut files = files();
    for (key, value) in more {
        files[*key] = value.clone();
    }
    let config = json!({"servers": {"files": files}, "tools": tools});
    Workspace::with(&[("haft.json", &config.to_string())])
}

fn overridden() -> Workspace {
    workspace(
        &json!([{
            "name": "read_file", "mcp": "files", "rename": "read_report",
            "description": "Reads one report of this month.",
            "hide_arguments": ["debug"],
            "fixed_arguments": {"root": "/reports", "token": TOKEN, "limit": 10},
            "annotations": {"readOnlyHint": true},
        }]),
        &[],
    )
}

/// The arguments that the server received.
fn received(result: &Value) -> Value {
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

/// Clients see the new name and description, and a schema without the hidden and fixed arguments. The server
/// receives the caller's arguments with the fixed ones, and its own schema validates both.
#[test]
fn a_tool_is_offered_under_another_name_with_fewer_arguments() {
    let workspace = overridden();
    let mut client = Client::connect(&workspace);
    let list = client.ask(&json!(1), "tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "read_report").unwrap();
    assert!(!tools.iter().any(|tool| tool["name"] == "read_file"), "{list}");
    assert_eq!(tool["description"], "Reads one report of this month.");
    assert_eq!(tool["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(
        tool["inputSchema"],
        json!({
            "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
            "additionalProperties": false,
        })
    );
    let result = client.call("read_report", &json!({"path": "a.txt"}));
    assert_eq!(
        received(&result),
        json!({"root": "/reports", "token": TOKEN, "limit": 10, "path": "a.txt"})
    );
}

/// A caller cannot pass an argument that the file hides or fixes, whatever its value, and a call without a
/// visible required argument is still invalid. The tool does not run.
#[test]
fn callers_cannot_pass_hidden_or_fixed_arguments() {
    let workspace = overridden();
    let mut client = Client::connect(&workspace);
    for (arguments, argument) in [
        (json!({"path": "a", "debug": true}), "/debug"),
        (json!({"path": "a", "debug": null}), "/debug"),
        (json!({"path": "a", "root": "/reports"}), "/root"),
        (json!({"path": "a", "root": "/etc"}), "/root"),
    ] {
        let result = client.call("read_report", &arguments);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(result["isError"], true, "{result}");
        assert!(
            text.contains("the tool has no such argument") && text.contains(argument),
            "{text}"
        );
    }
    let result = client.call("read_report", &json!({}));
    assert_eq!(result["isError"], true, "{result}");
    let old_name = json!({"name": "read_file", "arguments": {"path": "a"}});
    let answer = client.ask(&json!(9), "tools/call", &old_name);
    assert_eq!(answer["error"]["message"], "Unknown tool: read_file");
}

/// `tools show` and `config show` name the overrides with their places, and hide secret values. The log holds
/// the caller's arguments and no secret.
#[test]
fn overrides_are_shown_with_their_origin_and_without_secrets() {
    let workspace = overridden();
    let haft =
        |args: &[&str]| Program::new(env!("CARGO_BIN_EXE_haft"), &workspace).args(args).run();
    let shown = haft(&["tools", "show", "read_report", "--json"]);
    let tool: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(tool["original_name"], "read_file");
    let setting = |key: &str| {
        let config = tool["config"].as_array().unwrap();
        config.iter().find(|it| it["key"] == key).unwrap().clone()
    };
    assert_eq!(setting("rename")["value"], "read_report");
    assert!(setting("rename")["from"].as_str().unwrap().starts_with("haft.json:1:"));
    assert_eq!(setting("hide_arguments")["value"], json!(["debug"]));
    assert_eq!(
        setting("fixed_arguments")["value"],
        json!({"root": "/reports", "token": "***", "limit": 10})
    );
    let config = haft(&["config", "show", "--json"]);
    assert!(config.stdout.contains("tools.read_file.fixed_arguments.root"), "{}", config.stdout);
    let call = haft(&["call", "read_report", "path=a.txt"]);
    assert!(call.code == 0, "{}", call.stderr);
    let log = haft(&["log", "--json"]);
    assert!(log.stdout.contains("a.txt"), "{}", log.stdout);
    for output in [&shown.stdout, &config.stdout, &log.stdout] {
        assert!(!output.contains(TOKEN), "{output}");
    }
}

/// An override that no call could satisfy leaves the tool out, with the reason; the other tools stay.
#[test]
fn an_impossible_override_leaves_the_tool_out() {
    let workspace = workspace(
        &json!([
            {"name": "read_file", "mcp": "files", "hide_arguments": ["root"]},
            {"name": "read_dir", "mcp": "files", "fixed_arguments": {"root": 1, "token": "t"}},
        ]),
        &[],
    );
    let haft = Program::new(env!("CARGO_BIN_EXE_haft"), &workspace).args(&["tools", "list"]).run();
    assert!(!haft.stdout.contains("read_file") && !haft.stdout.contains("read_dir"));
    assert!(haft.stdout.contains("write_file"), "{}", haft.stdout);
    assert!(
        haft.stderr.contains(
            "Tool 'read_file' from MCP server 'files' is not registered: the argument `root` is hidden and \
             required; give it a value in `fixed_arguments`"
        ),
        "{}",
        haft.stderr
    );
    assert!(haft.stderr.contains("the fixed argument `root` does not match"), "{}", haft.stderr);
}

/// Allow and deny lists take patterns, of the tool's name alone or as `server/tool`.
#[test]
fn lists_of_tools_take_patterns() {
    for (key, patterns, expected) in [
        ("tool_allowlist", json!(["read_*"]), vec!["read_file", "read_dir"]),
        ("tool_allowlist", json!(["files/read_*", "drop"]), vec!["read_file", "read_dir", "drop"]),
        ("tool_denylist", json!(["files/*_file"]), vec!["read_dir", "drop"]),
        ("tool_denylist", json!(["*_file", "files/drop"]), vec!["read_dir"]),
    ] {
        let workspace = workspace(&json!([]), &[(key, patterns.clone())]);
        assert_eq!(Client::connect(&workspace).tools(), expected, "{key} {patterns}");
    }
}
