//! Ways in which a handshake ends without a WebSocket, and what is sent to whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_mcp::oauth::{AuthError, Authorizer};
use haft_mcp::transport::WebSocketConnector;
use haft_mcp::{BoxFuture, Connector, Failure, Limits, MessageRouter, RefuseAll, TransportError};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::fixture::{self, Fixture, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

use super::connector;

async fn refusal(connector: &WebSocketConnector) -> TransportError {
    let router = MessageRouter::new(Arc::new(RefuseAll), Limits::default());
    match connector.open(router).await {
        Ok(_) => panic!("it connected"),
        Err(error) => error,
    }
}

async fn refusal_of(action: Value) -> TransportError {
    let server = Fixture::serve(Transport::Ws, &json!({"faults": [{"do": action}]}));
    refusal(&connector(&server.url)).await
}

#[tokio::test]
async fn a_status_determines_the_kind_of_refusal() {
    let status = |status: u16| json!({"answer": {"status": status}});
    assert_eq!(
        refusal_of(status(401)).await,
        TransportError::unsent(
            Failure::AuthRequired,
            "`ws://shown` wants credentials (401 Unauthorized)"
        )
    );
    assert_eq!(refusal_of(status(403)).await.kind, Failure::AuthRequired);
    assert_eq!(
        refusal_of(status(404)).await,
        TransportError::unsent(
            Failure::Status(404),
            "`ws://shown` opens no WebSocket (404 Not Found)"
        )
    );
    let busy = refusal_of(json!({"answer": {"status": 429, "headers": {"Retry-After": "7"}}}));
    let busy = busy.await;
    assert_eq!((busy.kind, busy.retry_after), (Failure::Status(429), Some(Duration::from_secs(7))));
    assert!(busy.is_transient());
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", elsewhere.local_addr().unwrap());
    let error = refusal_of(json!({"redirect": format!("{origin}/secret?token=canary")})).await;
    assert_eq!(
        error,
        TransportError::unsent(
            Failure::Redirect,
            format!("`ws://shown` redirects to `{origin}`, which is not followed")
        )
    );
    let asked = tokio::time::timeout(Duration::ZERO, elsewhere.accept()).await;
    assert!(asked.is_err(), "the other origin was asked");
}

/// Interim responses are cut off like every other excess.
#[tokio::test]
async fn a_flood_of_interim_responses_ends_the_handshake() {
    let flood = testkit::Flood::of_interim_responses();
    let error = refusal(&connector(&format!("ws://{}/", flood.address()))).await;
    assert_eq!(error.kind, Failure::Protocol, "{error}");
    let excess = "it sent more than 256 KiB of headers and interim responses";
    assert_eq!(error.message, format!("`ws://shown` cannot be reached: {excess}"));
}

#[tokio::test]
async fn a_missing_server_is_unreachable() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let closed = refusal(&connector(&format!("ws://127.0.0.1:{port}/canary"))).await;
    assert_eq!(closed.kind, Failure::Unreachable);
    assert!(
        closed.message.contains("ws://shown") && closed.message.contains("refused"),
        "{closed}"
    );
    assert!(!closed.message.contains("canary"), "{closed}");
    let unknown = refusal(&connector("ws://no-such-host.invalid/")).await;
    assert_eq!(unknown.kind, Failure::Unreachable, "{unknown}");
    let wrong = refusal(&connector("http://127.0.0.1/")).await;
    assert_eq!(wrong.kind, Failure::NotFound, "{wrong}");
    assert_eq!(refusal_of(json!("cut")).await.kind, Failure::Unreachable);
}

#[tokio::test]
async fn tls_trouble_is_named_and_not_avoided() {
    let url = answering("this is no TLS\r\n\r\n").await.replace("ws:", "wss:");
    let error = refusal(&connector(&url)).await;
    assert_eq!(error.kind, Failure::Tls, "{error}");
    assert!(!error.is_transient());
}

#[tokio::test]
async fn a_handshake_has_a_time_limit() {
    let server = Fixture::serve(Transport::Ws, &json!({"faults": [{"do": "stall"}]}));
    let connect_timeout = Duration::from_millis(50);
    let error = refusal(&WebSocketConnector { connect_timeout, ..connector(&server.url) }).await;
    assert_eq!(
        error,
        TransportError::unsent(Failure::Timeout, "`ws://shown` did not connect within 50ms")
    );
}

