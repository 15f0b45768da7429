//! Many clients at once, and clients that come without end.

use futures_util::future::join_all;
use serde_json::json;

use super::{Gateway, SESSION, initialize, modern_headers, modern_request, request};
use crate::support::{server, workspace};

/// A thousand clients that all use the id 1 get their own answers, in either era.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_clients_with_the_same_id_get_their_own_answers() {
    let mut files = server(&json!({"tools": ["echo"]}));
    files["default_tool_config"] = json!({"max_instances": 200});
    let workspace = workspace(&json!({"files": files}));
    let gateway = Gateway::open(workspace);
    gateway.modern(1, "tools/list", json!({})).await.answer().await;
    let legacy = async |number: usize| {
        let session = gateway.session(&json!({})).await;
        let call = json!({"name": "echo", "arguments": {"message": format!("legacy {number}")}});
        let answer = session.course(1, "tools/call", &call).await.answer().await;
        assert!(answer["result"].to_string().contains(&format!("legacy {number}\"")), "{answer}");
    };
    let modern = async |number: usize| {
        let call = json!({"name": "echo", "arguments": {"message": format!("modern {number}")}});
        let message = modern_request(1, "tools/call", call, &json!({}));
        let course = gateway.course(&modern_headers(&message).as_pairs(), &message).await;
        let mut course = course;
        let answer = course.answer().await;
        assert!(answer["result"].to_string().contains(&format!("modern {number}\"")), "{answer}");
    };
    for round in 0..5 {
        let legacy = (0..100).map(|number| legacy(round * 100 + number));
        let modern = (0..100).map(|number| modern(round * 100 + number));
        tokio::join!(join_all(legacy), join_all(modern));
    }
    assert_eq!(gateway.served.log().len(), 1000);
}

/// Sessions without end: old ones make room, those in use stay, and memory does not grow.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_sessions_is_held_within_bounds() {
    let gateway = Gateway::open(workspace(&json!({"files": server(&json!({"tools": ["hang"]}))})));
    let kept = gateway.session(&json!({})).await;
    kept.ask("tools/list", &json!({})).await;
    let hang = json!({"name": "hang", "arguments": {}});
    let hanging = kept.course(1, "tools/call", &hang).await;
    let first = gateway.session(&json!({})).await;
    let hello = initialize(&json!({})).to_string();
    let open = async |count: usize| {
        let opening = (0..count).map(async |_| {
            let opened = crate::served::answer(gateway.request(&[], &hello)).await;
            assert_eq!(opened.status, 200, "{}", opened.text);
            assert_eq!(opened.header(SESSION).len(), 32);
        });
        join_all(opening).await;
    };
    for _ in 0..40 {
        open(50).await;
    }
    let memory = resident_kib(gateway.served.pid);
    for _ in 0..80 {
        open(50).await;
    }
    let later = resident_kib(gateway.served.pid);
    assert!(later < memory + 8 * 1024, "{memory} KiB, then {later} KiB");
    // The oldest idle one was removed; the one with a call in flight stayed.
    assert_eq!(first.post(&request(1, "ping", &json!({}))).await.status, 404);
    assert_eq!(kept.post(&request(2, "ping", &json!({}))).await.status, 200);
    drop(hanging);
}

pub(super) fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}
