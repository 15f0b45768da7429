//! Clients that leave while their request is being answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get;
use serde_json::json;
use testkit::Workspace;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::faults::until as eventually;
use crate::served::{Served, toolbox};
use crate::tls::{certificate, connect};
use crate::{Setup, client, setup, until};

/// Requests that were started and those that were dropped. They never end by themselves.
#[derive(Clone, Default)]
struct Requests(Arc<(AtomicUsize, AtomicUsize)>);

struct Running(Requests);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.1.fetch_add(1, Ordering::SeqCst);
    }
}

impl Requests {
    fn setup(&self) -> Setup {
        let requests = self.clone();
        let endless = async move || {
            requests.0.0.fetch_add(1, Ordering::SeqCst);
            let _running = Running(requests);
            std::future::pending::<&'static str>().await
        };
        let mut setup = setup();
        setup.calling = Router::new().route("/endless", get(endless));
        setup
    }

    fn started(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    fn dropped(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

const ENDLESS: &str = "GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Bytes that may follow the request in the server's buffers.
fn followers() -> [String; 4] {
    [String::new(), "\r\n".to_owned(), ENDLESS.repeat(20), "x".repeat(4 * 1024 * 1024)]
}

/// A request ends when its client closes the connection, whatever follows the request. Pipelined requests are
/// never started.
#[tokio::test]
async fn a_request_ends_with_its_connection() {
    for follower in followers() {
        let requests = Requests::default();
        let workspace = Workspace::new();
        let service = requests.setup().start(&workspace).await;
        let mut stream = TcpStream::connect(service.address).await.unwrap();
        stream.write_all(ENDLESS.as_bytes()).await.unwrap();
        until(|| requests.started() == 1).await;
        // The server reads only a part of a large follower.
        let writing = stream.write_all(follower.as_bytes());
        let _ = tokio::time::timeout(std::time::Duration::from_millis(200), writing).await;
        drop(stream);
        until(|| requests.dropped() == 1).await;
        assert_eq!(requests.started(), 1, "{} bytes follow", follower.len());
    }
}

/// The same for requests that arrive in one piece with what follows them, and over TLS.
#[tokio::test]
async fn a_request_over_tls_ends_with_its_connection() {
    for follower in &followers()[..3] {
        let requests = Requests::default();
        let workspace = Workspace::new();
        let (files, trusted) = certificate(&workspace);
        let mut setup = requests.setup();
        setup.listener.tls = Some(files);
        let service = setup.start(&workspace).await;
        let mut stream = connect(&service, &trusted).await.unwrap();
        stream.write_all(format!("{ENDLESS}{follower}").as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        until(|| requests.started() == 1).await;
        drop(stream);
        until(|| requests.dropped() == 1).await;
        assert_eq!(requests.started(), 1, "{} bytes follow", follower.len());
    }
}

/// A stream of HTTP/2 that is reset ends its request and no other; the others end with the connection.
#[tokio::test]
async fn requests_over_http2_end_with_their_streams() {
    let requests = Requests::default();
    let workspace = Workspace::new();
    let service = requests.setup().start(&workspace).await;
    let client = client().http2_prior_knowledge().build().unwrap();
    let ask = || {
        let request = client.get(service.url("/endless")).send();
        tokio_util::task::AbortOnDropHandle::new(
            tokio_util::task::TaskTracker::new().spawn(async { drop(request.await) }),
        )
    };
    let [first, second, third] = [ask(), ask(), ask()];
    until(|| requests.started() == 3).await;
    drop(first);
    until(|| requests.dropped() == 1).await;
    // The connection still answers.
    assert_eq!(client.get(service.url("/tools")).send().await.unwrap().status(), 200);
    assert_eq!(requests.dropped(), 1);
    drop((second, third, client));
    until(|| requests.dropped() == 3).await;
}

/// A call whose client left is recorded as cancelled, and the calls that were pipelined behind it never happen.
#[tokio::test]
async fn pipelined_calls_of_a_client_that_left_never_happen() {
    let served = Served::open(toolbox());
    let call = |tool: &str| {
        let body = json!({"arguments": {}}).to_string();
        format!(
            "POST /api/v1/tools/{tool}/call HTTP/1.1\r\nHost: localhost\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let mut stream = TcpStream::connect(served.url.strip_prefix("http://").unwrap()).await.unwrap();
    let calls = format!("{}{}", call("wait"), call("echo").repeat(10));
    stream.write_all(calls.as_bytes()).await.unwrap();
    let running =
        async || served.get("/api/v1/calls").await.json()["calls"].as_array().unwrap().len();
    eventually("the call runs", async || (running().await == 1).then_some(())).await;
    drop(stream);
    eventually("the call is cancelled", async || (running().await == 0).then_some(())).await;
    let entries =
        eventually("an entry", async || Some(served.log()).filter(|it| !it.is_empty())).await;
    let calls: Vec<_> = entries.iter().map(|it| (&it["tool"], &it["error"]["code"])).collect();
    assert_eq!(calls, [(&json!("wait"), &json!("Cancelled"))]);
}