#[tokio::test]
async fn an_agreement_that_does_not_fit_is_refused() {
    let agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n";
    for (rest, why) in [
        ("Upgrade: h2c\r\n\r\n", "it changes to another protocol"),
        (
            "Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n",
            "its `sec-websocket-accept` does not fit the key",
        ),
    ] {
        let url = answering(&format!("{agreed}{rest}")).await;
        let error = refusal(&connector(&url)).await;
        assert_eq!(error.kind, Failure::Protocol);
        let expected = format!("`ws://shown` answered the WebSocket handshake wrongly: {why}");
        assert_eq!(error.message, expected);
    }
}

#[tokio::test]
#[allow(clippy::result_large_err, reason = "the library's own type")]
async fn another_subprotocol_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connector = connector(&format!("ws://{}/", listener.local_addr().unwrap()));
    let accept = async {
        let (stream, _) = listener.accept().await.unwrap();
        let choose = |_: &Request, mut response: Response| {
            response.headers_mut().insert("sec-websocket-protocol", "other".parse().unwrap());
            Ok(response)
        };
        tokio_tungstenite::accept_hdr_async(stream, choose).await.unwrap()
    };
    let (error, _server) = tokio::join!(refusal(&connector), accept);
    assert_eq!(error.kind, Failure::Protocol);
    assert!(error.message.ends_with("it chose the subprotocol `other`, and not `mcp`"), "{error}");
}

#[tokio::test]
async fn headers_and_a_renewed_token_are_sent() {
    let folder = TempDir::new().unwrap();
    let facts = folder.path().join("facts");
    let refuse = json!({"answer": {"status": 401, "headers": {"WWW-Authenticate": "Bearer x"}}});
    let scenario = json!({"facts": facts, "faults": [{"times": 1, "do": refuse}]});
    let server = Fixture::serve(Transport::Ws, &scenario);
    let connector = WebSocketConnector {
        headers: vec![
            ("X-Team".to_owned(), "blue".to_owned()),
            ("Upgrade".to_owned(), "nothing".to_owned()),
        ],
        authorizer: Some(Arc::new(Tokens::default())),
        ..connector(&server.url)
    };
    let router = MessageRouter::new(Arc::new(RefuseAll), Limits::default());
    connector.open(router).await.unwrap();
    let requests = fixture::events(&facts, "http");
    let of = |name: &str| -> Vec<String> {
        let value = |request: &Value| request["headers"][name].as_str().unwrap().to_owned();
        requests.iter().map(value).collect()
    };
    assert_eq!(of("x-team"), ["blue", "blue"]);
    assert_eq!(of("upgrade"), ["websocket", "websocket"]);
    assert_eq!(of("authorization"), ["Bearer token-0", "Bearer token-1"]);
}

#[tokio::test]
async fn a_server_that_refuses_every_token_is_asked_a_bounded_number_of_times() {
    let folder = TempDir::new().unwrap();
    let facts = folder.path().join("facts");
    let scenario = json!({"facts": facts, "faults": [{"do": {"answer": {"status": 401}}}]});
    let server = Fixture::serve(Transport::Ws, &scenario);
    let authorizer: Option<Arc<dyn Authorizer>> = Some(Arc::new(Tokens::default()));
    let error = refusal(&WebSocketConnector { authorizer, ..connector(&server.url) }).await;
    assert_eq!(error.kind, Failure::AuthRequired);
    assert_eq!(fixture::events(&facts, "http").len(), 3);
}

/// Has a new token after every refusal.
#[derive(Default)]
struct Tokens(AtomicUsize);

impl Authorizer for Tokens {
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, AuthError>> {
        let token = format!("token-{}", self.0.load(Ordering::Relaxed));
        Box::pin(async { Ok(Some(token)) })
    }

    fn refused<'a>(
        &'a self,
        status: u16,
        _www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, AuthError>> {
        assert_eq!(status, 401);
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(true) })
    }
}

/// The URL of a server that answers anything with these bytes.
async fn answering(answer: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let answer = answer.to_owned();
    tokio_util::task::TaskTracker::new().spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await;
        stream.write_all(answer.as_bytes()).await.unwrap();
        // Until the client leaves.
        while stream.read(&mut request).await.is_ok_and(|count| count > 0) {}
    });
    url
}
