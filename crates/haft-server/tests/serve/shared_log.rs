//! One execution log for several replicas.

use serde_json::{Value, json};
use testkit::postgres::{TestDatabase, database};

use crate::faults::until;
use crate::served::{SERVE, Served, haft};
use crate::shared_support::{config, replica, replica_in, tool, until_greets, workspace};

/// Two replicas with the tool `greet`.
async fn two_replicas(test: &TestDatabase) -> (Served, Served) {
    let (one, two) = (replica(&test.url, "one"), replica(&test.url, "two"));
    assert_eq!(one.post("/api/v1/tools", &tool("greet", "greet.py")).await.status, 201);
    until_greets(&two, "greet", "Hello!").await;
    until("they know each other", async || {
        let known = one.get("/api/v1/replicas").await.json();
        (known["replicas"].as_array()?.len() == 2).then_some(())
    })
    .await;
    (one, two)
}

/// Calls a tool and returns the id of the call.
async fn call(served: &Served, tool: &str, arguments: Value) -> String {
    let body = json!({"arguments": arguments}).to_string();
    let answer = served.post(&format!("/api/v1/tools/{tool}/call"), &body).await;
    answer.json()["execution_id"].as_str().unwrap_or_else(|| panic!("{}", answer.text)).to_owned()
}

