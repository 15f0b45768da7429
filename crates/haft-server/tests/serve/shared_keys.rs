//! One set of keys for several replicas.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::postgres::database;

use crate::faults::until;
use crate::served::{Answer, SERVE, Served, answer, create_key, haft};
use crate::shared_support::{config, readiness, replica, replica_in, workspace};
use haft_server::keys::Scope;

const TOOLS: &str = "/api/v1/tools";

/// Creates a key at a replica.
async fn create(served: &Served, more: Value) -> String {
    let mut new = json!({"name": "bot", "scope": "call"});
    new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let created = served.post("/api/v1/keys", &new.to_string()).await;
    assert_eq!(created.status, 201, "{}", created.text);
    created.json()["key"].as_str().unwrap().to_owned()
}

/// The answer to a request with this key.
async fn with_key(served: &Served, key: &str) -> Answer {
    answer(served.request_as(key, Method::GET, TOOLS)).await
}

pub(crate) fn signal(served: &Served, name: &str) {
    let pid = served.pid.to_string();
    let status = std::process::Command::new("kill").args([name, &pid]).status().unwrap();
    assert!(status.success());
}

/// Without a wait, because the second replica reads the keys again for one that it does not know.
#[tokio::test]
async fn a_key_works_at_every_replica_at_once_and_ends_at_every_replica() {
    let Some(test) = database() else { return };
    let (one, two) = (replica(&test.url, "one"), replica(&test.url, "two"));
    let key = create(&one, json!({})).await;
    assert_eq!(with_key(&two, &key).await.status, 200);
    assert_eq!(with_key(&one, &key).await.status, 200);
    // The admin key of a replica is one of all.
    let admin = one.admin.clone().unwrap();
    assert_eq!(with_key(&two, &admin).await.status, 200);
    assert_eq!(with_key(&two, "haft_call_wrong").await.status, 401);

    // A stream that the key holds open at the other replica ends with it.
    let stream = two.request_as(&key, Method::GET, "/api/v1/inbox/events").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    assert_eq!(one.delete("/api/v1/keys/bot").await.status, 204);
    assert_eq!(with_key(&one, &key).await.status, 401);
    until("it is refused", async || (with_key(&two, &key).await.status == 401).then_some(())).await;
    tokio::time::timeout(testkit::DEADLINE, stream.text()).await.expect("the stream ends").ok();
    // Nothing is written beside the configuration.
    assert_eq!(one.workspace.read(".haft/keys.json"), None);
}

/// The key is deleted as a replica deletes it, and the notification is lost: the poll, or the read before a request when
/// the keys are older than a second, has to find it, at replicas that know the key and would not ask for it.
#[tokio::test]
async fn a_revoked_key_ends_at_every_replica_without_a_notification() {
    let Some(test) = database() else { return };
    let replicas = ["one", "two", "three"].map(|name| replica(&test.url, name));
    let key = create(&replicas[0], json!({})).await;
    for served in &replicas {
        assert_eq!(with_key(served, &key).await.status, 200);
    }
    test.sql(
        "begin; delete from haft.api_key where name = 'bot'; \
         update haft.topic set seq = seq + 1 where name = 'keys'; commit",
    );
    for served in &replicas {
        until("it is refused", async || (with_key(served, &key).await.status == 401).then_some(()))
            .await;
        assert_eq!(served.get(TOOLS).await.status, 200, "other keys stay");
    }
}

