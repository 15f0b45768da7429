//! Long results: capped for clients, read on with `read_output`, and only by the key that made the call.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;

use crate::served::{Served, answer};

const TOOL: &str = "def run(args):\n    return 'äbcdefg ' * args['words']\n";

fn workspace() -> Workspace {
    let tools = json!({"tools": [{
        "name": "long", "description": "Long.", "type": "local",
        "input_schema": {"type": "object", "properties": {"words": {"type": "integer"}}},
        "config": {"script_path": "long.py"},
    }]});
    Workspace::with(&[
        ("haft.yaml", "registry: {dir: tools}\ngateway: {output_bytes_max: 2KiB}\n"),
        ("tools/tools.json", &tools.to_string()),
        ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
        ("tools/long.py", TOOL),
    ])
}

async fn call(served: &Served, key: &str, tool: &str, arguments: &Value) -> Value {
    let body = json!({"arguments": arguments}).to_string();
    let path = format!("/api/v1/tools/{tool}/call");
    let request = served.request_as(key, Method::POST, &path).body(body);
    answer(request.header("content-type", "application/json")).await.json()
}

/// The text of a result, and the offset to read on from.
fn part(envelope: &Value) -> (String, Option<u64>) {
    let text = envelope["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{envelope}"));
    let Some((before, note)) = text.split_once("\n[") else { return (text.to_owned(), None) };
    let offset = note.split("\"offset\": ").nth(1).unwrap().split('}').next().unwrap();
    (before.to_owned(), Some(offset.parse().unwrap()))
}

/// The parts join to the whole result, no answer is longer than the limit and its note, and another key gets
/// nothing.
#[tokio::test]
async fn a_long_result_is_read_in_parts_by_its_own_key() {
    let (served, keys) =
        Served::with_keys(workspace(), &[("one", Scope::Call), ("two", Scope::Call)]);
    let short = call(&served, &keys[0], "long", &json!({"words": 3})).await;
    assert_eq!(short["data"], "äbcdefg ".repeat(3));
    let cut = call(&served, &keys[0], "long", &json!({"words": 1000})).await;
    assert_eq!(cut["status"], "success");
    assert_eq!(cut["data"], Value::Null);
    let id = cut["execution_id"].as_str().unwrap();
    let (mut whole, mut offset) = part(&cut);
    assert!(whole.len() <= 2048, "{}", whole.len());
    let other = call(&served, &keys[1], "read_output", &json!({"execution_id": id})).await;
    assert_eq!(other["status"], "error", "{other}");
    let mut parts = 0;
    while let Some(at) = offset {
        let arguments = json!({"execution_id": id, "offset": at});
        let read = call(&served, &keys[0], "read_output", &arguments).await;
        assert!(read["content"][0]["text"].as_str().unwrap().len() <= 2048 + 256);
        let (text, next) = part(&read);
        whole.push_str(&text);
        offset = next;
        parts += 1;
    }
    assert!(parts > 2, "{parts}");
    assert!(whole == "äbcdefg ".repeat(1000), "the parts differ from the whole");
}

/// Without the setting results are whole, and the tool is not there.
#[tokio::test]
async fn results_are_whole_by_default() {
    let workspace = workspace();
    workspace.write("haft.yaml", "registry: {dir: tools}\n");
    let served = Served::open(workspace);
    let body = json!({"arguments": {"words": 1000}}).to_string();
    let whole = served.post("/api/v1/tools/long/call", &body).await.json();
    assert_eq!(whole["data"], "äbcdefg ".repeat(1000));
    assert_eq!(served.get("/api/v1/tools/read_output").await.status, 404);
}