/// The ids that a query at a replica finds.
async fn ids(served: &Served, query: &str) -> Vec<String> {
    let answer = served.get(&format!("/api/v1/log{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let document = answer.json();
    assert_eq!(document["unreadable"], json!([]), "{document}");
    let calls = document["calls"].as_array().unwrap().iter();
    calls.map(|call| call["execution_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn calls_of_every_replica_are_found_at_every_replica() {
    let Some(test) = database() else { return };
    let (one, two) = two_replicas(&test).await;
    let first = call(&one, "greet", json!({"note": "Zürich \"x\""})).await;
    // A caller finds its own call at once.
    assert!(ids(&one, "").await.contains(&first));
    let second = call(&two, "greet", json!({"note": "quokka"})).await;
    let failed = call(&two, "missing", json!({})).await;
    let own = [&first, &second, &failed];
    for served in [&one, &two] {
        let found = until("all are there", async || {
            let found = ids(served, "?limit=1000").await;
            own.iter().all(|id| found.contains(id)).then_some(found)
        })
        .await;
        assert!(found.ends_with(&[first.clone(), second.clone(), failed.clone()]), "{found:?}");
        assert_eq!(ids(served, "?limit=2").await, [second.clone(), failed.clone()]);
        let newest = ids(served, "?limit=2&newest_first=true").await;
        assert_eq!(newest, [failed.clone(), second.clone()]);
        assert_eq!(ids(served, "?tool=missing").await, [failed.as_str()]);
        assert_eq!(ids(served, "?tool=missing&code=UnknownTool").await, [failed.as_str()]);
        assert_eq!(ids(served, "?tool=missing&status=error").await, [failed.as_str()]);
        assert_eq!(ids(served, "?text=QUOKKA").await, [second.as_str()]);
        assert_eq!(ids(served, "?text=z%C3%BCrich").await, [first.as_str()]);
        assert_eq!(ids(served, "?caller=key:none").await, [""; 0]);
        assert_eq!(ids(served, "?until=2026-01-01").await, [""; 0]);
        let entry = served.get(&format!("/api/v1/log/{first}")).await;
        assert_eq!(entry.json()["input"]["note"], "Zürich \"x\"", "{}", entry.text);
        assert_eq!(served.get(&format!("/api/v1/log/{failed}/why")).await.status, 200);
        assert_eq!(served.get("/api/v1/log/unknown").await.status, 404);
        let unknown = "0198c2f4-0000-7000-8000-000000000000";
        assert_eq!(served.get(&format!("/api/v1/log/{unknown}")).await.status, 404);
    }
    // The line is stored as it is in the file.
    let stored = test.sql(&format!("select entry from haft.call where execution_id = '{second}'"));
    assert!(two.log().contains(&serde_json::from_str(&stored).unwrap()), "{stored}");

    let listed = haft(&one.workspace, &["--json", "log", "--limit", "2"]).run();
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(listed.stdout.contains(&second) && listed.stdout.contains(&failed));
    assert!(!listed.stdout.contains(&first));
    let shown = haft(&one.workspace, &["log", "show", &second]).run();
    assert!(shown.stdout.contains("quokka"), "{}", shown.stderr);
    let why = haft(&one.workspace, &["--json", "why", &second]).run();
    assert_eq!(why.code, 0, "{}", why.stderr);
    let why: Value = serde_json::from_str(&why.stdout).unwrap();
    assert_eq!((&why["execution_id"], &why["tool"]), (&json!(second), &json!("greet")));
    let of_files = haft(&one.workspace, &["why", &second, "--dir", "logs"]).run();
    assert_eq!(of_files.code, 1, "{}", of_files.stdout);
    let of_files = haft(&one.workspace, &["--json", "log", "--dir", "logs"]).run();
    assert!(of_files.stdout.contains(&first) && !of_files.stdout.contains(&second));
}

/// Requests that reached another replica are examples too.
#[tokio::test]
async fn examples_are_learned_from_the_calls_of_all_replicas() {
    let Some(test) = database() else { return };
    let keeping = |name| {
        let workspace = workspace(&test.url);
        workspace.write("haft.yaml", config(&test.url, "log: {requests: true}\n"));
        replica_in(workspace, name)
    };
    let (one, two) = (keeping("one"), keeping("two"));
    assert_eq!(one.post("/api/v1/tools", &tool("greet", "greet.py")).await.status, 201);
    let other = json!({
        "name": "weather", "description": "The weather of a place.", "type": "local",
        "input_schema": {"type": "object"}, "config": {"script_path": "other.py"},
    });
    assert_eq!(one.post("/api/v1/tools", &other.to_string()).await.status, 201);
    until_greets(&two, "greet", "Hello!").await;
    let body = json!({"arguments": {}, "request": "the weather of a place"}).to_string();
    let answer = two.post("/api/v1/tools/greet/call", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    until("it is shipped", async || {
        let request = "select count(*) from haft.call where entry like '%weather of a place%'";
        (test.sql(request) == "1").then_some(())
    })
    .await;
    let learned = haft(&one.workspace, &["--json", "learn"]).run();
    assert_eq!(learned.code, 0, "{}", learned.stderr);
    let proposals: Value = serde_json::from_str(&learned.stdout).unwrap();
    assert_eq!(proposals[0]["tool"], "greet", "{proposals}");
    assert_eq!(proposals[0]["examples"][0]["request"], "the weather of a place", "{proposals}");
}

/// The database is away, and a replica is killed before it ships what it has.
#[tokio::test]
async fn every_entry_is_stored_once_through_an_outage_and_a_kill() {
    let Some(test) = database() else { return };
    let (one, two) = two_replicas(&test).await;
    let mut made = Vec::new();
    for _ in 0..20 {
        made.push(call(&one, "greet", json!({})).await);
        made.push(call(&two, "greet", json!({})).await);
    }
    test.stop();
    for _ in 0..20 {
        made.push(call(&one, "greet", json!({})).await);
        made.push(call(&two, "greet", json!({})).await);
    }
    // The calls of this replica are found, with a note about the others.
    let listed = one.get("/api/v1/log?limit=1000").await.json();
    let missing = listed["unreadable"][0].as_str().unwrap();
    assert!(missing.contains("other replicas"), "{missing}");
    let last = made.iter().rev().nth(1).unwrap();
    assert_eq!(one.get(&format!("/api/v1/log/{last}")).await.status, 200);
    let of_other = format!("/api/v1/log/{}", made.last().unwrap());
    assert_eq!(one.get(&of_other).await.status, 200);

    let admin = two.admin.clone();
    let workspace = two.kill();
    assert_eq!(one.get(&of_other).await.status, 503);
    test.start();
    let program = haft(&workspace, &SERVE);
    let two = Served::run(workspace, admin, program);
    made.push(call(&two, "greet", json!({})).await);
    let expected = one.log().len() + two.log().len();
    until("all are shipped", async || {
        (test.sql("select count(*) from haft.call") == expected.to_string()).then_some(())
    })
    .await;
    let found = ids(&one, "?limit=1000").await;
    assert!(made.iter().all(|id| found.contains(id)));
    let twice = "select count(*) - count(distinct execution_id) from haft.call";
    assert_eq!(test.sql(twice), "0");
}

/// The last entries are shipped before the process ends.
#[tokio::test]
async fn a_replica_that_ends_leaves_nothing_behind() {
    let Some(test) = database() else { return };
    let (one, two) = two_replicas(&test).await;
    let id = call(&two, "greet", json!({})).await;
    assert_eq!(two.end().code, 0);
    assert!(ids(&one, "?limit=1000").await.contains(&id));
}

/// With the database away, calls are recorded on the disk up to the limit, and then refused.
#[tokio::test]
async fn a_full_spool_refuses_calls_until_it_is_shipped() {
    let Some(test) = database() else { return };
    let workspace = workspace(&test.url);
    workspace.write("haft.yaml", config(&test.url, "log: {spool_max: 1MiB}\n"));
    let one = replica_in(workspace, "one");
    assert_eq!(one.post("/api/v1/tools", &tool("greet", "greet.py")).await.status, 201);
    until_greets(&one, "greet", "Hello!").await;
    test.stop();
    let body = json!({"arguments": {"text": "x".repeat(50_000)}}).to_string();
    let refused = until("the spool is full", async || {
        let answer = one.post("/api/v1/tools/greet/call", &body).await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    assert!(refused.text.contains("log.spool_max"), "{}", refused.text);
    let before = one.log().len();
    test.start();
    until("calls are taken again", async || {
        (one.post("/api/v1/tools/greet/call", "{}").await.status == 200).then_some(())
    })
    .await;
    until("all are shipped", async || {
        let count: usize = test.sql("select count(*) from haft.call").parse().unwrap();
        (count > before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn expired_days_are_dropped_and_stray_rows_are_moved() {
    let Some(test) = database() else { return };
    let one = replica(&test.url, "one");
    let insert = |days: i32| {
        test.sql(&format!(
            "insert into haft.call (execution_id, replica, tool, status, entry) select \
             haft.first_id_at(now() + interval '{days} days'), 0, 'day {days}', 'success', '{{}}'"
        ));
    };
    for days in [-40, -20, -1, 0, 5] {
        insert(days);
    }
    let tools = "select tool from haft.call order by execution_id";
    assert_eq!(test.sql(tools), "day -40\nday -20\nday -1\nday 0\nday 5");
    assert_eq!(test.sql("select haft.tidy(30)"), "t");
    assert_eq!(test.sql(tools), "day -20\nday -1\nday 0\nday 5");
    // The day of a partition is over: the table as a whole goes.
    let partitions = "select count(*) from pg_inherits where inhparent = 'haft.call'::regclass";
    assert_eq!(test.sql(partitions), "5");
    assert_eq!(test.sql("select haft.tidy(0)"), "t");
    assert_eq!(test.sql(partitions), "4");
    assert_eq!(test.sql(tools), "day 0\nday 5");
    drop(one);
}
