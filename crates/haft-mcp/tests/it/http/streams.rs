//! Sessions and streams of the legacy era, and requests whose caller is gone.

use haft_mcp::client::Protocol;
use haft_mcp::{Client, ClientOptions, Failure, Sent};
use serde_json::json;
use testkit::fixture::{Fixture, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{RecordingHandler, Server, call, connect, eventually, failed, http};

#[tokio::test]
async fn an_expired_session_is_distinguished_and_nothing_was_done() {
    let server = Server::http(json!({"http": {"expire_session_at_call": 1}}));
    let client = connect(&http(server.url()), Protocol::Legacy).await;
    let error = failed(&client, "text").await;
    assert_eq!((error.kind, error.sent), (Failure::SessionExpired, Sent::No));
    assert_eq!(error.message, "`the server` does not know the session any more");
}

#[tokio::test]
async fn an_answer_whose_stream_broke_off_is_resumed() {
    let server = Server::http(json!({"http": {"resume_calls": 2, "retry_ms": 1}}));
    let client = connect(&http(server.url()), Protocol::Legacy).await;
    for _ in 0..3 {
        call(&client, "text", json!({})).await.unwrap();
    }
    let resumed = server.requests("GET").into_iter();
    let resumed = resumed.filter(|get| !get["headers"]["last-event-id"].is_null());
    assert_eq!(resumed.count(), 2);
}

#[tokio::test]
async fn what_the_server_sends_by_itself_comes_over_the_background_stream() {
    let server = Server::http(json!({"http": {"answer": "json"}}));
    let (handler, mut received) = RecordingHandler::pair();
    let options = ClientOptions { protocol: Protocol::Legacy, ..ClientOptions::default() };
    let client = Client::connect(&http(server.url()), None, handler, options).await.unwrap();
    call(&client, "add_tool", json!({"name": "another"})).await.unwrap();
    assert_eq!(received.recv().await.unwrap(), "notifications/tools/list_changed");
    // The server asks over that stream too, and the answer is a POST of its own.
    let sampled = call(&client, "sample", json!({"message": "?"})).await.unwrap();
    assert!(sampled.to_string().contains("sampled"), "{sampled}");
    client.close().await;
}

/// A restart of the server is detected without a call.
#[tokio::test]
async fn a_server_that_forgot_the_session_ends_the_connection() {
    let mut server = Server::http(json!({}));
    let (handler, mut received) = RecordingHandler::pair();
    let options = ClientOptions { protocol: Protocol::Legacy, ..ClientOptions::default() };
    let client = Client::connect(&http(server.url()), None, handler, options).await.unwrap();
    let port = server.running.port();
    server.running.kill();
    let _anew = Fixture::serve_at(Transport::Http, &json!({}), port);
    let ended = received.recv().await.unwrap();
    assert_eq!(ended, "ended: `the server` does not know the session any more");
    assert_eq!(client.ended().unwrap().kind, Failure::SessionExpired);
}

/// Intervals between the GETs at the server, in milliseconds.
fn gaps(server: &Server) -> Vec<u64> {
    let at: Vec<u64> =
        server.requests("GET").iter().map(|get| get["at_ms"].as_u64().unwrap()).collect();
    at.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Whatever pause a server asks for, it is not asked for its stream more often than twice a second, and less and
/// less often while nothing comes.
#[tokio::test]
async fn a_stream_that_ends_at_once_is_not_asked_for_without_pause() {
    let ended = json!({"answer": {"status": 200,
        "headers": {"content-type": "text/event-stream"}, "body": "retry: 0\n\n"}});
    let overloaded = json!({"answer": {"status": 503, "headers": {"retry-after": "0"}}});
    for action in [ended, overloaded] {
        let server = Server::http(json!({"faults": [{"method": "GET", "do": action}]}));
        let client = connect(&http(server.url()), Protocol::Legacy).await;
        let gaps = eventually(|| Some(gaps(&server)).filter(|gaps| gaps.len() >= 2)).await;
        assert!(gaps[0] >= 450 && gaps[1] >= 950, "{gaps:?}");
        client.close().await;
    }
}

/// The same for the rest of an answer.
#[tokio::test]
async fn the_rest_of_an_answer_is_not_asked_for_without_pause() {
    let events = |body: &str| {
        json!({"answer": {"status": 200, "headers": {"content-type": "text/event-stream"},
            "body": body}})
    };
    let server = Server::http(json!({"faults": [
        {"rpc": "tools/call", "do": events("id: 1\nretry: 0\ndata: \n\n")},
        {"method": "GET", "skip": 1, "do": events("retry: 0\n\n")},
    ]}));
    let client = connect(&http(server.url()), Protocol::Legacy).await;
    let calling = call(&client, "text", json!({}));
    let three = eventually(|| Some(gaps(&server)).filter(|gaps| gaps.len() >= 3));
    tokio::select! {
        _ = calling => panic!("answered"),
        gaps = three => assert!(gaps[1] >= 450 && gaps[2] >= 950, "{gaps:?}"),
    }
    client.close().await;
}

#[tokio::test]
async fn a_server_without_a_background_stream_is_asked_for_it_once() {
    let server = Server::http(json!({"http": {"get_stream": false}}));
    let client = connect(&http(server.url()), Protocol::Legacy).await;
    call(&client, "text", json!({})).await.unwrap();
    client.close().await;
    assert_eq!(server.requests("GET").len(), 1);
}

#[tokio::test]
async fn a_dropped_request_of_the_legacy_era_is_cancelled_with_a_notice() {
    let server = Server::http(json!({}));
    let client = connect(&http(server.url()), Protocol::Legacy).await;
    {
        let mut calling = std::pin::pin!(call(&client, "hang", json!({})));
        tokio::select! {
            _ = &mut calling => panic!("answered"),
            () = eventually(|| server.messages("tools/call").first().map(drop)) => {}
        }
    }
    let notice = eventually(|| server.messages("notifications/cancelled").pop()).await;
    assert_eq!(notice["params"]["requestId"], server.messages("tools/call")[0]["id"]);
    client.close().await;
}

/// A raw server, because what counts is the end of the connection itself.
#[tokio::test]
async fn a_dropped_request_of_the_modern_era_is_cancelled_by_closing_its_exchange() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let connector = http(&url);
    let (client, mut socket) = tokio::join!(connect(&connector, Protocol::Modern), async {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        let body = json!({"jsonrpc": "2.0", "id": 1, "result":
            {"supportedVersions": ["2026-07-28"], "capabilities": {}}});
        let body = body.to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
        let response = format!("{head}: {}\r\n\r\n{body}", body.len());
        socket.write_all(response.as_bytes()).await.unwrap();
        socket
    });
    {
        let mut calling = std::pin::pin!(call(&client, "hang", json!({})));
        tokio::select! {
            _ = &mut calling => panic!("answered"),
            () = read_request(&mut socket) => {}
        }
    }
    // Nothing more comes but the end.
    assert_eq!(socket.read(&mut [0; 1]).await.unwrap(), 0);
}

/// Reads until the end of a JSON body, which is enough for requests that come one at a time.
async fn read_request(socket: &mut tokio::net::TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"}}}}") && !request.ends_with(b"}}}") {
        let mut piece = [0; 4096];
        let count = socket.read(&mut piece).await.unwrap();
        assert!(count > 0, "the client went away");
        request.extend_from_slice(&piece[..count]);
    }
}
