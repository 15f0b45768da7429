//! Shutdown of the service.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use axum::routing::get;
use futures_util::StreamExt as _;
use haft_server::serve::{Ended, EndsByItself};
use testkit::Workspace;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::{Service, Setup, setup};

/// A service with `/wait`, which signals its entry and answers when permitted; and endless streams.
async fn start(workspace: &Workspace, grace: Duration) -> (Service, Arc<Notify>, Arc<Notify>) {
    let (entered, may_end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (Arc::clone(&entered), Arc::clone(&may_end));
    let waiting = async move || {
        tell.notify_one();
        wait.notified().await;
        "done"
    };
    let stream = |is_short: bool| {
        let first = futures_util::stream::iter([Ok::<_, std::io::Error>("data: 1\n\n")]);
        let body = Body::from_stream(first.chain(futures_util::stream::pending()));
        let mut response = ([(CONTENT_TYPE, "text/event-stream")], body).into_response();
        if is_short {
            response.extensions_mut().insert(EndsByItself);
        }
        response
    };
    let calling = Router::new()
        .route("/wait", get(waiting))
        .route("/events", get(async move || stream(false)))
        .route("/call", get(async move || stream(true)));
    let mut setup = Setup { calling, ..setup() };
    setup.listener.grace = grace;
    (setup.start(workspace).await, entered, may_end)
}

async fn ask(service: &Service, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn read_until(stream: &mut TcpStream, end: &str) {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(end) {
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "closed early");
    }
}

/// A request in flight gets its answer; new connections are refused meanwhile.
#[tokio::test]
async fn requests_in_flight_finish() {
    let workspace = Workspace::new();
    let (service, entered, may_end) = start(&workspace, testkit::DEADLINE).await;
    let mut stream = ask(&service, "/wait").await;
    entered.notified().await;
    service.stop.cancel();
    while TcpStream::connect(service.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    may_end.notify_one();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("\r\n\r\ndone"), "{answer}");
    assert_eq!(service.stopped().await, Ended::Clean);
}

/// Connections that are idle, silent or listen to events do not hold up the end.
#[tokio::test]
async fn idle_connections_and_event_streams_end_at_once() {
    let workspace = Workspace::new();
    let (service, _, _) = start(&workspace, testkit::DEADLINE).await;
    let _silent = TcpStream::connect(service.address).await.unwrap();
    let mut idle = ask(&service, "/tools").await;
    read_until(&mut idle, "\r\n\r\ntools").await;
    let mut events = ask(&service, "/events").await;
    read_until(&mut events, "data: 1").await;
    assert_eq!(service.stopped().await, Ended::Clean);
    let mut rest = String::new();
    events.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "the stream ends in order: {rest:?}");
}

/// The same over HTTP/2: the request in flight finishes, and so does the connection, which stays open between
/// requests.
#[tokio::test]
async fn http2_ends_in_order_too() {
    let workspace = Workspace::new();
    let (service, entered, may_end) = start(&workspace, testkit::DEADLINE).await;
    let client = crate::client().http2_prior_knowledge().build().unwrap();
    assert_eq!(client.get(service.url("/tools")).send().await.unwrap().status(), 200);
    let asking = async {
        let answer = client.get(service.url("/wait")).send().await.unwrap();
        answer.text().await.unwrap()
    };
    let stopping = async {
        entered.notified().await;
        service.stop.cancel();
        may_end.notify_one();
    };
    let (answer, ()) = tokio::join!(asking, stopping);
    assert_eq!(answer, "done");
    assert_eq!(service.stopped().await, Ended::Clean);
}

/// Work beyond the grace period is cut off, including event streams that end by themselves.
#[tokio::test]
async fn what_takes_too_long_is_cut_off() {
    for path in ["/wait", "/call"] {
        let workspace = Workspace::new();
        let (service, entered, _) = start(&workspace, Duration::from_millis(100)).await;
        let mut stream = ask(&service, path).await;
        if path == "/wait" {
            entered.notified().await;
        } else {
            read_until(&mut stream, "data: 1").await;
        }
        assert_eq!(service.stopped().await, Ended::Cut, "{path}");
    }
}
