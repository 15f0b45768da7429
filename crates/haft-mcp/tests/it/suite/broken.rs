//! A client's behaviour with a faulty server.

use std::time::Duration;

use haft_mcp::{Failure, RequestError, RequestOptions, Sent};
use serde_json::json;

use super::{Connected, Serve, connect, eventually};

/// Proves S3-SC-007: dropping a call notifies the server.
pub async fn a_dropped_call_notifies_the_server(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    let id = tokio::select! {
        answer = connected.call("hang", json!({})) => panic!("answered: {answer:?}"),
        id = eventually("the call arrives", || {
            Some(connected.received("tools/call").first()?["id"].clone())
        }) => id,
    };
    let cancelled = eventually("the server is notified", || {
        connected.received("notifications/cancelled").pop()
    })
    .await;
    assert_eq!(cancelled["params"]["requestId"], id);
    assert_works(&connected).await;
}

/// Proves S3-SC-007: the call ends by timeout, or as soon as the exchange ends without its answer.
pub async fn an_answer_with_a_wrong_id_is_counted_and_ignored(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    let session = connected.client.session();
    let options =
        RequestOptions { timeout: Some(Duration::from_millis(100)), ..RequestOptions::default() };
    let params = r#"{"name":"wrong_id","arguments":{}}"#;
    let answer = session.request(session.next_id(), "tools/call", params, options).await;
    match answer {
        Err(RequestError::Timeout { .. }) => {}
        Err(error) if session.transport().answers_in_exchange() => assert_protocol_error(&error),
        other => panic!("{other:?}"),
    }
    assert_works(&connected).await;
    eventually("the strange answer is counted", || {
        (session.router().counts().unmatched == 1).then_some(())
    })
    .await;
}

/// Proves S3-SC-007.
pub async fn of_two_answers_the_first_wins(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    let answer = connected.call("duplicate", json!({})).await.unwrap();
    assert!(answer.get().contains("first"), "{answer}");
    assert_works(&connected).await;
}

/// Proves S3-SC-007: the other call in flight is not harmed.
pub async fn deep_nesting_fails_its_own_call_only(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    let (deep, other) = tokio::join!(
        connected.call("deep", json!({"depth": 200})),
        connected.call("sleep", json!({"ms": 50}))
    );
    assert_eq!(
        deep.unwrap_err().to_string(),
        "the server sent a broken message: nested deeper than 64 levels"
    );
    other.unwrap();
    assert_works(&connected).await;
}

/// Proves S3-SC-007. Whether the connection survives depends on the transport.
pub async fn bad_utf8_fails_the_call(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    assert_protocol_error(&connected.call("bad_utf8", json!({})).await.unwrap_err());
}

/// Proves S3-SC-007. Whether the connection survives depends on the transport.
pub async fn a_message_over_the_limit_fails_the_call(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    let error = connected.call("big", json!({"bytes": 9 * 1024 * 1024})).await.unwrap_err();
    assert_protocol_error(&error);
    assert_eq!(error.to_string(), "the server sent a message of more than 8388608 bytes");
}

/// Proves S3-SC-007: it is unknown if the call was executed.
pub async fn a_crash_in_the_middle_of_a_call_leaves_the_outcome_open(serve: Serve) {
    let connected = connect(serve, "legacy", json!({})).await;
    match connected.call("crash", json!({})).await {
        Err(RequestError::Transport(error)) => {
            assert_eq!((error.kind, error.sent), (Failure::Closed, Sent::Maybe), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let again = connected.call("text", json!({})).await.unwrap_err();
    // Streamable HTTP has no connection that could have ended: it tries, and may not know.
    let may_have_left = connected.client.session().transport().answers_in_exchange();
    assert!(may_have_left || again.sent() == Sent::No, "{again:?}");
}

async fn assert_works(connected: &Connected) {
    connected.call("text", json!({})).await.unwrap();
}

fn assert_protocol_error(error: &RequestError) {
    let is_protocol = match error {
        RequestError::Protocol { .. } => true,
        RequestError::Transport(error) => error.kind == Failure::Protocol,
        RequestError::Rpc(_) | RequestError::Timeout { .. } => false,
    };
    assert!(is_protocol, "{error:?}");
}
