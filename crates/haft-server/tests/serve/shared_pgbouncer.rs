//! Replicas behind PgBouncer in transaction mode, which keeps no session: `LISTEN` has no effect, and the poll suffices.

use serde_json::json;
use testkit::postgres::{PgBouncer, database};

use crate::faults::until;
use crate::shared_support::{replica, tool, until_greets};

/// Edits, keys and the log work, and another replica sees them.
#[tokio::test]
async fn edits_keys_and_the_log_work_behind_a_pooling_proxy() {
    let Some(test) = database() else { return };
    let Some(proxy) = PgBouncer::start(&test) else { return };
    let url = test.url_at(proxy.port);
    let (one, two) = (replica(&url, "one"), replica(&url, "two"));
    for number in 0..5 {
        let name = format!("greet{number}");
        let added = one.post("/api/v1/tools", &tool(&name, "greet.py")).await;
        assert_eq!(added.status, 201, "{}", added.text);
        until_greets(&two, &name, "Hello!").await;
    }
    let key = json!({"name": "new", "scope": "call"}).to_string();
    let created = one.post("/api/v1/keys", &key).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let key = created.json()["key"].as_str().unwrap().to_owned();
    let with_key = async || {
        let request = two.request_as(&key, reqwest::Method::GET, "/api/v1/tools");
        crate::served::answer(request).await.status
    };
    assert_eq!(with_key().await, 200);
    assert_eq!(one.delete("/api/v1/keys/new").await.status, 204);
    until("the key is revoked", async || (with_key().await == 401).then_some(())).await;
    until("the log is shipped", async || {
        let rows =
            test.sql("select count(distinct execution_id) || '/' || count(*) from haft.call");
        let (ids, all) = rows.split_once('/')?;
        (ids == all && ids.parse::<u32>().ok()? >= 5).then_some(())
    })
    .await;
}
