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

use crate::serve::EndsByItself;

/// How many reports may wait for a slow reader. More are left out: a later one says more.
const WAITING_MAX: usize = 64;

/// Runs a call and tells its course. Dropping the answer, as happens when the client goes away, cancels it.
pub(super) fn stream(runtime: Runtime, call: ToolCall) -> Response {
    let (tell, news) = mpsc::channel(WAITING_MAX);
    let tell_start = tell.clone();
    let call = call
        // The first thing in an empty queue, so there is room for it.
        .on_start(move |id| drop(tell_start.try_send(News::Started(id.to_owned()))))
        .on_progress(move |progress| drop(tell.try_send(News::Progress(progress))));
    let running = Course::Running(Box::pin(async move { runtime.call(call).await }), news);
    let events = stream::unfold(running, Course::next);
    let mut response = Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    response.extensions_mut().insert(EndsByItself);
    response
}

/// What is told before the answer.
enum News {
    Started(String),
    Progress(Progress),
}

/// How far the telling is.
enum Course {
    Running(Pin<Box<dyn Future<Output = Envelope> + Send>>, mpsc::Receiver<News>),
    Answered(Box<Envelope>, mpsc::Receiver<News>),
    Told,
}

impl Course {
    async fn next(self) -> Option<(Result<Event, Infallible>, Self)> {
        let mut course = self;
        loop {
            course = match course {
                Self::Running(mut call, mut news) => tokio::select! {
                    biased;
                    Some(it) = news.recv() => return Some((Ok(it.event()), Self::Running(call, news))),
                    envelope = &mut call => Self::Answered(Box::new(envelope), news),
                },
                Self::Answered(envelope, mut news) => {
                    return Some(match news.try_recv() {
                        Ok(it) => (Ok(it.event()), Self::Answered(envelope, news)),
                        Err(_) => (Ok(event("result", &envelope)), Self::Told),
                    });
                }
                Self::Told => return None,
            }
        }
    }
}

impl News {
    fn event(&self) -> Event {
        match self {
            Self::Started(id) => event("started", &json!({ "execution_id": id })),
            Self::Progress(progress) => event("progress", progress),
        }
    }
}

fn event(name: &str, data: &impl Serialize) -> Event {
    // Texts, numbers and what was JSON before: writing it cannot fail.
    let text = serde_json::to_string(data).unwrap_or_default();
    // On one line: what a tool answered may have line ends between its parts.
    Event::default().event(name).data(haft::json_text::compact(&text))
}
