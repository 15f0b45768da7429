//! Three real replicas on one PostgreSQL: state of one of them, reached through the others or through a balancer.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::postgres::{TestDatabase, database};
use testkit::{Balancer, Workspace};

use crate::client;
use crate::faults::{call, until};
use crate::served::{SERVE, Served, answer, create_key, haft};
use crate::shared_support::{config, tool};

/// Replicas with the same keys.
struct Cluster {
    replicas: Vec<Served>,
    key: String,
    _folder: Workspace,
}

fn workspace(test: &TestDatabase, keys_file: &str) -> Workspace {
    let human = "builtin: {enabled: false, request_human_input: {}}";
    let more = format!("{human}\napi: {}\n", json!({"keys_file": keys_file}));
    Workspace::with(&[
        ("haft.yaml", &config(&test.url, &more)),
        ("tools/greet.py", "def run(args):\n    return {'greeting': 'Hello!'}\n"),
    ])
}

impl Cluster {
    /// Starts three and waits until they know each other.
    async fn start(test: &TestDatabase) -> Self {
        let folder = Workspace::new();
        let keys_file = folder.path().join("keys.json").to_str().unwrap().to_owned();
        let workspaces = [(); 3].map(|()| workspace(test, &keys_file));
        let key = create_key(&workspaces[0], "admin", Scope::Admin);
        let replicas: Vec<Served> = workspaces
            .into_iter()
            .map(|workspace| {
                let program = haft(&workspace, &SERVE).env("HAFT__API__DRAIN_DELAY", "0s");
                Served::run(workspace, Some(key.clone()), program)
            })
            .collect();
        for replica in &replicas {
            until("three replicas", async || {
                let list = replica.get("/api/v1/replicas").await.json();
                (list["replicas"].as_array().unwrap().len() == 3).then_some(())
            })
            .await;
        }
        Self { replicas, key, _folder: folder }
    }
}

/// The only open question, seen at a replica.
async fn question(at: &Served) -> Value {
    until("a question", async || at.get("/api/v1/inbox").await.json()["items"].get(0).cloned())
        .await
}

#[tokio::test]
async fn calls_questions_and_entries_are_reached_through_every_replica() {
    let Some(test) = database() else { return };
    let cluster = Cluster::start(&test).await;
    let [first, second, third] = &cluster.replicas[..] else { panic!() };
    let list = second.get("/api/v1/replicas").await.json();
    let numbers: Vec<u64> = list["replicas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["number"].as_u64().unwrap())
        .collect();
    assert_eq!((numbers, &list["own"]), (vec![1, 2, 3], &json!(2)));
    assert_eq!(list["replicas"][0]["address"], first.url);

    let asked = json!({"question": "Which?"});
    let answering = async {
        let item = question(second).await;
        assert!(item["id"].as_str().unwrap().ends_with("0001"), "{item}");
        let calls = third.get("/api/v1/calls").await.json();
        assert_eq!(calls["calls"][0]["execution_id"], item["execution_id"], "{calls}");
        let path = format!("/api/v1/inbox/{}", item["id"].as_str().unwrap());
        let answered = third.post(&path, r#"{"answer": "blue"}"#).await;
        assert_eq!(answered.status, 200, "{}", answered.text);
    };
    let (answered, ()) = tokio::join!(call(first, "request_human_input", &asked), answering);
    let envelope = answered.json();
    assert_eq!(envelope["data"]["answer"], "blue");
    let entry = format!("/api/v1/log/{}", envelope["execution_id"].as_str().unwrap());
    for replica in &cluster.replicas {
        let found = replica.get(&entry).await;
        assert_eq!((found.status, &found.json()["execution_id"]), (200, &envelope["execution_id"]));
    }
}

#[tokio::test]
async fn the_state_of_a_killed_replica_is_gone_and_the_others_go_on() {
    let Some(test) = database() else { return };
    let mut cluster = Cluster::start(&test).await;
    let killed = cluster.replicas.remove(0);
    let [second, third] = &cluster.replicas[..] else { panic!() };
    let asked = json!({"question": "Which?"});
    let request = killed.request(Method::POST, "/api/v1/tools/request_human_input/call");
    let asking = request
        .header("content-type", "application/json")
        .body(json!({"arguments": asked}).to_string())
        .send();
    let killing = async {
        let item = question(second).await;
        drop(killed.kill());
        let path = format!("/api/v1/inbox/{}", item["id"].as_str().unwrap());
        let gone = third.post(&path, r#"{"answer": "blue"}"#).await;
        assert_eq!(gone.status, 404, "{}", gone.text);
        let list = second.get("/api/v1/inbox").await.json();
        assert_eq!(list, json!({"items": [], "replicas_missing": [1]}));
    };
    let (broken, ()) = tokio::join!(asking, killing);
    assert!(broken.is_err(), "the call went with its replica");
    until("it leaves the table", async || {
        (second.get("/api/v1/inbox").await.json() == json!({"items": []})).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_client_behind_a_balancer_sees_its_own_changes() {
    let Some(test) = database() else { return };
    let cluster = Cluster::start(&test).await;
    let urls = cluster.replicas.iter().map(|replica| replica.url.clone()).collect();
    let balancer = Balancer::start(urls).await;
    let client = client().pool_max_idle_per_host(0).build().unwrap();
    let send = async |method: Method, path: &str, revision: Option<&str>, body: String| {
        let request = client.request(method, format!("{}{path}", balancer.url));
        let request = request.header("x-api-key", &cluster.key).body(body);
        let request = request.header("content-type", "application/json");
        answer(revision.into_iter().fold(request, |it, text| it.header("haft-revision", text)))
            .await
    };
    for n in 0..9 {
        let name = format!("greet{n}");
        let made = send(Method::POST, "/api/v1/tools", None, tool(&name, "greet.py")).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let revision = made.header("haft-revision").to_owned();
        assert_eq!(made.json()["revision"], revision);
        let path = format!("/api/v1/tools/{name}/call");
        let called = send(Method::POST, &path, Some(&revision), "{}".to_owned()).await;
        assert_eq!(called.status, 200, "{}", called.text);
        assert!(!called.header("haft-revision").is_empty());
    }
    // A revision that never comes does not keep a request from being answered.
    let called = send(Method::POST, "/api/v1/tools/greet0/call", Some("9999-0"), "{}".to_owned());
    assert_eq!(called.await.status, 200);
}
