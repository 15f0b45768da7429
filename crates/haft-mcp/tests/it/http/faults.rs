//! Servers that break: cut and silent bodies, names and certificates that lead nowhere.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::client::Protocol;
use haft_mcp::{Failure, HttpConnector, RequestError, Sent};
use serde_json::{Value, json};
use testkit::fixture::Transport;
use tokio::net::TcpListener;
use tokio_rustls::rustls;

use crate::support::{
    Server, call, connect, connect_limited, eventually, failed, http, options, unconnected,
};

fn faulty(action: &Value) -> Server {
    Server::http(json!({"faults": [{"rpc": "tools/call", "do": action}]}))
}

#[tokio::test]
async fn a_body_that_breaks_off_fails_its_call() {
    for action in ["cut", "cut_sse"] {
        let server = faulty(&json!(action));
        let client = connect(&http(server.url()), Protocol::Legacy).await;
        let error = failed(&client, "text").await;
        assert_eq!((error.kind, error.sent), (Failure::Closed, Sent::Maybe), "{error}");
        assert!(error.message.starts_with("the connection to `the server` broke: "), "{error}");
    }
}

/// Proves S3-US6-3. The limits of the test are long enough for a handshake on a busy machine.
#[tokio::test]
async fn silence_ends_at_the_limit_that_is_meant_for_it() {
    const SHORT: Duration = Duration::from_secs(1);
    let fault = |action: &str| json!({"faults": [{"rpc": "tools/call", "do": action}]});
    let stream = json!({"http": {"answer": "sse"}});
    for (scenario, tool, is_stream, message) in [
        (fault("stall"), "text", false, "did not answer"),
        (fault("stall_midway"), "text", false, "sent nothing more"),
        (stream, "hang", true, "sent no event"),
    ] {
        let server = Server::http(scenario);
        let mut options = options(server.url());
        let limit = if is_stream { &mut options.sse_read_timeout } else { &mut options.timeout };
        *limit = SHORT;
        let connector = HttpConnector::new(options).unwrap();
        let client = connect(&connector, Protocol::Legacy).await;
        let error = failed(&client, tool).await;
        let (kind, setting) = if is_stream {
            (Failure::StreamTimeout, " (`sse_read_timeout`)")
        } else {
            (Failure::Timeout, "")
        };
        assert_eq!((error.kind, error.sent), (kind, Sent::Maybe));
        assert_eq!(error.message, format!("`the server` {message} within 1s{setting}"));
    }
}

#[tokio::test]
async fn a_message_over_the_limit_fails_its_call_and_no_other() {
    for answer in ["json", "sse"] {
        let server = Server::http(json!({"http": {"answer": answer}}));
        let client = connect_limited(&http(server.url()), 100_000).await;
        let error = failed(&client, "big").await;
        assert_eq!(error.kind, Failure::Protocol);
        assert_eq!(error.message, "the server sent a message of more than 100000 bytes");
        call(&client, "text", json!({})).await.unwrap();
        client.close().await;
    }
}

#[tokio::test]
async fn a_broken_answer_fails_its_call_and_no_other() {
    let answer = |body: &str| {
        let json_type = json!({"Content-Type": "application/json"});
        json!({"answer": {"status": 200, "headers": json_type, "body": body}})
    };
    let half = answer(r#"{"jsonrpc":"2.0","result":{"content""#);
    let nobodys = answer(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#);
    let faults = json!([
        {"rpc": "tools/call", "skip": 1, "times": 1, "do": half},
        {"rpc": "tools/call", "skip": 1, "times": 1, "do": nobodys},
    ]);
    let server = Server::http(json!({"faults": faults}));
    let client = connect(&http(server.url()), Protocol::Legacy).await;
    let mut other = std::pin::pin!(call(&client, "hang", json!({})));
    tokio::select! {
        _ = &mut other => panic!("answered"),
        () = eventually(|| server.messages("tools/call").first().map(drop)) => {}
    }
    let half = call(&client, "text", json!({})).await;
    assert!(matches!(half, Err(RequestError::Protocol { .. })), "{half:?}");
    let nobodys = call(&client, "text", json!({})).await;
    assert!(matches!(nobodys, Err(RequestError::Rpc(_))), "{nobodys:?}");
    assert!(tokio::time::timeout(Duration::ZERO, other).await.is_err(), "it was touched");
}

#[tokio::test]
async fn a_page_for_people_is_not_an_answer() {
    let html = json!({"Content-Type": "text/html"});
    let page = json!({"answer": {"status": 200, "headers": html, "body": "<h1>Hello</h1>"}});
    let server = faulty(&page);
    let client = connect(&http(server.url()), Protocol::Legacy).await;
    let error = failed(&client, "text").await;
    assert_eq!(error.kind, Failure::Protocol);
    assert_eq!(error.message, "`the server` answered a request with `text/html`: <h1>Hello</h1>");
}

#[tokio::test]
async fn a_refused_port_and_an_unknown_name_are_reported() {
    let gone = {
        let server = Server::start(Transport::Http, json!({}));
        server.url().to_owned()
    };
    for (url, cause) in [(gone.as_str(), "refused"), ("http://nothing.invalid/mcp", "dns error")] {
        let error = unconnected(&http(url)).await;
        assert_eq!((error.kind, error.sent), (Failure::Unreachable, Sent::No));
        assert!(error.message.starts_with("`the server` cannot be reached: "), "{error}");
        assert!(error.message.contains(cause), "{error}");
        assert!(!error.message.contains("mcp"), "{error}");
    }
}

#[tokio::test]
async fn an_untrusted_certificate_is_named_as_the_cause_and_there_is_no_downgrade() {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = certified.signing_key.serialize_der().try_into().unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.into()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/mcp", listener.local_addr().unwrap().port());
    let connector = http(&url);
    let serving = async {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            assert!(acceptor.accept(socket).await.is_err(), "the client trusted us");
        }
    };
    let error = tokio::select! {
        error = unconnected(&connector) => error,
        () = serving => unreachable!(),
    };
    assert_eq!((error.kind, error.sent), (Failure::Tls, Sent::No));
    assert!(error.message.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_plain_server_behind_a_secure_address_is_not_spoken_to() {
    let server = Server::http(json!({}));
    let error = unconnected(&http(&server.url().replace("http:", "https:"))).await;
    assert_eq!((error.kind, error.sent), (Failure::Tls, Sent::No), "{error}");
    assert_eq!(server.requests("POST"), Vec::<Value>::new());
}
