//! Calls and questions of one replica, seen and changed at another one.

use std::net::TcpListener;

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Replica};
use crate::events::Events;
use crate::faults::until;
use crate::served::answer;

/// The only item of a list, as soon as there is one.
async fn only(replica: &Replica, path: &str, field: &str) -> Value {
    until("one item", async || {
        let list = replica.get(path).await.json();
        let items = list[field].as_array().unwrap();
        (items.len() == 1).then(|| items[0].clone())
    })
    .await
}

fn path_of(list: &str, id: &Value) -> String {
    format!("{list}/{}", id.as_str().unwrap())
}

#[tokio::test]
async fn a_call_of_another_replica_is_listed_cancelled_and_found_in_its_log() {
    let cluster = Cluster::start().await;
    let [first, second, third] = &cluster.replicas[..] else { panic!() };
    let cancelling = async {
        let call = only(second, "/api/v1/calls", "calls").await;
        let id = &call["execution_id"];
        assert!(id.as_str().unwrap().ends_with("0007"), "{id}");
        let request = third.request(Method::DELETE, &path_of("/api/v1/calls", id));
        let cancelled = answer(request.header("x-request-id", "mine")).await;
        assert_eq!((cancelled.status, cancelled.header("x-request-id")), (202, "mine"));
        assert_eq!(cancelled.json()["execution_id"], *id);
        id.clone()
    };
    let (called, id) = tokio::join!(first.call("wait", json!({})), cancelling);
    let envelope = called.json();
    assert_eq!((&envelope["error"]["code"], &envelope["execution_id"]), (&json!("Cancelled"), &id));
    for replica in &cluster.replicas {
        let entry = replica.get(&path_of("/api/v1/log", &id)).await;
        assert_eq!((entry.status, &entry.json()["execution_id"]), (200, &id), "{}", entry.text);
        let why = replica.get(&format!("{}/why", path_of("/api/v1/log", &id))).await;
        assert_eq!(why.status, 200, "{}", why.text);
    }
    // Over: the answer is that of a call that is not in flight.
    let again = second.delete(&path_of("/api/v1/calls", &id)).await;
    assert_eq!(again.status, 404, "{}", again.text);
}

#[tokio::test]
async fn a_question_is_seen_everywhere_and_answered_once() {
    let cluster = Cluster::start().await;
    let [first, second, third] = &cluster.replicas[..] else { panic!() };
    let answering = async {
        let item = only(second, "/api/v1/inbox", "items").await;
        let path = path_of("/api/v1/inbox", &item["id"]);
        assert_eq!(third.get(&path).await.json(), item);
        let invalid = second.post(&path, &json!({"answer": "green"})).await;
        assert_eq!(invalid.status, 422, "{}", invalid.text);
        let (red, blue) = (json!({"answer": "red"}), json!({"answer": "blue"}));
        let (one, other) = tokio::join!(second.post(&path, &red), third.post(&path, &blue));
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 404], "{} {}", one.text, other.text);
        if one.status == 200 { "red" } else { "blue" }
    };
    let question = json!({"question": "Which?", "options": ["red", "blue"]});
    let (asked, answered) = tokio::join!(first.call("request_human_input", question), answering);
    assert_eq!(asked.json()["data"]["answer"], answered);
    assert_eq!(third.get("/api/v1/inbox").await.json(), json!({"items": []}));
}

#[tokio::test]
async fn a_replica_that_does_not_answer_is_named_and_its_items_are_gone() {
    let cluster = Cluster::start().await;
    let [first, second, _] = &cluster.replicas[..] else { panic!() };
    let calling = first.call("wait", json!({}));
    let looking = async {
        let call = only(second, "/api/v1/calls", "calls").await;
        let path = path_of("/api/v1/calls", &call["execution_id"]);
        // It accepts connections and is silent, as a frozen process.
        let frozen = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", frozen.local_addr().unwrap());
        cluster.set_address(first.number, Some(&address));
        let list = second.get("/api/v1/calls").await;
        assert_eq!(list.json(), json!({"calls": [], "replicas_missing": [7]}));
        // It refuses connections, then it is gone from the table.
        drop(frozen);
        let refused = second.delete(&path).await;
        assert_eq!(refused.status, 404, "{}", refused.text);
        cluster.set_address(first.number, None);
        let gone = second.delete(&path).await;
        let (refused, gone) = (refused.json(), gone.json());
        assert_eq!((&refused["detail"], &refused["remedy"]), (&gone["detail"], &gone["remedy"]));
        assert_eq!(second.get("/api/v1/calls").await.json(), json!({"calls": []}));
        let id = call["execution_id"].as_str().unwrap();
        assert!(first.live.runtime().cancel(id), "it still runs");
    };
    let (called, ()) = tokio::join!(calling, looking);
    assert_eq!(called.json()["error"]["code"], "Cancelled");
}

