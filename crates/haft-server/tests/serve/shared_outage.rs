//! Replicas while the database is slow, gone and back.

use testkit::postgres::database;
use testkit::{ProxyMode, TcpProxy};

use crate::faults::until;
use crate::served::{SERVE, Served, create_key, haft};
use crate::shared_support::{readiness, replica, tool, until_greets, workspace};
use haft_server::keys::Scope;

/// Calls continue without the database; changes are refused with 503 until it is back.
#[tokio::test]
async fn calls_continue_without_the_database_and_changes_are_refused() {
    let Some(test) = database() else { return };
    let one = replica(&test.url, "one");
    assert_eq!(one.post("/api/v1/tools", &tool("greet", "greet.py")).await.status, 201);
    until_greets(&one, "greet", "Hello!").await;
    assert_eq!(readiness(&one, "shared").await, (200, "ready".into(), None));

    test.stop();
    for _ in 0..50 {
        let call = one.post("/api/v1/tools/greet/call", "{}").await;
        assert_eq!(call.status, 200, "{}", call.text);
    }
    let refused = one.post("/api/v1/tools", &tool("late", "greet.py")).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert_eq!(refused.header("retry-after"), "5");
    let problem = refused.json();
    assert_eq!(problem["code"], "Unavailable", "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("database"), "{problem}");
    assert!(problem["remedy"].as_str().unwrap().contains("shared.url"), "{problem}");
    until("it is degraded", async || {
        let (status, word, why) = readiness(&one, "shared").await;
        assert_eq!(status, 200);
        (word == "degraded" && why?.contains("the database")).then_some(())
    })
    .await;
    assert_eq!(one.get("/healthz").await.status, 200);
    let metrics = one.get("/metrics").await.text;
    assert!(metrics.contains("\nhaft_shared_up 0\n"), "{metrics}");
    assert_eq!(one.post("/api/v1/tools/greet/call", "{}").await.status, 200);

    test.start();
    until("it is ready again", async || {
        (readiness(&one, "shared").await.1 == "ready").then_some(())
    })
    .await;
    assert_eq!(one.post("/api/v1/tools", &tool("late", "greet.py")).await.status, 201);
    assert_eq!(test.sql("select revision from haft.registry"), "2");
}

/// A change whose outcome cannot be found out is reported as such, with its own code.
#[tokio::test]
async fn a_change_that_cannot_be_settled_is_reported_as_unknown() {
    let Some(test) = database() else { return };
    let proxy = TcpProxy::start(test.port());
    let one = replica(&test.url_at(proxy.port()), "one");
    // A lock lets the change reach the database, and keeps its response. Reads pass it.
    let lock = "begin; lock table haft.registry_history in share mode; select pg_sleep(60)";
    let holder = test.background_sql(lock);
    let entry = tool("greet", "greet.py");
    let changing = one.post("/api/v1/tools", &entry);
    let breaking = async {
        until("the change waits", async || {
            // Maintenance waits for the lock too, and so may other databases of this server for theirs.
            let waits = "select count(*) from pg_stat_activity where datname = current_database()
                and wait_event_type = 'Lock' and query like '%update haft.registry %'";
            (test.sql(waits) != "0").then_some(())
        })
        .await;
        proxy.set(ProxyMode::Refuse);
        proxy.cut();
    };
    let (answer, ()) = tokio::join!(changing, breaking);
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert_eq!(answer.json()["code"], "OutcomeUnknown", "{}", answer.text);
    assert!(!answer.header("retry-after").is_empty());
    drop(holder);
    proxy.set(ProxyMode::Pass);
    until("it is ready again", async || {
        (readiness(&one, "shared").await.1 == "ready").then_some(())
    })
    .await;
}

/// A start waits for a database that comes later.
#[tokio::test]
async fn a_start_waits_for_the_database() {
    let Some(test) = database() else { return };
    let workspace = workspace(&test.url);
    let key = create_key(&workspace, "one", Scope::Admin);
    test.stop();
    let starting = tokio::task::spawn_blocking(move || {
        let program = haft(&workspace, &SERVE);
        Served::run(workspace, Some(key), program)
    });
    tokio::task::spawn_blocking(move || test.start()).await.unwrap();
    let one = starting.await.unwrap();
    assert_eq!(one.post("/api/v1/tools", &tool("greet", "greet.py")).await.status, 201);
}
