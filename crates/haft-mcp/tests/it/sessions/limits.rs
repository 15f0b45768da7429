//! Time limits of a request, and the effects of exceeding or dropping it.

use std::time::Duration;

use haft_mcp::{Failure, Limits, RequestError, RequestOptions, Sent};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::{Server, Setup, ask};

fn options(timeout: u64, timeout_max: Option<u64>) -> RequestOptions {
    RequestOptions {
        timeout: Some(Duration::from_secs(timeout)),
        timeout_max: timeout_max.map(Duration::from_secs),
        ..RequestOptions::default()
    }
}

/// Reports progress of the first request every eight seconds, `steps` times.
async fn progress(server: &mut Server, steps: u64) {
    for step in 1..=steps {
        tokio::time::sleep(Duration::from_secs(8)).await;
        let params = json!({"progressToken": 1, "progress": step});
        let notification = json!({"method": "notifications/progress", "params": params});
        server.say(notification.to_string()).await;
    }
}

/// Proves S3-KE-3: progress restarts a request's time limit, up to an absolute limit.
#[tokio::test(start_paused = true)]
async fn progress_restarts_the_time_limit_of_a_request() {
    let (session, mut server) = Setup::default().start();
    let started = Instant::now();
    let (answer, ()) = tokio::join!(ask(&session, options(10, None)), async {
        progress(&mut server, 5).await;
        tokio::time::sleep(Duration::from_secs(9)).await;
        server.say(r#"{"id":1,"result":"done"}"#).await;
    });
    assert_eq!(answer.unwrap(), r#""done""#);
    assert_eq!(started.elapsed(), Duration::from_secs(49));
}

#[tokio::test(start_paused = true)]
async fn progress_does_not_stretch_a_request_beyond_its_absolute_limit() {
    let (session, mut server) = Setup::default().start();
    let started = Instant::now();
    let (answer, ()) =
        tokio::join!(ask(&session, options(10, Some(25))), progress(&mut server, 10));
    match answer {
        Err(RequestError::Timeout { method, after }) => {
            assert_eq!((method.as_str(), after), ("test", Duration::from_secs(25)));
        }
        other => panic!("{other:?}"),
    }
    // The progress without a receiver took the rest.
    assert_eq!(started.elapsed(), Duration::from_secs(80));
    assert_eq!(server.next().await["method"], "test");
    assert_eq!(server.next().await["method"], "notifications/cancelled");
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_request_and_notifies_the_server() {
    let (session, mut server) = Setup::default().start();
    let started = Instant::now();
    let error = ask(&session, options(10, Some(25))).await.unwrap_err();
    assert_eq!(error.to_string(), "`test` was not answered within 10s");
    assert_eq!(started.elapsed(), Duration::from_secs(10));
    assert_eq!(server.next().await["id"], 1);
    assert_eq!(
        server.next().await,
        json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 1, "reason": "the request was abandoned"},
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_is_cancelled_unless_it_is_the_handshake() {
    let (session, mut server) = Setup::default().start();
    for method in ["initialize", "test"] {
        let id = session.next_id();
        tokio::select! {
            answer = session.request(id, method, "{}", RequestOptions::default()) => {
                panic!("answered: {answer:?}");
            }
            request = server.next() => assert_eq!(request["method"], method),
        }
    }
    let cancelled = server.next().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], 2);
}

#[tokio::test(start_paused = true)]
async fn half_a_line_is_completed_when_its_sender_gives_up() {
    let (session, mut server) = Setup { pipe_bytes: 16, ..Setup::default() }.start();
    let text = "x".repeat(1000);
    let params = json!({"text": text}).to_string();
    // The pipe holds sixteen bytes and has no reader, so it is stuck in the middle.
    let request = session.request(session.next_id(), "test", &params, options(1, None));
    assert!(matches!(request.await, Err(RequestError::Timeout { .. })));
    assert_eq!(server.next().await["params"]["text"], text);
    assert_eq!(server.next().await["method"], "notifications/cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_line_over_the_limit_fails_everyone_and_ends_the_connection() {
    let limits = Limits { message_bytes_max: 100, ..Limits::default() };
    let (session, mut server) = Setup { limits, ..Setup::default() }.start();
    let (first, second, ()) = tokio::join!(
        ask(&session, RequestOptions::default()),
        ask(&session, RequestOptions::default()),
        // Cut off while it is read, long before its end.
        async { server.0.get_mut().write_all(&[b'x'; 105]).await.unwrap() }
    );
    let expect = |error: RequestError, sent| match error {
        RequestError::Transport(error) => {
            assert_eq!((error.kind, error.sent), (Failure::Protocol, sent));
            assert_eq!(error.message, "the server sent a message of more than 100 bytes");
        }
        other => panic!("{other:?}"),
    };
    expect(first.unwrap_err(), Sent::Maybe);
    expect(second.unwrap_err(), Sent::Maybe);
    // A later request was not sent at all.
    expect(ask(&session, RequestOptions::default()).await.unwrap_err(), Sent::No);
}
