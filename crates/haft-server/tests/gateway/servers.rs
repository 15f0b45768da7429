//! The servers behind the gateway: they come, change, die and end with it.

use std::fs;

use serde_json::json;
use testkit::fixture::events;
use testkit::{Program, Workspace, eventually, is_running};

use crate::support::{Client, server, workspace};

/// Proves S3-SC-006: one of three servers dies, and the tools of the others continue.
#[test]
fn a_server_that_dies_leaves_the_others_at_work() {
    let own =
        |name: &str| json!({"name": name, "behaves": "echo", "inputSchema": {"type": "object"}});
    let workspace = workspace(&json!({
        "one": server(&json!({"tools": [own("one")]})),
        "two": server(&json!({"tools": ["crash"]})),
        "three": server(&json!({"tools": [own("three")]})),
    }));
    let mut client = Client::connect(&workspace);
    assert_eq!(client.tools(), ["greet", "one", "crash", "three"]);
    let crashed = client.call("crash", &json!({}));
    assert_eq!(crashed["isError"], true);
    assert!(!client.call("one", &json!({}))["isError"].as_bool().unwrap_or(false));
    assert!(!client.call("three", &json!({}))["isError"].as_bool().unwrap_or(false));
}

/// A call that comes before its server is connected waits for that server, and not for one that hangs.
#[test]
fn a_server_that_hangs_does_not_hold_up_the_others() {
    let mut hanging = server(&json!({"start": {"hang": true}}));
    hanging["connect_timeout"] = json!("10m");
    let slow = server(&json!({"tools": ["echo"], "start": {"delay_ms": 300}}));
    let workspace = workspace(&json!({"hanging": hanging, "slow": slow}));
    let mut client = Client::connect(&workspace);
    let answer = client.call("echo", &json!({"message": "soon"}));
    assert!(answer.to_string().contains("soon"), "{answer}");
}

#[test]
fn a_client_is_notified_of_changed_tools() {
    let workspace = workspace(&json!({"files": server(&json!({"tools": ["echo", "add_tool"]}))}));
    let mut client = Client::connect(&workspace);
    assert_eq!(client.tools().len(), 3);
    client.request(
        &json!(1),
        "tools/call",
        &json!({"name": "add_tool", "arguments": {"name": "new"}}),
    );
    assert_eq!(client.next()["id"], 1);
    // Each announcement is followed by a look, as a client does it.
    while !client.tools().contains(&"new".to_owned()) {
        let line = client.any_line();
        assert!(line.contains("notifications/tools/list_changed"), "{line}");
    }
}

/// Proves S1-5 for a client that closes its side: nothing is left behind.
#[test]
fn nothing_is_left_when_the_client_closes_its_side() {
    let workspace = workspace(&json!({}));
    let facts = workspace.path().join("facts");
    let servers = json!({"files": server(&json!({"tools": ["hang"], "facts": facts}))});
    workspace.write("haft.json", json!({"servers": servers}).to_string());
    let mut client = Client::connect(&workspace);
    assert_eq!(client.tools(), ["hang"]);
    client.request(&json!(1), "tools/call", &json!({"name": "hang", "arguments": {}}));
    let pid = eventually("the server starts", || events(&facts, "start").first()?["pid"].as_u64());
    assert_eq!(client.close(), Some(0));
    assert!(!is_running(u32::try_from(pid).unwrap()));
}

/// Haft's own client, which knows nothing of what is behind.
#[test]
fn haft_is_a_server_for_haft() {
    let inner = workspace(&json!({"files": server(&json!({"tools": ["echo"]}))}));
    let through = |protocol: &str| {
        let haft = json!({
            "command": env!("CARGO_BIN_EXE_haft"),
            "args": ["mcp", "-c", inner.path().join("haft.json")],
            "protocol": protocol,
        });
        let outer =
            Workspace::with(&[("haft.json", &json!({"servers": {"inner": haft}}).to_string())]);
        let call = Program::new(env!("CARGO_BIN_EXE_haft"), &outer);
        let finished = call.args(&["call", "greet", "name=you", "--json"]).run();
        assert_eq!(finished.code, 0, "{protocol}: {}", finished.stderr);
        assert!(finished.stdout.contains("Hello, you!"), "{protocol}: {}", finished.stdout);
    };
    through("legacy");
    through("modern");
    assert!(fs::exists(inner.path().join("logs")).unwrap());
}
