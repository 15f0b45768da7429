//! A healthy server and its client.

use std::sync::{Arc, Mutex};

use haft_mcp::{CallOptions, Era, ProgressFn};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Serve, connect, eventually};

const ERAS: [&str; 2] = ["legacy", "modern"];

/// Proves S3-FR-002 and S3-SC-007.
pub async fn the_handshake_comes_first_and_calls_follow(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    assert_eq!(connected.client.identity().era, Era::Legacy);
    assert_eq!(connected.client.identity().protocol_version, "2025-11-25");
    assert_eq!(connected.client.identity().name.as_deref(), Some("mcp-fixture"));
    connected.client.list_tools().await.unwrap();
    connected.call("text", json!({})).await.unwrap();
    connected.client.close().await;
    let trace = connected.trace();
    let trace: Vec<&str> = trace.iter().map(String::as_str).collect();
    // Servers that answer in the exchange are probed for the modern era first.
    let trace = trace.strip_prefix(&["server/discover"]).unwrap_or(&trace);
    let expected = ["initialize", "notifications/initialized", "tools/list", "tools/call"];
    assert_eq!(trace, expected);
    assert_eq!(*connected.received.endings.lock().unwrap(), ["the connection was closed by Haft"]);

    let connected = connect(serve, "modern", json!({"capabilities": {"tools": {}}})).await;
    assert_eq!(connected.client.identity().era, Era::Modern);
    assert_eq!(connected.client.identity().protocol_version, "2026-07-28");
    connected.call("text", json!({})).await.unwrap();
    assert_eq!(connected.trace(), ["server/discover", "tools/call"]);
}

/// Proves S3-SC-007.
pub async fn lists_are_read_page_by_page(serve: Serve) {
    for (era, pages) in ERAS.iter().flat_map(|era| [(era, "normal"), (era, "empty_cursor")]) {
        let scenario = json!({"tools": 7, "page_size": 3, "pages": pages});
        let connected = connect(serve, era, scenario).await;
        let listed = connected.client.list_tools().await.unwrap();
        let names: Vec<&str> = listed.items.iter().map(|tool| tool.name.as_str()).collect();
        let expected: Vec<String> = (1..=7).map(|n| format!("tool_{n:04}")).collect();
        assert_eq!(names, expected, "{era}, {pages}");
        assert_eq!(listed.gaps, [""; 0]);
        assert_eq!(connected.received("tools/list").len(), 3);
    }
}

