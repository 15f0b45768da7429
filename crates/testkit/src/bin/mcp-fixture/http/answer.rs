//! The forms an HTTP answer takes.

use std::sync::Arc;

use axum::response::Response;
use serde_json::Value;

use super::session::Session;
use crate::channel::{Frame, Frames, Peer, acknowledge};
use crate::events;
use crate::gate::{plain, typed};
use crate::scenario::{Answer, Era};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Answers a request with the frames that come of it.
pub async fn answer(form: Answer, era: Era, peer: &Peer, mut frames: Frames) -> Response {
    match form {
        Answer::Sse => stream(Vec::new(), frames),
        Answer::Json => loop {
            match frames.recv().await {
                Some(Frame::Message(message)) if is_answer(&message) => return json(era, &message),
                Some(Frame::Message(message)) => drop(peer.general.message(message)),
                Some(Frame::Raw(bytes)) => return typed(200, JSON, bytes),
                Some(Frame::Flushed(done)) => acknowledge(done),
                Some(Frame::Close) | None => return plain(500, "no answer"),
            }
        },
        Answer::Auto => loop {
            match frames.recv().await {
                Some(Frame::Message(message)) if is_answer(&message) => return json(era, &message),
                Some(Frame::Message(message)) => {
                    return stream(events::event(message.to_string().as_bytes()), frames);
                }
                Some(Frame::Raw(bytes)) => return typed(200, JSON, bytes),
                Some(Frame::Flushed(done)) => acknowledge(done),
                Some(Frame::Close) | None => return plain(500, "no answer"),
            }
        },
    }
}

/// A stream that ends before the answer.
pub fn interrupted(id: &str, retry_ms: Option<u64>) -> Response {
    let retry = retry_ms.map(|ms| format!("retry: {ms}\n")).unwrap_or_default();
    typed(200, EVENTS, format!("id: {id}\n{retry}data: \n\n"))
}

/// The rest of a stream.
pub fn resumed(frames: Frames) -> Response {
    stream(Vec::new(), frames)
}

/// The GET stream of a session, which only one request can hold.
pub fn general(session: &Arc<Session>) -> Response {
    match Arc::clone(&session.general).try_lock_owned() {
        // A comment first, so that the headers leave at once.
        Ok(frames) => typed(200, EVENTS, events::body(b": open\n\n".to_vec(), frames)),
        Err(_) => plain(409, "there is a GET stream already"),
    }
}

fn stream(first: Vec<u8>, frames: Frames) -> Response {
    typed(200, EVENTS, events::body(first, Box::new(frames)))
}

fn json(era: Era, message: &Value) -> Response {
    typed(status(era, message), JSON, message.to_string())
}

/// Legacy errors travel with 200; the modern era maps some to a status.
fn status(era: Era, message: &Value) -> u16 {
    let text = message["error"]["message"].as_str().unwrap_or_default();
    match message["error"]["code"].as_i64() {
        _ if era != Era::Modern => 200,
        Some(-32601) => 404,
        Some(-32022..=-32020) => 400,
        Some(-32602) if text.contains("`_meta`") => 400,
        _ => 200,
    }
}

fn is_answer(message: &Value) -> bool {
    message.get("method").is_none()
}
