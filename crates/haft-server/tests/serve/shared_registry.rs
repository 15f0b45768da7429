//! One registry for several replicas.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::postgres::database;

use crate::faults::until;
use crate::served::haft;
use crate::shared_support::{config, replica, replica_in, tool, until_greets, workspace};

/// A tool that is registered at one replica can be called at the other, and an edit arrives there too.
#[tokio::test]
async fn an_edit_at_one_replica_is_used_at_the_other() {
    let Some(test) = database() else { return };
    let (one, two) = (replica(&test.url, "one"), replica(&test.url, "two"));
    let created = one.post("/api/v1/tools", &tool("greet", "greet.py")).await;
    assert_eq!(created.status, 201, "{}", created.text);
    until_greets(&two, "greet", "Hello!").await;

    // The tag of one replica works at the other.
    let read = two.get("/api/v1/tools/greet").await;
    let tag = read.header("etag").to_owned();
    let path = "/api/v1/tools/greet";
    let new = tool("greet", "other.py");
    let replaced = two.send(Method::PUT, path, &[("if-match", &tag)], &new).await;
    assert_eq!(replaced.status, 200, "{}", replaced.text);
    let late = one.send(Method::PUT, path, &[("if-match", &tag)], &new).await;
    assert_eq!(late.status, 412, "{}", late.text);
    until_greets(&one, "greet", "Bye!").await;

    assert_eq!(one.delete(path).await.status, 204);
    until("it is gone", async || {
        (two.post("/api/v1/tools/greet/call", "{}").await.status == 404).then_some(())
    })
    .await;
    let history = "select revision, by from haft.registry_history where revision > 0 order by 1";
    assert_eq!(test.sql(history), "1|replica 1\n2|replica 2\n3|replica 1");
    // Nothing is written into the folder of the scripts.
    assert_eq!(one.workspace.read("tools/tools.json"), None);
}

/// Replicas that write different entries at the same time lose none of them.
#[tokio::test]
async fn writers_at_two_replicas_lose_nothing() {
    let Some(test) = database() else { return };
    let (one, two) = (replica(&test.url, "one"), replica(&test.url, "two"));
    let write = async |served: &crate::served::Served, prefix: &str| {
        for number in 0..8 {
            let name = format!("{prefix}{number}");
            let created = served.post("/api/v1/tools", &tool(&name, "greet.py")).await;
            assert_eq!(created.status, 201, "{}", created.text);
        }
    };
    tokio::join!(write(&one, "a"), write(&two, "b"));
    let stored: Value = serde_json::from_str(&test.sql("select tools from haft.registry")).unwrap();
    let mut names: Vec<&str> =
        stored["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    let expected: Vec<String> =
        ["a", "b"].iter().flat_map(|it| (0..8).map(move |n| format!("{it}{n}"))).collect();
    assert_eq!(names, expected);
    for served in [&one, &two] {
        until_greets(served, "a7", "Hello!").await;
        until_greets(served, "b7", "Hello!").await;
    }
}

/// A replica that starts later has the registry from the start, and one that restarts too.
#[tokio::test]
async fn a_later_replica_starts_with_the_registry() {
    let Some(test) = database() else { return };
    let one = replica(&test.url, "one");
    assert_eq!(one.post("/api/v1/tools", &tool("greet", "greet.py")).await.status, 201);
    let two = replica(&test.url, "two");
    let call = two.post("/api/v1/tools/greet/call", "{}").await;
    assert_eq!(call.status, 200, "{}", call.text);
    let one = one.restarted();
    assert_eq!(one.post("/api/v1/tools/greet/call", "{}").await.status, 200);
}

/// A replica that cannot use an entry keeps the state before and reports why.
#[tokio::test]
async fn a_replica_that_cannot_use_an_edit_keeps_its_state_and_reports_it() {
    let Some(test) = database() else { return };
    let allowed = "policy: {allowed_variables: [ONLY_AT_ONE]}\n";
    let first = workspace(&test.url);
    first.write("haft.yaml", config(&test.url, allowed));
    let key = crate::served::create_key(&first, "one", haft_server::keys::Scope::Admin);
    let program = haft(&first, &crate::served::SERVE).env("ONLY_AT_ONE", "value");
    let one = crate::served::Served::run(first, Some(key), program);
    let two = replica(&test.url, "two");
    assert_eq!(one.post("/api/v1/tools", &tool("greet", "greet.py")).await.status, 201);
    until_greets(&two, "greet", "Hello!").await;
    let server = json!({"url": "http://127.0.0.1:1/${ONLY_AT_ONE}", "start": "lazy"});
    let added = one.put("/api/v1/servers/far", &server.to_string()).await;
    assert_eq!(added.status, 201, "{}", added.text);
    until("it is reported", async || {
        let problem = test.sql("select coalesce(problem, '') from haft.replica where number = 2");
        problem.contains("ONLY_AT_ONE").then_some(())
    })
    .await;
    assert_eq!(two.post("/api/v1/tools/greet/call", "{}").await.status, 200);
}

/// A replica takes its files from the configuration and its registry from the database; both are there.
#[tokio::test]
async fn entries_of_files_stay_beside_the_shared_registry() {
    let Some(test) = database() else { return };
    let own = workspace(&test.url);
    let more = "local_tools:\n- {name: own, description: Own., type: local, input_schema: {type: object}, \
                config: {script_path: tools/greet.py}}\n";
    own.write("haft.yaml", config(&test.url, more));
    let one = replica_in(own, "one");
    until_greets(&one, "own", "Hello!").await;
    let refused = one.post("/api/v1/tools", &tool("own", "greet.py")).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert_eq!(one.post("/api/v1/tools", &tool("greet", "greet.py")).await.status, 201);
}

/// A replica reads the registry again before it refuses an unknown tool.
#[tokio::test]
async fn a_new_tool_is_found_at_another_replica_at_once() {
    let Some(test) = database() else { return };
    let (one, two) = (replica(&test.url, "one"), replica(&test.url, "two"));
    for number in 0..8 {
        let name = format!("greet_{number}");
        let added = one.post("/api/v1/tools", &tool(&name, "greet.py")).await;
        assert_eq!(added.status, 201, "{}", added.text);
        let path = format!("/api/v1/tools/{name}");
        let found = if number % 2 == 0 {
            two.post(&format!("{path}/call"), "{}").await
        } else {
            two.get(&path).await
        };
        assert_eq!(found.status, 200, "{}", found.text);
    }
    let unknown = two.post("/api/v1/tools/nonsense/call", "{}").await;
    assert_eq!(unknown.status, 404, "{}", unknown.text);
}
