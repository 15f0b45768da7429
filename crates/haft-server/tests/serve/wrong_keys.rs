//! Wrong keys: how many an address may present, and what they may cause.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::json;
use testkit::Workspace;

use crate::faults::until;
use crate::served::{Served, answer, toolbox};
use crate::setup;

const WRONG: &str = "haft_call_0000000000000000000000000000000000000000000";

/// Wrong keys are counted before the key file is read again: an address that presented too many of them causes
/// no further reads. A key that is made meanwhile works as soon as the server reads the file by itself, and
/// known keys always work.
#[tokio::test]
async fn wrong_keys_are_counted_before_the_file_is_read() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let known = service.key("known", Scope::Admin).await;
    let client = crate::client().build().unwrap();
    let status = async |key: &str| {
        let request = client.get(service.url("/tools")).header("x-api-key", key);
        request.send().await.unwrap().status().as_u16()
    };
    until("the address presented too many", async || (status(WRONG).await == 429).then_some(()))
        .await;
    let mut made = 0;
    let unread = until("a new key is not looked up for this address", async || {
        made += 1;
        let (key, _) = service.keys.create(&format!("new{made}"), Scope::Call).unwrap();
        (status(key.expose()).await == 429).then_some(key)
    })
    .await;
    assert_eq!(status(&known).await, 200);
    until("the server reads the file", async || {
        (status(unread.expose()).await == 200).then_some(())
    })
    .await;
}

/// A new key does not use up the attempts of its address.
#[tokio::test]
async fn new_keys_are_not_counted_as_wrong_ones() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    service.key("first", Scope::Admin).await;
    let client = crate::client().build().unwrap();
    for name in 0..30 {
        let (key, _) = service.keys.create(&format!("key{name}"), Scope::Call).unwrap();
        let request = client.get(service.url("/tools")).header("x-api-key", key.expose());
        assert_eq!(request.send().await.unwrap().status().as_u16(), 200, "{name}");
    }
}

/// `/readyz` shows its reasons only to a caller with a key. Other callers read the status, also with a wrong key.
#[tokio::test]
async fn readiness_without_a_key_is_the_status_alone() {
    let workspace = toolbox();
    workspace.write(
        "haft.yaml",
        "registry: {dir: tools}\nservers: {gone: {command: \"false\", on_connect_failure: skip}}\n",
    );
    let (served, keys) =
        Served::with_keys(workspace, &[("me", Scope::Admin), ("caller", Scope::Call)]);
    until("the server is down", async || {
        (served.get("/readyz").await.json()["status"] == "degraded").then_some(())
    })
    .await;
    let client = crate::client().build().unwrap();
    let bare = || client.request(Method::GET, format!("{}/readyz", served.url));
    for request in [bare(), bare().header("x-api-key", WRONG), bare().header("x-api-key", "x")] {
        let ready = answer(request).await;
        assert_eq!((ready.status, ready.json()), (200, json!({"status": "degraded"})));
    }
    let ready = answer(bare().header("x-api-key", &keys[1])).await.json();
    assert_eq!(ready["reasons"][0]["what"], "server:gone", "{ready}");
}
