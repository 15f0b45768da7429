//! Long results of MCP servers: cut on request, with a tool that reads on, also in a profile.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::support::{Client, server};

fn workspace(gateway: &Value) -> Workspace {
    let config = json!({
        "servers": {"s": server(&json!({"tools": ["big", "bad_structured", "echo"]}))},
        "gateway": gateway, "profiles": {"narrow": {"tools": ["big"]}},
    });
    Workspace::with(&[("haft.json", &config.to_string())])
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// A cut result names `read_output` and its arguments; the parts join to the whole.
#[test]
fn a_client_reads_on_in_a_long_result() {
    let workspace = workspace(&json!({"output_bytes_max": "4KiB"}));
    for args in [&[][..], &["--profile", "narrow"]] {
        let mut client = Client::connect_with(&workspace, args);
        assert!(client.tools().contains(&"read_output".to_owned()), "{args:?}");
        let short = client.call("big", &json!({"bytes": 100}));
        assert_eq!(text(&short).len(), 100);
        let mut part = client.call("big", &json!({"bytes": 20_000}));
        assert_eq!((&part["isError"], part.get("structuredContent")), (&json!(false), None));
        let mut whole = String::new();
        while let Some((before, note)) = text(&part).split_once("\n[") {
            assert!(before.len() <= 4096, "{}", before.len());
            whole.push_str(before);
            let arguments = note.split("`read_output` with ").nth(1).unwrap();
            let arguments = arguments.split(" to read on").next().unwrap();
            part = client.call("read_output", &serde_json::from_str(arguments).unwrap());
        }
        whole.push_str(text(&part));
        assert_eq!(whole.len(), 20_000, "{args:?}");
    }
}

/// Results that may be cut have no output schema; without the setting nothing is different.
#[test]
fn tools_have_no_output_schema_where_results_are_cut() {
    for (gateway, has_schema) in [(json!({"output_bytes_max": "4KiB"}), false), (json!({}), true)] {
        let mut client = Client::connect(&workspace(&gateway));
        let list = client.ask(&json!(1), "tools/list", &json!({}));
        let tools = list["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == "bad_structured").unwrap();
        assert_eq!(tool.get("outputSchema").is_some(), has_schema, "{gateway}");
        assert_eq!(tools.iter().any(|tool| tool["name"] == "read_output"), !has_schema);
    }
}
