//! The HTTP client itself: connections that are used again, and what they may carry.

use std::time::Duration;

use haft_mcp::{HEAD_BYTES_MAX, HttpClient, HttpClientOptions, HttpError, HttpResponse};
use http::{HeaderMap, Method};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

fn client(connect_timeout: Duration) -> HttpClient {
    HttpClient::new(HttpClientOptions {
        connect_timeout,
        idle_max: testkit::DEADLINE,
        idle_connections_max: 4,
    })
    .unwrap()
}

async fn get(client: &HttpClient, listener: &TcpListener) -> Result<HttpResponse, HttpError> {
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    client.send(Method::GET, &url, HeaderMap::new(), "").await
}

async fn length(mut response: HttpResponse) -> usize {
    let mut length = 0;
    while let Some(chunk) = response.chunk().await.unwrap() {
        length += chunk.len();
    }
    length
}

/// Takes in one request without a body.
async fn request(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut head).await.unwrap(), 0, "the connection is closed");
    }
}

/// Every request of a connection has the whole limit for its head, and a body has none.
#[tokio::test]
async fn the_limit_holds_for_each_head_of_a_connection_and_for_no_body() {
    const BODY_BYTES: usize = 8 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let interim = "HTTP/1.1 103 Early Hints\r\n\r\n";
    let interims = interim.repeat(HEAD_BYTES_MAX / 2 / interim.len());
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..3 {
            request(&mut stream).await;
            stream.write_all(interims.as_bytes()).await.unwrap();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {BODY_BYTES}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&vec![b'x'; BODY_BYTES]).await.unwrap();
        }
        request(&mut stream).await;
        while stream.write_all(interims.as_bytes()).await.is_ok() {}
    };
    let asking = async {
        let client = client(testkit::DEADLINE);
        for _ in 0..3 {
            assert_eq!(length(get(&client, &listener).await.unwrap()).await, BODY_BYTES);
        }
        get(&client, &listener).await.unwrap_err()
    };
    let ((), error) = tokio::join!(serving, asking);
    assert!(matches!(error, HttpError::HeadTooLarge(_)), "{error:?}");
}

/// The limit for connecting covers TLS: this server accepts the connection and stays silent.
#[tokio::test]
async fn a_silent_handshake_ends_at_the_limit_for_connecting() {
    const LIMIT: Duration = Duration::from_millis(200);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let sent = client(LIMIT).send(Method::GET, &url, HeaderMap::new(), "").await;
    assert!(matches!(sent, Err(HttpError::ConnectTimeout(LIMIT))), "{sent:?}");
}
