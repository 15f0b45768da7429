//! Prompts, resources, templates and completion of all servers behind one address.

use serde_json::{Value, json};

use super::Gateway;
use crate::support::{server, workspace};

fn two_servers() -> Gateway {
    let text = |text: &str| json!([{"role": "user", "content": {"type": "text", "text": text}}]);
    let prompt = |name: &str, says: &str| json!({"name": name, "messages": text(says)});
    let one = json!({
        "tools": [],
        "prompts": [prompt("both", "one's"), prompt("only_one", "mine")],
        "resources": [{"uri": "test://both", "name": "b", "text": "one's", "extra": {"k": 1}}],
        "templates": [{"uriTemplate": "one://{id}/data", "name": "t"}],
    });
    let two = json!({
        "era": "modern",
        "tools": [],
        "templates": [],
        "prompts": [prompt("both", "two's")],
        "resources": [
            {"uri": "test://both", "name": "b", "text": "two's"},
            {"uri": "test://two", "name": "c", "blob": "AAEC", "mimeType": "x/y"},
        ],
    });
    Gateway::open(workspace(&json!({"one": server(&one), "two": server(&two)})))
}

fn names(answer: &Value, list: &str, key: &str) -> Vec<String> {
    let items = answer["result"][list].as_array().unwrap_or_else(|| panic!("{answer}"));
    items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

/// Proves S1-1 for what servers offer beside tools: everything stands in one list.
#[tokio::test]
async fn every_server_is_in_every_list() {
    let gateway = two_servers();
    let session = gateway.session(&json!({})).await;
    let prompts = session.ask("prompts/list", &json!({})).await;
    assert_eq!(names(&prompts, "prompts", "name"), ["both", "only_one", "two__both"]);
    let said = async |name: &str| {
        let answer = session.ask("prompts/get", &json!({"name": name})).await;
        answer["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(said("both").await, "one's");
    assert_eq!(said("two__both").await, "two's");
    let unknown = session.ask("prompts/get", &json!({"name": "none"})).await;
    assert_eq!(unknown["error"]["code"], -32602);

    let resources = session.ask("resources/list", &json!({})).await;
    assert_eq!(names(&resources, "resources", "uri"), ["test://both", "test://two"]);
    assert_eq!(resources["result"]["resources"][0]["extra"], json!({"k": 1}));
    let templates = session.ask("resources/templates/list", &json!({})).await;
    assert_eq!(names(&templates, "resourceTemplates", "uriTemplate"), ["one://{id}/data"]);
    let read = async |uri: &str| session.ask("resources/read", &json!({"uri": uri})).await;
    assert_eq!(read("test://both").await["result"]["contents"][0]["text"], "one's");
    assert_eq!(read("test://two").await["result"]["contents"][0]["blob"], "AAEC");
    let missing = read("nobody://has/it").await;
    assert_eq!(missing["error"]["code"], -32002);
    assert_eq!(missing["error"]["data"]["uri"], "nobody://has/it");
    let modern = gateway.modern(1, "resources/read", json!({"uri": "nobody://has/it"})).await;
    let mut modern = modern;
    assert_eq!(modern.answer().await["error"]["code"], -32602);
}

/// Nothing to suggest is an answer; a reference to nothing is a mistake.
#[tokio::test]
async fn completion_is_asked_of_the_server_whose_prompt_it_is() {
    let gateway = two_servers();
    let session = gateway.session(&json!({})).await;
    session.ask("prompts/list", &json!({})).await;
    let complete = async |reference: Value| {
        let argument = json!({"name": "a", "value": "b"});
        session.ask("completion/complete", &json!({"ref": reference, "argument": argument})).await
    };
    let none = complete(json!({"type": "ref/prompt", "name": "two__both"})).await;
    assert_eq!(none["result"]["completion"]["values"], json!([]));
    let unknown = complete(json!({"type": "ref/prompt", "name": "none"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
    let template = complete(json!({"type": "ref/resource", "uri": "none://{x}"})).await;
    assert_eq!(template["error"]["code"], -32602);
}

/// An error of a server is forwarded with its own code, message and data.
#[tokio::test]
async fn an_error_of_a_server_is_handed_on() {
    let servers = json!({"files": server(&json!({"tools": ["rpc_error", "fail"]}))});
    let gateway = Gateway::open(workspace(&servers));
    let session = gateway.session(&json!({})).await;
    session.ask("tools/list", &json!({})).await;
    let refused = session.ask("tools/call", &json!({"name": "rpc_error", "arguments": {}})).await;
    assert_eq!(refused["error"]["code"], -32050);
    assert_eq!(refused["error"]["message"], "the tool objects");
    assert!(refused["error"]["data"].is_object(), "{refused}");
    let failed = session.ask("tools/call", &json!({"name": "fail", "arguments": {}})).await;
    assert_eq!(failed["result"]["isError"], true);
}