#[tokio::test]
async fn limits_expiry_and_rotation_hold_at_every_replica() {
    let Some(test) = database() else { return };
    let (one, two) = (replica(&test.url, "one"), replica(&test.url, "two"));
    let limits =
        json!({"rate": "60/min", "quota": "10000/day", "expires": "30d", "tools": ["greet"]});
    let old = create(&one, limits.clone()).await;
    let listed = two.get("/api/v1/keys").await.json();
    let bot = listed["keys"].as_array().unwrap().iter().find(|key| key["name"] == "bot").unwrap();
    for field in ["rate", "quota", "tools"] {
        assert_eq!(bot[field], limits[field], "{bot}");
    }
    assert!(bot["expires"].is_string(), "{bot}");

    let rotated = two.post("/api/v1/keys/bot/rotate", r#"{"overlap": "1h"}"#).await;
    assert_eq!(rotated.status, 200, "{}", rotated.text);
    let new = rotated.json()["key"].as_str().unwrap().to_owned();
    for served in [&one, &two] {
        assert_eq!(with_key(served, &new).await.status, 200);
        assert_eq!(with_key(served, &old).await.status, 200);
    }
    let rotated = one.post("/api/v1/keys/bot/rotate", "{}").await;
    assert_eq!(rotated.status, 200, "{}", rotated.text);
    for served in [&one, &two] {
        until("the old ones end", async || {
            let statuses =
                (with_key(served, &new).await.status, with_key(served, &old).await.status);
            (statuses == (401, 401)).then_some(())
        })
        .await;
    }
    let taken = two.post("/api/v1/keys", r#"{"name": "bot"}"#).await;
    assert_eq!((taken.status, taken.json()["code"].clone()), (409, json!("Conflict")));
    assert_eq!(two.delete("/api/v1/keys/bat").await.status, 404);
}

/// A replica that starts after the last revocation is closed too.
#[tokio::test]
async fn a_shared_service_is_never_open() {
    let Some(test) = database() else { return };
    let served = Served::open(workspace(&test.url));
    let refused = served.get(TOOLS).await;
    assert_eq!(refused.status, 401, "{}", refused.text);
    assert_eq!(served.get("/healthz").await.status, 200);
    // A file of keys opens nothing.
    let local = Workspace::with(&[("haft.yaml", "")]);
    let file_key = create_key(&local, "local", Scope::Admin);
    served.workspace.write(".haft/keys.json", local.read(".haft/keys.json").unwrap());
    assert_eq!(with_key(&served, &file_key).await.status, 401);

    let key = create_key(&served.workspace, "me", Scope::Admin);
    assert_eq!(with_key(&served, &key).await.status, 200);
    let revoked = haft(&served.workspace, &["keys", "revoke", "me"]).run();
    assert_eq!(revoked.code, 0, "{}", revoked.stderr);
    until("it is refused", async || (with_key(&served, &key).await.status == 401).then_some(()))
        .await;
    let served = served.restarted();
    assert_eq!(served.get(TOOLS).await.status, 401);
}

#[tokio::test]
async fn the_command_uses_the_shared_keys_and_shows_their_last_use() {
    let Some(test) = database() else { return };
    let (one, two) = (replica(&test.url, "one"), replica(&test.url, "two"));
    let key = create_key(&one.workspace, "bot", Scope::Call);
    assert_eq!(with_key(&two, &key).await.status, 200);
    // The last use is written when a replica ends.
    let workspace = workspace(&test.url);
    drop(two);
    let listed = haft(&workspace, &["--json", "keys", "list"]).run();
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let bot = listed.as_array().unwrap().iter().find(|key| key["name"] == "bot").unwrap();
    assert!(bot["last_used"].is_string(), "{listed}");
    let shown = haft(&workspace, &["keys", "rotate", "bot"]).run();
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert_eq!(with_key(&one, shown.stdout.trim()).await.status, 200);
    drop(one);
}

/// The process does not run while the key is revoked. Its first answer afterwards refuses the key.
#[tokio::test]
async fn a_replica_that_was_stopped_reads_the_keys_before_it_accepts_one() {
    let Some(test) = database() else { return };
    let (one, two) = (replica(&test.url, "one"), replica(&test.url, "two"));
    let key = create(&one, json!({})).await;
    assert_eq!(with_key(&two, &key).await.status, 200);
    signal(&two, "-STOP");
    assert_eq!(one.delete("/api/v1/keys/bot").await.status, 204);
    let request = two.request_as(&key, Method::GET, TOOLS);
    let (answered, ()) = tokio::join!(answer(request), async {
        // The keys must be older than a second for the request.
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        signal(&two, "-CONT");
    });
    assert_eq!(answered.status, 401, "{}", answered.text);
}

#[tokio::test]
async fn without_the_database_known_keys_work_and_changes_are_refused() {
    let Some(test) = database() else { return };
    let one = replica(&test.url, "one");
    let key = create(&one, json!({})).await;
    assert_eq!(with_key(&one, &key).await.status, 200);
    test.stop();
    for _ in 0..20 {
        assert_eq!(with_key(&one, &key).await.status, 200);
    }
    let refused = one.post("/api/v1/keys", r#"{"name": "late"}"#).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert_eq!(refused.header("retry-after"), "5");
    assert!(refused.json()["remedy"].as_str().unwrap().contains("shared.url"), "{}", refused.text);
    assert_eq!(one.delete("/api/v1/keys/bot").await.status, 503);
    // It may be a new one of another replica, so it is not refused for good.
    let unknown = format!("haft_call_{}", "x".repeat(43));
    let refused = with_key(&one, &unknown).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, "5"), "{}", refused.text);
    test.start();
    until("changes work again", async || {
        (one.post("/api/v1/keys", r#"{"name": "late"}"#).await.status == 201).then_some(())
    })
    .await;
    assert_eq!(with_key(&one, &unknown).await.status, 401);
    assert_eq!(test.sql("select name from haft.api_key order by 1"), "bot\nlate\none");
}

#[tokio::test]
async fn keys_that_are_too_old_are_not_accepted() {
    let Some(test) = database() else { return };
    let workspace = workspace(&test.url);
    let shared = json!({"url": test.url, "stale_max": "2s"});
    let yaml = format!("shared: {shared}\nregistry: {{store: shared, dir: tools}}\n");
    workspace.write("haft.yaml", yaml);
    let one = replica_in(workspace, "one");
    assert_eq!(one.get(TOOLS).await.status, 200);
    test.stop();
    let refused = until("the keys are too old", async || {
        let answer = one.get(TOOLS).await;
        (answer.status == 503).then_some(answer)
    })
    .await;
    assert_eq!(refused.header("retry-after"), "5");
    assert!(refused.json()["remedy"].as_str().unwrap().contains("stale_max"), "{}", refused.text);
    let (status, word, _) = readiness(&one, "keys").await;
    assert_eq!((status, word), (503, json!("unready")));
    assert_eq!(one.get("/healthz").await.status, 200);
    test.start();
    until("the keys are read again", async || (one.get(TOOLS).await.status == 200).then_some(()))
        .await;
}

/// A newer Haft may have given the key a limit that this one would not enforce.
#[tokio::test]
async fn a_key_that_cannot_be_read_is_refused_alone() {
    let Some(test) = database() else { return };
    let one = replica(&test.url, "one");
    let (bot, other) =
        (create(&one, json!({})).await, create(&one, json!({"name": "other"})).await);
    test.sql(
        "update haft.api_key set entry = replace(entry, '\"name\"', '\"planet\":\"earth\",\"name\"') \
         where name = 'bot'; update haft.topic set seq = seq + 1 where name = 'keys'",
    );
    until("it is refused", async || (with_key(&one, &bot).await.status == 401).then_some(())).await;
    assert_eq!(with_key(&one, &other).await.status, 200);
    let (_, _, why) = readiness(&one, "keys").await;
    assert!(why.unwrap().contains("`bot`"));
}

#[tokio::test]
async fn settings_that_cannot_hold_are_refused() {
    let workspace = Workspace::with(&[("haft.yaml", "log: {ship: shared, spool_max: 1KiB}\n")]);
    let finished = haft(&workspace, &SERVE).run();
    assert_eq!(finished.code, 2, "{}", finished.stderr);
    insta::assert_snapshot!("refused_ship_without_database", finished.stderr);
    workspace
        .write("haft.yaml", config("postgres://haft@127.0.0.1/haft", "log: {max_bytes: 1GiB}\n"));
    let finished = haft(&workspace, &["check"]).run();
    insta::assert_snapshot!("refused_max_bytes_of_a_spool", finished.stderr);
    workspace.write("haft.yaml", "log: {spool_max: 1GiB}\n");
    let finished = haft(&workspace, &["check"]).run();
    insta::assert_snapshot!("refused_spool_max_of_files", finished.stderr);
}
