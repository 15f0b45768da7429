//! Which tools fit a request, over the API.

use serde_json::{Value, json};

use crate::served::{Served, toolbox};

const WEATHER: &str = r#"{"name": "get_weather", "description": "Current weather and forecast for a place.", "type": "local",
  "input_schema": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
  "config": {"script_path": "greet.py"}}"#;
const HR: &str = r#"{"name": "hr", "description": "System for employees.", "type": "local", "input_schema": {"type": "object"},
  "examples": ["How many holidays do I have left?"], "config": {"script_path": "greet.py"}}"#;

async fn search(served: &Served, query: &str) -> Value {
    let answer = served.get(&format!("/api/v1/tools/search?{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

/// Proves S2-FR-004: ranked by meaning, with reasons and a decision; a tool registered just before is found, by its
/// examples too.
#[tokio::test]
async fn tools_are_searched_by_meaning() {
    let served = Served::with_admin(toolbox());
    for entry in [WEATHER, HR] {
        let created = served.post("/api/v1/tools", entry).await;
        assert_eq!(created.status, 201, "{}", created.text);
    }
    let found = search(&served, "q=do%20I%20need%20an%20umbrella%20in%20Oslo&limit=2").await;
    assert_eq!(found["decision"], "use_tool");
    assert_eq!(found["tools"].as_array().unwrap().len(), 2);
    assert_eq!(found["tools"][0]["tool"], "get_weather");
    assert_eq!(found["tools"][0]["description"], "Current weather and forecast for a place.");
    assert!(found["tools"][0]["why"]["semantic"].as_f64().unwrap() > 0.0);
    let found = search(&served, "q=how%20many%20days%20of%20holiday%20are%20left").await;
    assert_eq!(found["tools"][0]["tool"], "hr");
    let found = search(&served, "q=What%20is%20the%20weather%3F").await;
    assert_eq!(found["decision"], "ask_human");
    assert_eq!(found["missing"], json!([{"name": "location"}]));
    let found = search(&served, "q=Hello%2C%20how%20are%20you%3F").await;
    assert_eq!(found["decision"], "no_tool");
    assert!(!found["tools"].as_array().unwrap().is_empty(), "what comes nearest");
    let short = served.get("/tools/search?q=hr").await;
    assert_eq!(short.json()["tools"][0]["tool"], "hr");
}

/// An empty search is refused; a tool that is named like the path is still available.
#[tokio::test]
async fn wrong_searches_are_refused_and_hide_no_tool() {
    let served = Served::with_admin(toolbox());
    for query in ["q=", "q=%20", "q=x&limit=0", "q=x&limit=101", "q=x&nothing=1"] {
        let answer = served.get(&format!("/api/v1/tools/search?{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {}", answer.text);
    }
    let missing = served.get("/api/v1/tools/search").await;
    assert_eq!(missing.status, 404);
    assert_eq!(missing.json()["remedy"], "describe the task: /api/v1/tools/search?q=...");
    let entry = HR.replace("\"hr\"", "\"search\"");
    assert_eq!(served.post("/api/v1/tools", &entry).await.status, 201);
    assert_eq!(served.get("/api/v1/tools/search").await.json()["name"], "search");
    for path in ["/api/v1/tools/search", "/tools/search"] {
        assert_eq!(served.put(path, &entry).await.json()["outcome"], "replaced", "{path}");
    }
    assert_eq!(served.delete("/tools/search").await.status, 204);
    assert_eq!(served.put("/api/v1/tools/search", &entry).await.status, 201);
    assert_eq!(served.delete("/api/v1/tools/search").await.status, 204);
}

/// The user's request is in the log only if configured, and without secrets.
#[tokio::test]
async fn requests_are_kept_only_if_configured() {
    let body =
        r#"{"arguments": {"name": "you"}, "request": "say hello to sk-abcdef1234567890123"}"#;
    for (setting, kept) in [("", None), ("log: {requests: true}\n", Some("say hello to"))] {
        let workspace = toolbox();
        let yaml = workspace.read("haft.yaml").unwrap() + setting;
        workspace.write("haft.yaml", yaml);
        let served = Served::with_admin(workspace);
        assert_eq!(served.post("/api/v1/tools/greet/call", body).await.status, 200);
        let logged = served.log()[0]["request"].clone();
        assert_eq!(logged.as_str().map(|text| &text[..12]), kept);
        assert!(!logged.to_string().contains("abcdef1234567890123"), "{logged}");
        let long = json!({"request": "x".repeat(4001)}).to_string();
        assert_eq!(served.post("/api/v1/tools/greet/call", &long).await.status, 400);
    }
}
