//! Clients' descriptions of themselves, and the part of them that is kept.

use serde_json::{Value, json};

use super::{Gateway, initialize};
use crate::support::{server, workspace};

/// Sessions of clients with capabilities of megabytes cost next to nothing: only what is in use is kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_keeps_only_the_capabilities_in_use() {
    let files = server(&json!({"tools": ["elicit"]}));
    let gateway = Gateway::open(workspace(&json!({"files": files})));
    // 1.8 MB of long strings, within the budget of values: it is accepted, and dropped.
    let texts: Value = (0..1_800).map(|n| (format!("k{n}"), json!("x".repeat(1_000)))).collect();
    let capable = json!({"elicitation": {}, "experimental": texts, "sampling": {"x": texts}});
    // As many sessions as are measured below: the allocator then has the memory that one of them takes meanwhile.
    for _ in 0..10 {
        gateway.session(&capable).await;
    }
    let before = super::crowds::resident_kib(gateway.served.pid);
    let mut last = None;
    for _ in 0..10 {
        last = Some(gateway.session(&capable).await);
    }
    let after = super::crowds::resident_kib(gateway.served.pid);
    assert!(after < before + 24 * 1024, "{before} KiB, then {after} KiB");
    // What is in use works.
    let session = last.unwrap();
    session.ask("tools/list", &json!({})).await;
    let call = json!({"name": "elicit", "arguments": {"message": "please"}});
    let mut course = session.course(2, "tools/call", &call).await;
    assert_eq!(course.message().await.unwrap()["method"], "elicitation/create");

    // 1.8 MB of nested values: refused by the budget.
    let mut nested = json!({});
    for _ in 0..50 {
        nested = json!({ "a": nested });
    }
    let nested = json!({"experimental": vec![nested; 5_000]});
    let refused = gateway.post(&[], &initialize(&nested)).await;
    assert_eq!(refused.status, 413, "{}", refused.text);
    assert!(refused.text.contains("more than 100000 values and keys"), "{}", refused.text);
}
