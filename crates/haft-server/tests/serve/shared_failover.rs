//! A standby that takes the place of a primary that died.

use serde_json::Value;
use testkit::postgres::{FailoverPair, Replication};

use crate::faults::until;
use crate::served::Served;
use crate::shared_support::{readiness, replica, tool, until_greets};

/// Registers a tool, as soon as the database takes changes.
async fn register(served: &Served, name: &str, script: &str) {
    until("the database takes changes", async || {
        let answer = served.post("/api/v1/tools", &tool(name, script)).await;
        assert!([201, 503].contains(&answer.status), "{}", answer.text);
        (answer.status == 201).then_some(())
    })
    .await;
}

async fn lost_commits(served: &Served) -> bool {
    let metrics = served.get("/metrics").await.text;
    let line = metrics.lines().find(|line| line.starts_with("haft_shared_lost_commits "));
    line.expect("the metric").ends_with(" 1")
}

async fn until_ready(served: &Served) {
    until("it is ready", async || (readiness(served, "shared").await.1 == "ready").then_some(()))
        .await;
}

/// With a synchronous standby nothing that was acknowledged is lost, and changes and calls continue.
#[tokio::test]
async fn a_promotion_of_a_synchronous_standby_loses_nothing() {
    let Some(pair) = FailoverPair::start(Replication::Synchronous) else { return };
    let one = replica(&pair.url(), "one");
    let two = replica(&pair.url(), "two");
    register(&one, "before", "greet.py").await;
    pair.kill_primary();
    until_greets(&one, "before", "Hello!").await;
    pair.promote();
    register(&two, "after", "other.py").await;
    for served in [&one, &two] {
        until_ready(served).await;
        until_greets(served, "before", "Hello!").await;
        until_greets(served, "after", "Bye!").await;
        assert!(!lost_commits(served).await, "{}", served.stderr());
    }
}

/// Without one, a replica that saw a lost revision uses the stored one and reports the loss, even if the counters have
/// passed their old values meanwhile.
#[tokio::test]
async fn a_promotion_of_an_asynchronous_standby_reports_lost_commits() {
    let Some(pair) = FailoverPair::start(Replication::Asynchronous) else { return };
    let one = replica(&pair.url(), "one");
    register(&one, "kept", "greet.py").await;
    let kept = "select count(*) from haft.registry where tools like '%kept%'";
    assert_eq!(pair.sql(kept), "1");
    pair.detach_standby();
    register(&one, "lost", "greet.py").await;
    until_greets(&one, "lost", "Hello!").await;
    pair.kill_primary();
    pair.promote();
    until("the loss is reported", async || lost_commits(&one).await.then_some(())).await;
    let (status, word, why) = readiness(&one, "shared").await;
    assert_eq!((status, word), (200, Value::from("degraded")));
    assert!(why.expect("a reason").contains("lost commits"));
    assert!(one.stderr().contains("the database lost commits"), "{}", one.stderr());
    until("the stored state is used", async || {
        let gone = one.get("/api/v1/tools/lost").await.status == 404;
        (gone && one.get("/api/v1/tools/kept").await.status == 200).then_some(())
    })
    .await;
    register(&one, "next", "greet.py").await;
}
