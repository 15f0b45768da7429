//! Questions to people over the API: asked by one process, seen and answered by another.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;

use crate::events::Events;
use crate::faults::{call, until};
use crate::served::{Answer, Served, answer};

/// A workspace with the tool that asks people, and more lines in its `haft.yaml`.
fn workspace(yaml: &str) -> Workspace {
    let human = "builtin: {enabled: false, request_human_input: {}}\n";
    Workspace::with(&[("haft.yaml", &format!("{human}{yaml}"))])
}

async fn ask(served: &Served, arguments: Value) -> Answer {
    call(served, "request_human_input", &arguments).await
}

/// The open questions, as soon as there are `count`.
async fn open(served: &Served, count: usize) -> Vec<Value> {
    until("so many questions", async || {
        let items = served.get("/api/v1/inbox").await.json()["items"].as_array().unwrap().clone();
        (items.len() == count).then_some(items)
    })
    .await
}

fn path(item: &Value) -> String {
    format!("/api/v1/inbox/{}", item["id"].as_str().unwrap())
}

/// Answers the only question; returns the response, and the question.
async fn say(served: &Served, body: Value) -> (Answer, Value) {
    let item = open(served, 1).await.remove(0);
    (served.post(&path(&item), &body.to_string()).await, item)
}

/// Proves S2-FR-006: the question is visible, the answer resumes the call.
#[tokio::test]
async fn an_answer_resumes_the_call() {
    let served = Served::open(workspace(""));
    let asked = json!({"question": "Which colour?", "options": ["red", "blue"]});
    let answering = async {
        let item = open(&served, 1).await.remove(0);
        assert_eq!(served.get(&path(&item)).await.json(), item);
        let answered = served.post(&path(&item), r#"{"answer": "blue"}"#).await;
        let mut closed = item.clone();
        closed["how"] = json!("answered");
        assert_eq!((answered.status, answered.json()), (200, closed));
        // The first answer counts.
        let late = served.post(&path(&item), r#"{"answer": "red"}"#).await;
        assert_eq!(late.status, 404, "{}", late.text);
        assert_eq!(served.get(&path(&item)).await.status, 404);
        item
    };
    let (answer, item) = tokio::join!(ask(&served, asked), answering);
    let envelope = answer.json();
    assert_eq!((answer.status, &envelope["data"]), (200, &json!({"answer": "blue"})));
    assert_eq!(envelope["content"][0]["text"], "blue");
    assert_eq!(envelope["execution_id"], item["execution_id"]);
    assert_eq!(served.get("/api/v1/inbox").await.json(), json!({"items": []}));
    insta::assert_snapshot!(served.workspace.stable(&format!("{item:#}")));
    let log = served.log();
    assert_eq!((log.len(), &log[0]["status"]), (1, &json!("success")));
}

/// A call without an answer, or with a refusal, ends with its reason.
#[tokio::test]
async fn a_call_without_an_answer_ends_with_its_reason() {
    let served = Served::open(workspace(""));
    let expired = ask(&served, json!({"question": "Anybody?", "timeout": 0.02})).await;
    assert_eq!((expired.status, &expired.json()["error"]["code"]), (200, &json!("Timeout")));
    let body = json!({"refuse": true, "reason": "ask Bob"});
    let asked = json!({"question": "Anybody?"});
    let (refused, (said, _)) = tokio::join!(ask(&served, asked), say(&served, body));
    assert_eq!((said.status, refused.status), (200, 200));
    assert_eq!(said.json()["how"], "refused");
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "Denied");
    assert_eq!(error["message"], "a person refused to answer: ask Bob");
}

/// Two questions wait at once, and the later one is answered first.
#[tokio::test]
async fn questions_are_answered_in_any_order() {
    let served = Served::open(workspace("defaults: {max_concurrent: 1}\n"));
    let second = async {
        open(&served, 1).await;
        ask(&served, json!({"question": "two"})).await
    };
    let answering = async {
        let items = open(&served, 2).await;
        assert_eq!((&items[0]["question"], &items[1]["question"]), (&json!("one"), &json!("two")));
        for (at, body) in [(1, r#"{"answer": "second"}"#), (0, r#"{"answer": "first"}"#)] {
            assert_eq!(served.post(&path(&items[at]), body).await.status, 200);
        }
    };
    let (first, second, ()) =
        tokio::join!(ask(&served, json!({"question": "one"})), second, answering);
    assert_eq!(first.json()["data"]["answer"], "first");
    assert_eq!(second.json()["data"]["answer"], "second");
}

/// Nothing is no answer to a question without a schema; one whose schema has `null` takes it.
#[tokio::test]
async fn an_empty_answer_needs_a_schema_that_allows_it() {
    let served = Served::open(workspace(""));
    let answering = async {
        let (empty, item) = say(&served, json!({"answer": null})).await;
        assert_eq!(empty.status, 422, "{}", empty.text);
        assert_eq!(empty.json()["detail"], "the answer does not fit: there is none");
        assert_eq!(served.post(&path(&item), r#"{"answer": ""}"#).await.status, 200);
    };
    let (answer, ()) = tokio::join!(ask(&served, json!({"question": "Anything?"})), answering);
    assert_eq!(answer.json()["data"], json!({"answer": ""}));
    let asked = json!({"question": "Anything?", "schema": {"type": ["null", "string"]}});
    let (answer, (said, _)) =
        tokio::join!(ask(&served, asked), say(&served, json!({"answer": null})));
    assert_eq!((said.status, answer.json()["data"].clone()), (200, json!({"answer": null})));
}

/// An answer that does not fit is refused with what is wrong, and the question stays.
#[tokio::test]
async fn a_wrong_answer_leaves_the_question_open() {
    let served = Served::open(workspace(""));
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let asked = json!({"question": "How many?", "schema": schema});
    let answering = async {
        let path = path(&open(&served, 1).await[0]);
        let mut seen = Vec::new();
        for body in [
            r#"{"answer": {"n": "many"}}"#,
            r#"{"answer": null}"#,
            "{}",
            r#"{"answer": {"n": 1}, "refuse": true}"#,
            r#"{"answer": {"n": 1}, "reason": "why?"}"#,
            r#"{"answers": {"n": 1}}"#,
        ] {
            let headers = [("x-request-id", "r1")];
            let answer = served.send(Method::POST, &path, &headers, body).await;
            seen.push(format!("{body}\n{} {:#}", answer.status, answer.json()));
            assert_eq!(served.get(&path).await.status, 200, "{body}");
        }
        assert_eq!(served.post(&path, r#"{"answer": {"n": 3}}"#).await.status, 200);
        seen
    };
    let (answer, seen) = tokio::join!(ask(&served, asked), answering);
    assert_eq!(answer.json()["data"], json!({"answer": {"n": 3}}));
    insta::assert_snapshot!(served.workspace.stable(&seen.join("\n\n")));
}

/// A client that reconnects finds the question that was asked meanwhile. The stream ends with the server.
#[tokio::test]
async fn a_client_that_was_away_finds_the_question() {
    let mut served = Served::open(workspace(""));
    let events = async || Events::of(served.request(Method::GET, "/api/v1/inbox/events")).await;
    let mut first = events().await;
    assert_eq!(first.next().await, ("open".into(), json!({"items": []})));
    drop(first);
    let following = async {
        let item = open(&served, 1).await.remove(0);
        let mut again = events().await;
        assert_eq!(again.next().await, ("open".into(), json!({"items": [item]})));
        let next = async {
            let next = again.next().await;
            (next, again)
        };
        let asking = ask(&served, json!({"question": "brief", "timeout": 0.02}));
        let (_, ((name, asked), mut again)) = tokio::join!(asking, next);
        assert_eq!((name.as_str(), &asked["question"]), ("asked", &json!("brief")));
        let closed = json!({"id": asked["id"], "how": "expired"});
        assert_eq!(again.next().await, ("closed".into(), closed));
        served.post(&path(&item), r#"{"answer": 1}"#).await;
        let closed = json!({"id": item["id"], "how": "answered"});
        assert_eq!(again.next().await, ("closed".into(), closed));
        again
    };
    let (answer, mut again) = tokio::join!(ask(&served, json!({"question": "long"})), following);
    assert_eq!(answer.json()["data"]["answer"], 1);
    served.terminate();
    assert_eq!(again.rest().await, []);
    assert_eq!(served.ended().code, 0);
}

/// A call key sees and answers the questions of its own calls; an admin all.
#[tokio::test]
async fn callers_answer_their_own_questions() {
    let keys = [("boss", Scope::Admin), ("one", Scope::Call), ("two", Scope::Call)];
    let (served, keys) = Served::with_keys(workspace(""), &keys);
    let asking = async || {
        let request =
            served.request_as(&keys[1], Method::POST, "/api/v1/tools/request_human_input/call");
        let body = json!({"arguments": {"question": "Mine?"}}).to_string();
        answer(request.header("content-type", "application/json").body(body)).await
    };
    let as_key = async |key: &str, method: Method, path: &str, body: &str| {
        let request = served.request_as(key, method, path);
        answer(request.header("content-type", "application/json").body(body.to_owned())).await
    };
    let list = async |key: &str| as_key(key, Method::GET, "/api/v1/inbox", "").await.json();
    for answering in [&keys[1], &keys[0]] {
        let between = async {
            let item = open(&served, 1).await.remove(0);
            assert_eq!(item["caller"], "key:one");
            let (other, path, body) = (&keys[2], path(&item), r#"{"answer": "yes"}"#);
            assert_eq!(list(other).await, json!({"items": []}));
            let mut events =
                Events::of(served.request_as(other, Method::GET, "/api/v1/inbox/events")).await;
            assert_eq!(events.next().await.1, json!({"items": []}));
            assert_eq!(as_key(other, Method::GET, &path, "").await.status, 404);
            assert_eq!(as_key(other, Method::POST, &path, body).await.status, 404);
            let refuse = r#"{"refuse": true}"#;
            assert_eq!(as_key(other, Method::POST, &path, refuse).await.status, 404);
            assert_eq!(list(&keys[1]).await["items"][0]["id"], item["id"]);
            assert_eq!(as_key(answering, Method::POST, &path, body).await.status, 200);
        };
        let (asked, ()) = tokio::join!(asking(), between);
        assert_eq!(asked.json()["data"]["answer"], "yes");
    }
    assert_eq!(
        answer(reqwest::Client::new().get(format!("{}/api/v1/inbox", served.url))).await.status,
        401
    );
}

/// A server that asks people.
fn asking_server(era: &str) -> Workspace {
    let scenario = json!({"era": era, "tools": ["elicit", "sample"]});
    let server = json!({"far": {
        "command": Fixture::path(), "args": Fixture::stdio_args(&scenario), "mode": "dynamic",
        "sampling": "ask",
    }});
    workspace(&format!("servers: {server}\n"))
}

/// A server's question reaches a person if no client is behind the call.
#[tokio::test]
async fn a_server_asks_people() {
    for era in ["legacy", "modern"] {
        let served = Served::open(asking_server(era));
        let elicit = async || call(&served, "elicit", &json!({"message": "Your name?"})).await.text;
        let accept = json!({"answer": {"name": "Ada"}});
        let (told, (said, item)) = tokio::join!(elicit(), say(&served, accept));
        assert_eq!(said.status, 200, "{}", said.text);
        assert!(told.contains("accept") && told.contains("Ada"), "{era}: {told}");
        assert_eq!((&item["kind"], &item["server"]), (&json!("elicitation"), &json!("far")));
        assert_eq!(item["question"], "Your name?");
        assert_eq!(item["schema"]["required"], json!(["name"]));
        let (told, _) = tokio::join!(elicit(), say(&served, json!({"refuse": true})));
        assert!(told.contains("decline"), "{era}: {told}");
    }
}

/// A server that may ask the model only when a person agrees each time.
#[tokio::test]
async fn a_person_decides_whether_a_server_asks_the_model() {
    let served = Served::open(asking_server("legacy"));
    let sample = async || call(&served, "sample", &json!({"message": "Say hello."})).await.text;
    let (told, (_, item)) = tokio::join!(sample(), say(&served, json!({"answer": "deny"})));
    assert!(told.contains("no person approved"), "{told}");
    assert_eq!((&item["kind"], &item["server"]), (&json!("sampling"), &json!("far")));
    assert_eq!(item["question"], "May the server `far` ask the model: Say hello.");
    assert_eq!(item["options"], json!(["allow", "deny"]));
    let (told, _) = tokio::join!(sample(), say(&served, json!({"answer": "allow"})));
    assert!(told.contains("no model is configured"), "{told}");
}

/// Proves S3-EC-9: the person who decides sees everything that would be sent to the model.
#[tokio::test]
async fn a_person_sees_the_whole_request_to_the_model() {
    let served = Served::open(asking_server("legacy"));
    let sample = async || call(&served, "sample", &json!({"message": "Say hello."})).await;
    let (_, (_, item)) = tokio::join!(sample(), say(&served, json!({"answer": "deny"})));
    let said = json!([{"role": "user", "content": {"type": "text", "text": "Say hello."}}]);
    assert_eq!(item["arguments"], json!({"messages": said, "maxTokens": 100}));
}

/// Proves S3-EC-9: what a server asks in the call of a key is that key's to see and answer, and no other's.
#[tokio::test]
async fn callers_answer_what_servers_ask_in_their_calls() {
    let keys = [("boss", Scope::Admin), ("one", Scope::Call), ("two", Scope::Call)];
    for era in ["legacy", "modern"] {
        let (served, keys) = Served::with_keys(asking_server(era), &keys);
        let as_key = async |key: &str, method: Method, path: &str, body: &Value| {
            let request = served.request_as(key, method, path);
            answer(request.header("content-type", "application/json").body(body.to_string())).await
        };
        for (tool, said, told) in [
            ("elicit", json!({"name": "Ada"}), "Ada"),
            ("sample", json!("deny"), "no person approved"),
        ] {
            let asking = async {
                let path = format!("/api/v1/tools/{tool}/call");
                as_key(&keys[1], Method::POST, &path, &json!({"session": "s"})).await
            };
            let answering = async {
                let item = open(&served, 1).await.remove(0);
                assert_eq!((&item["caller"], &item["session"]), (&json!("key:one"), &json!("s")));
                let list = async |key: &str| {
                    as_key(key, Method::GET, "/api/v1/inbox", &Value::Null).await.json()
                };
                assert_eq!(list(&keys[2]).await, json!({"items": []}));
                assert_eq!(list(&keys[1]).await, json!({"items": [item]}));
                let body = json!({ "answer": said });
                let other = as_key(&keys[2], Method::POST, &path(&item), &body).await;
                assert_eq!(other.status, 404);
                let own = as_key(&keys[1], Method::POST, &path(&item), &body).await;
                assert_eq!(own.status, 200, "{}", own.text);
                item
            };
            let (answer, item) = tokio::join!(asking, answering);
            assert!(answer.text.contains(told), "{era} {tool}: {}", answer.text);
            assert_eq!(answer.json()["execution_id"], item["execution_id"]);
        }
    }
}

/// A call that ends because its client is gone withdraws what its server asked.
#[tokio::test]
async fn a_call_that_ends_withdraws_its_servers_question() {
    for era in ["legacy", "modern"] {
        let served = Served::open(asking_server(era));
        let nothing = json!({});
        tokio::select! {
            answer = call(&served, "elicit", &nothing) => panic!("nobody answered, and yet: {}", answer.text),
            _ = open(&served, 1) => {}
        }
        open(&served, 0).await;
    }
}

/// A question without an answer is cancelled, as the server sees it.
#[tokio::test]
async fn a_server_receives_the_cancellation_of_a_question() {
    let workspace = asking_server("legacy");
    let text = workspace.read("haft.yaml").unwrap();
    workspace.write("haft.yaml", text + "inbox: {timeout: 20ms}\n");
    let served = Served::open(workspace);
    let told = call(&served, "elicit", &json!({})).await.text;
    assert!(told.contains("cancel"), "{told}");
}
