//! Prompts and resources over the API.

use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;

use crate::served::Served;

fn server(scenario: &Value, more: Value) -> Value {
    let mut server = json!({
        "command": Fixture::path(), "args": Fixture::stdio_args(scenario), "reconnect": {"attempts": 0},
    });
    let Value::Object(more) = more else { panic!("settings are an object") };
    server.as_object_mut().unwrap().extend(more);
    server
}

fn served(servers: &Value) -> Served {
    let config = json!({ "servers": servers }).to_string();
    Served::open(Workspace::with(&[("haft.json", &config)]))
}

#[tokio::test]
async fn prompts_are_listed_and_filled_in() {
    let served = served(&json!({
        "good": server(&json!({}), json!({})),
        "late": server(&json!({"prompts": 1}), json!({"start": "lazy"})),
        "bad": server(&json!({"start": {"exit": 7}}), json!({"on_connect_failure": "skip"})),
    }));
    let prompts = served.get("/api/v1/prompts").await.json();
    let of = |server: &str| {
        let prompts = prompts["prompts"].as_array().unwrap().iter();
        prompts.filter(|prompt| prompt["server"] == server).count()
    };
    assert!(of("good") >= 2 && of("late") == 1 && of("bad") == 0, "{prompts}");
    let one = served.get("/api/v1/prompts?server=late").await.json();
    assert_eq!(one["prompts"].as_array().unwrap().len(), 1);
    assert_eq!(served.get("/api/v1/prompts?server=nobody").await.status, 404);
    assert_eq!(served.get("/api/v1/prompts?sever=good").await.status, 400);

    let filled =
        served.post("/api/v1/prompts/good/greeting", r#"{"arguments": {"name": "Ada"}}"#).await;
    assert_eq!(filled.status, 200, "{}", filled.text);
    assert!(filled.json()["messages"][0]["content"][0]["text"].as_str().unwrap().contains("Ada"));
    for (path, body, status) in [
        ("good/greeting", "{}", 422),
        ("good/greeting", r#"{"arguments": {"name": 7}}"#, 422),
        ("good/greeting", r#"{"arguments": {"name": "a", "name": "b"}}"#, 422),
        ("good/greting", r#"{"arguments": {}}"#, 404),
        ("nobody/greeting", r#"{"arguments": {}}"#, 404),
        ("bad/greeting", r#"{"arguments": {}}"#, 503),
    ] {
        let refused = served.post(&format!("/api/v1/prompts/{path}"), body).await;
        assert_eq!(refused.status, status, "{path} {body}: {}", refused.text);
        assert!(refused.json()["remedy"].is_string(), "{}", refused.text);
    }
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let served = served(&json!({
        "good": server(&json!({}), json!({})),
        "bad": server(&json!({"start": {"exit": 7}}), json!({"on_connect_failure": "skip"})),
    }));
    let listed = served.get("/api/v1/resources").await.json();
    let kinds: Vec<&Value> =
        listed["resources"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert!(kinds.contains(&&json!("resource")) && kinds.contains(&&json!("template")), "{listed}");
    assert_eq!(listed["unavailable"][0]["server"], json!("bad"));

    let read =
        served.get("/api/v1/resources/content?server=good&uri=test%3A%2F%2Fstatic-text").await;
    assert_eq!(read.json()["contents"][0]["text"], json!("This is a text resource."));
    let read = served.get("/api/v1/resources/content?server=good&uri=test://static-binary").await;
    assert_eq!(read.json()["contents"][0]["data"], json!("AAEC/w=="));
    for (query, status) in [
        ("server=good", 400),
        ("server=nobody&uri=a://b", 404),
        ("server=good&uri=nothing://there", 502),
        ("server=bad&uri=a://b", 503),
    ] {
        let refused = served.get(&format!("/api/v1/resources/content?{query}")).await;
        assert_eq!(refused.status, status, "{query}: {}", refused.text);
    }
    assert_eq!(served.get("/api/v1/resources?server=bad").await.status, 503);
}

/// By kind: a timeout differs from a refusal.
#[tokio::test]
async fn a_server_that_fails_is_named_with_its_fault() {
    let silent = json!({"silent_on": ["resources/read"], "exit_on": {"prompts/get": 3}});
    let no = json!({"errors_on": {"resources/read": {"code": -32002, "message": "not here"}}});
    let served = served(&json!({
        "silent": server(&silent, json!({"request_timeout": "100ms"})),
        "no": server(&no, json!({})),
    }));
    let late = served.get("/api/v1/resources/content?server=silent&uri=test://static-text").await;
    assert_eq!((late.status, &late.json()["code"]), (504, &json!("Timeout")), "{}", late.text);
    let no = served.get("/api/v1/resources/content?server=no&uri=test://static-text").await;
    assert_eq!((no.status, &no.json()["code"]), (502, &json!("ServerRefused")));
    assert!(no.json()["detail"].as_str().unwrap().contains("not here"));
    let lost = served.post("/api/v1/prompts/silent/plain", r#"{"arguments": {}}"#).await;
    assert_eq!(
        (lost.status, &lost.json()["code"]),
        (502, &json!("OutcomeUnknown")),
        "{}",
        lost.text
    );
}
