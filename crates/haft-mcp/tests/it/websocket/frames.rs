//! The traffic on the wire, frame by frame, against a server of the WebSocket library.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use haft_mcp::{
    Connector, Failure, Handler, Limits, MessageRouter, RefuseAll, RequestError, RequestOptions,
    Session, TransportError,
};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, coding::Data, coding::OpCode};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::connector;
use crate::suite::RecordingHandler;

type Server = WebSocketStream<TcpStream>;

/// A session and the server's end of it.
async fn pair(handler: Arc<dyn Handler>, limits: Limits) -> (Session, Server) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let router = MessageRouter::new(handler, limits);
    let connector = connector(&url);
    let accept = async {
        let (stream, _) = listener.accept().await.unwrap();
        tokio_tungstenite::accept_async(stream).await.unwrap()
    };
    let (transport, server) = tokio::join!(connector.open(router.clone()), accept);
    (Session::new(transport.unwrap(), router), server)
}

async fn simple_pair() -> (Session, Server) {
    pair(Arc::new(RefuseAll), Limits::default()).await
}

async fn ask(session: &Session) -> Result<String, RequestError> {
    let id = session.next_id();
    let answer = session.request(id, "test", "{}", RequestOptions::default()).await;
    answer.map(|answer| answer.get().to_owned())
}

/// The next message of the client.
async fn next(server: &mut Server) -> Value {
    let message = server.next().await.unwrap().unwrap();
    serde_json::from_str(message.to_text().unwrap()).unwrap()
}

#[tokio::test]
async fn text_binary_and_fragments_are_messages() {
    let (session, mut server) = simple_pair().await;
    let answers = async {
        for _ in 0..3 {
            next(&mut server).await;
        }
        server.send(Message::text(r#"{"id":1,"result":"text"}"#)).await.unwrap();
        let bytes = Bytes::from_static(br#"{"id":2,"result":"bytes"}"#);
        server.send(Message::Binary(bytes)).await.unwrap();
        // Frames in pieces, with a ping between them.
        let piece = |text: &'static str, code, is_last| {
            Message::Frame(Frame::message(text, OpCode::Data(code), is_last))
        };
        server.send(piece(r#"{"id":3,"#, Data::Text, false)).await.unwrap();
        server.send(Message::Ping(Bytes::from_static(b"between"))).await.unwrap();
        server.send(piece(r#""result":"pieces"}"#, Data::Continue, true)).await.unwrap();
        server.next().await.unwrap().unwrap()
    };
    let (first, second, third, pong) =
        tokio::join!(ask(&session), ask(&session), ask(&session), answers);
    let texts = [first.unwrap(), second.unwrap(), third.unwrap()];
    assert_eq!(texts, [r#""text""#, r#""bytes""#, r#""pieces""#]);
    assert_eq!(pong, Message::Pong(Bytes::from_static(b"between")));
}

#[tokio::test]
async fn a_frame_over_the_limit_ends_the_connection_before_it_is_read() {
    let limits = Limits { message_bytes_max: 1000, ..Limits::default() };
    let (session, mut server) = pair(Arc::new(RefuseAll), limits).await;
    let (answer, ()) = tokio::join!(ask(&session), async {
        server.send(Message::text("x".repeat(1001))).await.unwrap();
    });
    let expected = TransportError::after_sending(
        Failure::Protocol,
        "the server sent a message of more than 1000 bytes",
    );
    assert!(matches!(answer, Err(RequestError::Transport(error)) if error == expected));
    assert_eq!(session.router().ended(), Some(expected));
}

#[tokio::test]
async fn a_binary_frame_that_is_not_utf8_fails_its_own_call_only() {
    let (session, mut server) = simple_pair().await;
    let bytes = Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}");
    let (broken, ()) = tokio::join!(ask(&session), async {
        server.send(Message::Binary(bytes)).await.unwrap();
    });
    assert!(matches!(broken, Err(RequestError::Protocol { .. })), "{broken:?}");
    assert_eq!(session.router().ended(), None);
}

#[tokio::test]
async fn a_message_whose_sender_gave_up_is_still_whole() {
    let (session, mut server) = simple_pair().await;
    // Far more than the sockets hold, and the server reads nothing.
    let params = json!({"text": "x".repeat(12 * 1024 * 1024)}).to_string();
    let options =
        RequestOptions { timeout: Some(Duration::from_millis(50)), ..RequestOptions::default() };
    let answer = session.request(session.next_id(), "large", &params, options).await;
    assert!(matches!(answer, Err(RequestError::Timeout { .. })), "{answer:?}");
    let (told, received) = tokio::join!(session.notify("after", "{}"), async {
        [next(&mut server).await, next(&mut server).await, next(&mut server).await]
    });
    told.unwrap();
    assert_eq!(received[0]["params"].to_string(), params);
    let mut after: Vec<&Value> = received[1..].iter().map(|message| &message["method"]).collect();
    after.sort_by_key(ToString::to_string);
    assert_eq!(after, ["after", "notifications/cancelled"]);
}

#[tokio::test]
async fn goodbyes_are_said_on_both_sides() {
    let received = Arc::new(RecordingHandler::default());
    let (session, mut server) = pair(Arc::clone(&received) as _, Limits::default()).await;
    let ours = TransportError::unsent(Failure::Closed, "enough");
    let (pending, (), frame) = tokio::join!(ask(&session), session.close(ours), async {
        let _request = next(&mut server).await;
        let frame = server.next().await.unwrap().unwrap();
        // Reading on answers the goodbye.
        assert!(server.next().await.is_none());
        frame
    });
    let normal = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    assert_eq!(frame, Message::Close(Some(normal)));
    // The request was sent, so the server may have acted on it.
    let lost = TransportError::after_sending(Failure::Closed, "enough");
    assert!(matches!(pending, Err(RequestError::Transport(error)) if error == lost));
    assert_eq!(*received.endings.lock().unwrap(), ["enough"]);

    let (session, mut server) = simple_pair().await;
    let theirs = CloseFrame { code: CloseCode::Away, reason: "update".into() };
    let (pending, echoed) = tokio::join!(ask(&session), async {
        server.close(Some(theirs)).await.unwrap();
        loop {
            match server.next().await {
                Some(Ok(Message::Close(frame))) => return frame,
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    });
    assert_eq!(
        pending.unwrap_err().to_string(),
        "the server closed the connection (code 1001): update"
    );
    assert_eq!(echoed.unwrap().code, CloseCode::Away);
}

/// Time runs ahead as soon as everything waits, so this ends only because there is a limit.
#[tokio::test]
async fn a_server_that_does_not_answer_the_goodbye_is_left_without() {
    let (session, _silent) = simple_pair().await;
    tokio::time::pause();
    session.close(TransportError::unsent(Failure::Closed, "enough")).await;
    assert_eq!(session.router().ended().unwrap().message, "enough");
}

/// The server is not polled, so it answers no ping; and time runs ahead to the limit.
#[tokio::test]
async fn a_server_without_pongs_is_given_up() {
    let (session, mut silent) = simple_pair().await;
    tokio::time::pause();
    let expected =
        TransportError::after_sending(Failure::Closed, "the server answered no ping within 30s");
    let answer = ask(&session).await;
    assert!(matches!(answer, Err(RequestError::Transport(error)) if error == expected));
    assert_eq!(next(&mut silent).await["method"], "test");
    assert_eq!(silent.next().await.unwrap().unwrap(), Message::Ping(Bytes::new()));
}
