//! A call as a stream of events: that it began, how far it is, and its answer.

use std::convert::Infallible;
use std::pin::Pin;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use haft::{Envelope, Progress, Runtime, ToolCall};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;

use super::remedy;
use crate::serve::EndsByItself;

/// Reports that may wait for a slow reader. More are dropped, because a later report supersedes them.
const WAITING_MAX: usize = 64;

/// Runs a call and streams its events. Dropping the response, as happens when the client disconnects, cancels the
/// call.
pub(super) fn stream(runtime: Runtime, call: ToolCall) -> Response {
    let (sender, events) = mpsc::channel(WAITING_MAX);
    let send_start = sender.clone();
    let call = call
        // The first thing in an empty queue, so there is room for it.
        .on_start(move |id| drop(send_start.try_send(CallEvent::Started(id.to_owned()))))
        .on_progress(move |progress| drop(sender.try_send(CallEvent::Progress(progress))));
    let running = async move {
        let mut envelope = runtime.call(call).await;
        remedy::render(&mut envelope);
        envelope
    };
    let running = CallStream::Running(Box::pin(running), events);
    let events = stream::unfold(running, CallStream::next);
    let mut response = Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    response.extensions_mut().insert(EndsByItself);
    response
}

/// An event before the result.
enum CallEvent {
    Started(String),
    Progress(Progress),
}

/// State of the event stream.
enum CallStream {
    Running(Pin<Box<dyn Future<Output = Envelope> + Send>>, mpsc::Receiver<CallEvent>),
    Answered(Box<Envelope>, mpsc::Receiver<CallEvent>),
    Finished,
}

impl CallStream {
    async fn next(self) -> Option<(Result<Event, Infallible>, Self)> {
        let mut state = self;
        loop {
            state = match state {
                Self::Running(mut call, mut events) => tokio::select! {
                    biased;
                    Some(it) = events.recv() => return Some((Ok(it.event()), Self::Running(call, events))),
                    envelope = &mut call => Self::Answered(Box::new(envelope), events),
                },
                Self::Answered(envelope, mut events) => {
                    return Some(match events.try_recv() {
                        Ok(it) => (Ok(it.event()), Self::Answered(envelope, events)),
                        Err(_) => (Ok(event("result", &envelope)), Self::Finished),
                    });
                }
                Self::Finished => return None,
            }
        }
    }
}

impl CallEvent {
    fn event(&self) -> Event {
        match self {
            Self::Started(id) => event("started", &json!({ "execution_id": id })),
            Self::Progress(progress) => event("progress", progress),
        }
    }
}

fn event(name: &str, data: &impl Serialize) -> Event {
    // Strings, numbers and values that came from JSON: serialization cannot fail.
    let text = serde_json::to_string(data).unwrap_or_default();
    // On one line: what a tool answered may have line ends between its parts.
    Event::default().event(name).data(haft_text::json_text::compact(&text))
}