#[tokio::test]
async fn the_owner_decides_what_a_key_may_see() {
    let cluster = Cluster::start().await;
    let [first, second, _] = &cluster.replicas[..] else { panic!() };
    let call_key = |name| cluster.keys.create(name, Scope::Call).unwrap().0.expose().to_owned();
    let (ada, bob) = (call_key("ada"), call_key("bob"));
    let body = json!({"arguments": {}}).to_string();
    let request = first.request_as(&ada, Method::POST, "/api/v1/tools/wait/call");
    let calling = answer(request.header("content-type", "application/json").body(body));
    let looking = async {
        let call = only(second, "/api/v1/calls", "calls").await;
        let path = path_of("/api/v1/calls", &call["execution_id"]);
        let list = async |key: &str| {
            answer(second.request_as(key, Method::GET, "/api/v1/calls")).await.json()["calls"]
                .clone()
        };
        assert_eq!((list(&bob).await, list(&ada).await), (json!([]), json!([call])));
        let denied = answer(second.request_as(&bob, Method::DELETE, &path)).await;
        assert_eq!(denied.status, 404, "{}", denied.text);
        let cancelled = answer(second.request_as(&ada, Method::DELETE, &path)).await;
        assert_eq!(cancelled.status, 202, "{}", cancelled.text);
    };
    let (called, ()) = tokio::join!(calling, looking);
    assert_eq!(called.json()["error"]["code"], "Cancelled");
}

#[tokio::test]
async fn a_forged_hop_gains_nothing() {
    let cluster = Cluster::start().await;
    let [first, second, _] = &cluster.replicas[..] else { panic!() };
    let calling = first.call("wait", json!({}));
    let looking = async {
        let call = only(second, "/api/v1/calls", "calls").await;
        let path = path_of("/api/v1/calls", &call["execution_id"]);
        for hop in ["1", "0", "7", "http://127.0.0.1:1"] {
            for replica in [first, second] {
                let open = replica.request_open(Method::DELETE, &path).header("haft-hop", hop);
                assert_eq!(answer(open).await.status, 401);
            }
            // With a key, the request is merely answered where it arrives.
            let request = second.request(Method::DELETE, &path).header("haft-hop", hop);
            assert_eq!(answer(request).await.status, 404);
            let request = second.request(Method::GET, "/api/v1/calls").header("haft-hop", hop);
            assert_eq!(answer(request).await.json(), json!({"calls": []}));
        }
        assert_eq!(second.delete(&path).await.status, 202);
    };
    let (called, ()) = tokio::join!(calling, looking);
    assert_eq!(called.json()["error"]["code"], "Cancelled");
}

#[tokio::test]
async fn the_events_of_the_inbox_are_those_of_all_replicas() {
    let cluster = Cluster::start().await;
    let [first, second, third] = &cluster.replicas[..] else { panic!() };
    let ask = |replica: &'static str| json!({"question": replica});
    let following = async {
        let open = only(second, "/api/v1/inbox", "items").await;
        let mut events = Events::of(second.request(Method::GET, "/api/v1/inbox/events")).await;
        assert_eq!(events.next().await, ("open".to_owned(), json!({"items": [open]})));
        let path = path_of("/api/v1/inbox", &open["id"]);
        let asking = third.call("request_human_input", ask("third"));
        let answering = async {
            let (name, asked) = events.next().await;
            assert_eq!((name.as_str(), &asked["question"]), ("asked", &json!("third")));
            assert_eq!(second.post(&path, &json!({"answer": "a"})).await.status, 200);
            let closed = json!({"id": open["id"], "how": "answered"});
            assert_eq!(events.next().await, ("closed".to_owned(), closed));
            // The replica dies, and its question with it.
            cluster.set_address(third.number, None);
            let closed = json!({"id": asked["id"], "how": "withdrawn"});
            assert_eq!(events.next().await, ("closed".to_owned(), closed));
            third.post(&path_of("/api/v1/inbox", &asked["id"]), &json!({"answer": "b"})).await
        };
        let (asked, answered) = tokio::join!(asking, answering);
        assert_eq!((asked.status, answered.status), (200, 200));
    };
    let (asked, ()) = tokio::join!(first.call("request_human_input", ask("first")), following);
    assert_eq!(asked.json()["data"]["answer"], "a");
}

#[tokio::test]
async fn the_tail_of_the_log_has_the_calls_of_all_replicas() {
    let cluster = Cluster::start().await;
    let [first, second, third] = &cluster.replicas[..] else { panic!() };
    let mut events = Events::of(second.request(Method::GET, "/api/v1/log/tail")).await;
    let mut seen = std::collections::BTreeSet::new();
    // A stream of another replica is open as soon as one of its calls arrives.
    while seen.len() < 3 {
        for replica in [first, second, third] {
            replica.call("where", json!({})).await;
        }
        let (name, call) = events.next().await;
        assert_eq!((name.as_str(), &call["tool"]), ("call", &json!("where")));
        seen.insert(call["execution_id"].as_str().unwrap()[32..].to_owned());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["0007", "000c", "7c02"]);
}
