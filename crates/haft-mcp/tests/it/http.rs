//! Streamable HTTP.

mod faults;
mod flood;
mod refusals;
mod streams;

use haft_mcp::client::Protocol;
use haft_mcp::{Client, ClientOptions, Era, SseConnector};
use serde_json::json;
use testkit::fixture::Transport;

use crate::support::{RecordingHandler, Server, call, connect, http, options};

/// Proves S3-US8-1, S3-US8-T and S3-FR-007.
#[tokio::test]
async fn both_eras_are_spoken_in_json_and_in_streams() {
    for era in ["legacy", "modern", "both"] {
        for answer in ["auto", "json", "sse"] {
            let server = Server::http(json!({"era": era, "http": {"answer": answer}}));
            let client = connect(&http(server.url()), Protocol::Auto).await;
            let spoken = if era == "legacy" { Era::Legacy } else { Era::Modern };
            assert_eq!(client.identity().era, spoken);
            assert!(!client.list_tools().await.unwrap().items.is_empty());
            let echoed = call(&client, "echo", json!({"text": "hi"})).await.unwrap();
            assert!(echoed["content"][0]["text"].as_str().unwrap().contains("hi"), "{echoed}");
            client.close().await;
        }
    }
}

/// Proves S3-US6-2: whatever the request, the configured headers are on it; and what the handshake
/// found out is on everything after it.
#[tokio::test]
async fn headers_are_on_every_request() {
    let server = Server::http(json!({}));
    let client = connect(&http(server.url()), Protocol::Legacy).await;
    call(&client, "text", json!({})).await.unwrap();
    client.close().await;
    for method in ["GET", "POST", "DELETE"] {
        let requests = server.requests(method);
        assert!(!requests.is_empty(), "no {method}");
        for (at, request) in requests.iter().enumerate() {
            let headers = &request["headers"];
            assert_eq!(headers["x-canary"], "canary-value", "{request}");
            let is_initialize = method == "POST" && at == 0;
            assert_eq!(headers["mcp-session-id"].is_null(), is_initialize, "{request}");
            let version = if is_initialize { json!(null) } else { json!("2025-11-25") };
            assert_eq!(headers["mcp-protocol-version"], version, "{request}");
        }
    }
}

/// The fixture checks that headers and body agree.
#[tokio::test]
async fn the_modern_era_has_its_headers_and_neither_sessions_nor_streams() {
    let server = Server::http(json!({"era": "modern", "tools": ["header_param", "text"]}));
    let client = connect(&http(server.url()), Protocol::Auto).await;
    client.list_tools().await.unwrap();
    call(&client, "header_param", json!({"region": " Zürich\n"})).await.unwrap();
    client.close().await;
    let posts = server.requests("POST");
    let last = &posts.last().unwrap()["headers"];
    assert_eq!(last["mcp-protocol-version"], "2026-07-28");
    assert_eq!(last["mcp-method"], "tools/call");
    assert_eq!(last["mcp-name"], "header_param");
    assert_eq!(last["mcp-param-region"], "=?base64?IFrDvHJpY2gK?=");
    assert!(posts.iter().all(|post| post["headers"]["mcp-session-id"].is_null()));
    assert_eq!((server.requests("GET").len(), server.requests("DELETE").len()), (0, 0));
}

/// Proves S3-US8-2.
#[tokio::test]
async fn a_session_is_ended_on_closing_only_if_configured() {
    for (sessions, terminate_on_close, deletes) in
        [(true, true, 1), (true, false, 0), (false, true, 0)]
    {
        let server = Server::http(json!({"http": {"sessions": sessions}}));
        let options = haft_mcp::HttpOptions { terminate_on_close, ..options(server.url()) };
        let connector = haft_mcp::HttpConnector::new(options).unwrap();
        let client = connect(&connector, Protocol::Legacy).await;
        client.close().await;
        client.close().await;
        assert_eq!(server.requests("DELETE").len(), deletes);
    }
}

/// Proves S1-3 and S1-15.
#[tokio::test]
async fn a_server_that_has_only_http_and_sse_is_found() {
    let server = Server::start(Transport::Sse, json!({}));
    let fallback = SseConnector::new(options(server.url())).unwrap();
    let connector = http(server.url());
    let options = ClientOptions::default();
    let client = Client::connect(&connector, Some(&fallback), RecordingHandler::pair().0, options)
        .await
        .unwrap();
    call(&client, "text", json!({})).await.unwrap();
    client.close().await;
}

#[tokio::test]
async fn connections_are_used_again() {
    for answer in ["json", "sse"] {
        let server = Server::http(json!({"http": {"answer": answer, "get_stream": false}}));
        let client = connect(&http(server.url()), Protocol::Legacy).await;
        for _ in 0..40 {
            call(&client, "text", json!({})).await.unwrap();
        }
        let connections = testkit::fixture::events(&server.facts, "connection").len();
        assert!(connections < 10, "{connections} connections for 40 calls as {answer}");
        client.close().await;
    }
}
