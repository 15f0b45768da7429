//! Servers' descriptions of themselves and their tools reach clients without known secrets.

use serde_json::json;
use testkit::canary::{assert_masked, servers};

use crate::support::{Client, workspace};

/// Proves S3-SC-005 for the gateway: every list, and how it introduces itself.
#[test]
fn lists_of_the_gateway_hold_no_known_secret() {
    let workspace = workspace(&json!({}));
    let own_key = format!("haft_call_{}", "Ab3_-".repeat(9).split_at(43).0);
    let (entries, _http) = servers(&workspace, &own_key);
    workspace.write("haft.json", json!({"servers": entries}).to_string());
    let mut client = Client::connect(&workspace);
    let tools = testkit::eventually("both servers are connected", || {
        let answer = client.ask(&json!(1), "tools/list", &json!({}));
        let text = answer.to_string();
        (text.contains("process_tool") && text.contains("remote_tool")).then_some(text)
    });
    assert!(tools.contains("it uses *** and ***"), "{tools}");
    assert_masked("tools/list", &tools, &own_key);
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        let text = client.ask(&json!(method), method, &json!({})).to_string();
        assert!(text.contains("it uses ***"), "{method}: {text}");
        assert_masked(method, &text, &own_key);
    }
}