/// Proves S3-SC-007.
pub async fn a_call_returns_the_output_of_the_tool(serve: Serve) {
    for era in ERAS {
        let connected = connect(serve, era, json!({})).await;
        let args = json!({"text": "grüße, 你好 \u{1f600}", "n": [1, null, {"a": "\n\"\\"}]});
        assert_eq!(connected.structured("echo", args.clone()).await, args);
        let failed = connected.call("fail", json!({})).await.unwrap();
        assert!(failed.get().contains(r#""isError":true"#));
        let error = connected.call("rpc_error", json!({})).await.unwrap_err();
        assert_eq!(error.to_string(), "the tool objects (code -32050)");
    }
}

/// Proves S3-SC-007.
pub async fn numbers_key_order_and_unknown_fields_arrive_untouched(serve: Serve) {
    for era in ERAS {
        let connected = connect(serve, era, json!({})).await;
        let result = connected.call("big_numbers", json!({})).await.unwrap();
        assert_eq!(
            result.get(),
            r#"{"content":[{"type":"text","text":"numbers","x-unknown":{"b":1,"a":2}}],"structuredContent":{"b":12345678901234567890123,"a":0.1000000000000000055511151231257827},"resultType":"complete","x-unknown":true}"#
        );
    }
}

/// Proves S3-SC-007.
pub async fn large_messages_pass_both_ways(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    let result = connected.call("big", json!({"bytes": 4 * 1024 * 1024})).await.unwrap();
    assert!(result.get().len() > 4 * 1024 * 1024);
    // Both directions are full at once.
    let args = json!({"text": "x".repeat(1024 * 1024)});
    let (first, second) = tokio::join!(
        connected.structured("echo", args.clone()),
        connected.structured("echo", args.clone())
    );
    assert!(first == args && second == args);
}

/// Proves S3-SC-007.
pub async fn progress_arrives_in_order(serve: Serve) {
    for era in ERAS {
        let connected = connect(serve, era, json!({})).await;
        let steps = Arc::new(Mutex::new(Vec::new()));
        let progress: ProgressFn = {
            let steps = Arc::clone(&steps);
            Arc::new(move |params: &RawValue| {
                let params: Value = serde_json::from_str(params.get()).unwrap();
                steps.lock().unwrap().push(params["progress"].as_u64().unwrap());
            })
        };
        let args: Box<RawValue> = serde_json::from_str(r#"{"steps":20}"#).unwrap();
        let options = CallOptions { progress: Some(progress), ..CallOptions::default() };
        connected.client.call_tool("progress", &args, options).await.unwrap();
        assert_eq!(*steps.lock().unwrap(), (1..=20).collect::<Vec<_>>(), "{era}");
    }
}

/// Proves S3-SC-007.
pub async fn notifications_arrive_in_order(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    connected.call("log_all_levels", json!({})).await.unwrap();
    let received = connected.received.of("notifications/message");
    let levels: Vec<&str> = received.iter().map(|it| it["level"].as_str().unwrap()).collect();
    let all = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    assert_eq!(levels, all);
}

/// Proves S3-US7-T (over WebSocket) and S3-SC-007.
pub async fn a_change_of_the_tools_is_received(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    connected.call("add_tool", json!({"name": "new"})).await.unwrap();
    eventually("the change is received", || {
        let received = connected.received.of("notifications/tools/list_changed");
        (!received.is_empty()).then_some(())
    })
    .await;
    let listed = connected.client.list_tools().await.unwrap();
    assert!(listed.items.iter().any(|tool| tool.name == "new"));
}

/// Proves S3-SC-007.
pub async fn a_request_of_the_server_is_answered(serve: Serve) {
    for era in ERAS {
        let connected = connect(serve, era, json!({})).await;
        let answered = connected.structured("sample", json!({})).await;
        assert_eq!(answered["result"]["content"]["text"], "hello", "{era}: {answered}");
    }
    let connected = connect(serve, "legacy", json!({})).await;
    let answered = connected.structured("roots", json!({})).await;
    assert_eq!(answered, json!({"error": {"code": -32601, "message": "no roots/list"}}));
}

/// Proves S3-SC-007.
pub async fn a_ping_of_the_server_is_answered(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    assert_eq!(connected.structured("ping_client", json!({})).await, json!({"result": {}}));
    connected.client.ping().await.unwrap();
}

/// Proves S3-Q-03: five calls that never end, and a sixth that sees them.
pub async fn five_calls_are_in_flight_at_once(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    let hanging = || connected.call("hang", json!({}));
    let seen = async {
        loop {
            let stats = connected.structured("stats", json!({})).await;
            if stats["in_flight_max"] == 6 {
                return;
            }
        }
    };
    tokio::select! {
        answer = async { tokio::join!(hanging(), hanging(), hanging(), hanging(), hanging()) } => {
            panic!("answered: {answer:?}");
        }
        () = seen => {}
        () = tokio::time::sleep(testkit::DEADLINE) => panic!("never were five in flight"),
    }
}

/// Proves S3-Q-03.
pub async fn each_of_many_calls_gets_its_own_answer(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    let calls = (0..50).map(|n| {
        let connected = &connected;
        async move { connected.structured("echo", json!({"n": n})).await }
    });
    let answers = futures_util::future::join_all(calls).await;
    let expected: Vec<Value> = (0..50).map(|n| json!({"n": n})).collect();
    assert_eq!(answers, expected);
}
