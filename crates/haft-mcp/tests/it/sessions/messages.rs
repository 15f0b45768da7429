//! Messages of a server besides plain answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_mcp::{
    BoxFuture, Failure, Handler, RequestError, RequestOptions, RpcError, Sent, ServerRequest,
    TransportError,
};
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{Setup, ask};

#[tokio::test]
async fn a_batch_answers_each_of_its_requests_in_order() {
    let (session, mut server) = Setup::default().start();
    let (first, second, ()) = tokio::join!(
        ask(&session, RequestOptions::default()),
        ask(&session, RequestOptions::default()),
        async {
            server.next().await;
            server.next().await;
            server.say("[]").await;
            server.say(r#" [{"id":2,"result":"b"}, 7, {"id":1,"error":{"code":3}}]"#).await;
        }
    );
    assert!(matches!(first, Err(RequestError::Rpc(error)) if error.code == 3));
    assert_eq!(second.unwrap(), r#""b""#);
    // The empty batch and the number.
    assert_eq!(session.router().counts().noise_bytes, 5);
}

#[tokio::test]
async fn marks_and_carriage_returns_around_lines_do_no_harm() {
    let (session, mut server) = Setup::default().start();
    let (first, second, ()) = tokio::join!(
        ask(&session, RequestOptions::default()),
        ask(&session, RequestOptions::default()),
        async {
            server.next().await;
            server.next().await;
            server.say(b"\xEF\xBB\xBF{\"id\":1,\"result\":1}\r").await;
            server.say("\r\n \t{\"id\":2,\"result\":2} \r").await;
        }
    );
    assert_eq!((first.unwrap(), second.unwrap()), ("1".into(), "2".into()));
}

#[tokio::test]
async fn a_last_line_need_not_end() {
    let (session, mut server) = Setup::default().start();
    let (answer, ()) = tokio::join!(ask(&session, RequestOptions::default()), async {
        server.next().await;
        let answer = br#"{"id":1,"result":"last"}"#;
        tokio::io::AsyncWriteExt::write_all(server.0.get_mut(), answer).await.unwrap();
        drop(server);
    });
    assert_eq!(answer.unwrap(), r#""last""#);
    session.router().wait_ended().await;
    assert_eq!(
        session.router().ended(),
        Some(TransportError::after_sending(Failure::Closed, "the server closed its output"))
    );
}

/// Never answers; records if the answer still has a receiver, and its notifications.
#[derive(Default)]
struct Pondering {
    asked: CancellationToken,
    dropped: CancellationToken,
    endings: AtomicUsize,
    troubles: Mutex<Vec<String>>,
}

impl Handler for Pondering {
    fn request(&self, _: ServerRequest) -> BoxFuture<'_, Result<Box<RawValue>, RpcError>> {
        let until_dropped = self.dropped.clone().drop_guard();
        self.asked.cancel();
        Box::pin(async move {
            let _until_dropped = until_dropped;
            std::future::pending().await
        })
    }

    fn report_anomaly(&self, what: &str) {
        self.troubles.lock().unwrap().push(what.to_owned());
    }

    fn ended(&self, _: &TransportError) {
        self.endings.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_request_that_the_server_takes_back_is_dropped() {
    let handler = Arc::new(Pondering::default());
    let (_session, mut server) =
        Setup { handler: Arc::clone(&handler) as _, ..Setup::default() }.start();
    server.say(r#"{"id":"s-1","method":"sampling/createMessage"}"#).await;
    handler.asked.cancelled().await;
    let params = json!({"requestId": "s-1"});
    server.say(json!({"method": "notifications/cancelled", "params": params}).to_string()).await;
    handler.dropped.cancelled().await;
}

#[tokio::test]
async fn the_end_drops_requests_in_flight_and_is_reported_once() {
    let handler = Arc::new(Pondering::default());
    let (session, mut server) =
        Setup { handler: Arc::clone(&handler) as _, ..Setup::default() }.start();
    server.say(r#"{"id":"s-1","method":"sampling/createMessage"}"#).await;
    handler.asked.cancelled().await;
    let close = session.close(TransportError::unsent(Failure::Closed, "enough"));
    let (pending, ()) = tokio::join!(ask(&session, RequestOptions::default()), close);
    assert_eq!(pending.unwrap_err().sent(), Sent::Maybe);
    handler.dropped.cancelled().await;
    session.router().end(&TransportError::unsent(Failure::Closed, "again"));
    session.router().receive(br#"{"method":"late"}"#);
    assert_eq!(handler.endings.load(Ordering::Relaxed), 1);
    assert_eq!(session.router().ended().unwrap().message, "enough");
}

/// Proves S3-SC-007: the server receives the cancellation, although the connection is closed at once; its answer that
/// crosses it is not an anomaly.
#[tokio::test(start_paused = true)]
async fn the_last_cancellation_is_sent_before_the_end() {
    let handler = Arc::new(Pondering::default());
    // The cancellation does not fit into the pipe: it takes a server that reads.
    let (session, mut server) =
        Setup { pipe_bytes: 64, handler: Arc::clone(&handler) as _, ..Setup::default() }.start();
    tokio::select! {
        answer = ask(&session, RequestOptions::default()) => panic!("answered: {answer:?}"),
        request = server.next() => assert_eq!(request["id"], 1),
    }
    let close = session.close(TransportError::unsent(Failure::Closed, "enough"));
    let (received, ()) = tokio::join!(
        async {
            server.say(r#"{"id":1,"result":"late"}"#).await;
            // Everything else runs until it waits for us.
            tokio::time::sleep(Duration::from_millis(1)).await;
            server.next().await
        },
        close
    );
    assert_eq!(received["method"], "notifications/cancelled");
    assert_eq!(session.router().counts().unmatched, 1);
    assert_eq!(*handler.troubles.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_that_asks_and_never_reads_does_not_fill_the_memory() {
    let handler = Arc::new(Pondering::default());
    let (session, _server) =
        Setup { pipe_bytes: 16, handler: Arc::clone(&handler) as _, ..Setup::default() }.start();
    for _ in 0..1030 {
        session.router().receive(br#"{"id":"p","method":"ping"}"#);
    }
    let troubles = handler.troubles.lock().unwrap().clone();
    assert_eq!(troubles, ["the server asks, and does not read the answers"; 6]);
}
