//! WebSockets that end.

use haft_mcp::{Failure, RequestError, Sent, TransportError};
use serde_json::json;

use super::serve;
use crate::suite::{Connected, connect};

async fn transport_error(connected: &Connected, tool: &str) -> TransportError {
    match connected.call(tool, json!({})).await {
        Err(RequestError::Transport(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_close_frame_gives_every_waiter_the_reason() {
    let connected = connect(serve, "legacy", json!({"ws": {"close_at_call": 2}})).await;
    let (hanging, closed) =
        tokio::join!(transport_error(&connected, "hang"), transport_error(&connected, "hang"));
    let expected = TransportError::after_sending(
        Failure::Closed,
        "the server closed the connection (code 1001)",
    );
    assert_eq!((&hanging, &closed), (&expected, &expected));
    assert_eq!(*connected.received.endings.lock().unwrap(), [expected.message]);
    let again = transport_error(&connected, "text").await;
    assert_eq!((again.kind, again.sent), (Failure::Closed, Sent::No));
}

#[tokio::test]
async fn a_connection_may_end_without_a_close_frame() {
    let scenario = json!({"ws": {"close_at_call": 1, "close_abruptly": true}});
    let connected = connect(serve, "legacy", scenario).await;
    let error = transport_error(&connected, "text").await;
    assert_eq!((error.kind, error.sent), (Failure::Closed, Sent::Maybe), "{error}");
}

#[tokio::test]
async fn a_server_that_breaks_off_in_the_handshake_has_a_clear_error() {
    let served = serve(&json!({"exit_on": {"initialize": 3}}));
    let handler = std::sync::Arc::new(haft_mcp::RefuseAll);
    let options = haft_mcp::ClientOptions::default();
    let connecting = haft_mcp::Client::connect(&*served.connector, None, handler, options);
    let Err(error) = connecting.await else { panic!("it connected") };
    assert!(error.is_transient(), "{error}");
}
