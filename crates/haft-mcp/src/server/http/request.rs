//! One request over HTTP: a single answer if there are no notifications, otherwise a stream of events.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use http::StatusCode;
use serde_json::value::RawValue;
use tokio_util::task::TaskTracker;

use super::replay_buffer::{KEEP_ALIVE, KEEP_ALIVE_EVERY, event};
use super::session::Session;
use super::{Reply, ReplyBody};
use crate::error::{
    HEADER_MISMATCH, METHOD_NOT_FOUND, MISSING_CAPABILITY, RpcError, UNSUPPORTED_VERSION,
};
use crate::handler::BoxFuture;
use crate::server::dispatch::{Completion, Extracted, RawRequest, RequestHandler, known_method};
use crate::server::meta::RequestMeta;
use crate::server::modern::Completed;
use crate::server::outbox;
use crate::server::params::Params;
use crate::server::peer::{ClientFacts, Out};
use crate::wire;

/// Messages that may wait for a slow reader.
const WAITING_MAX: usize = 256;
/// Time before a pending answer becomes a stream with keep-alives. Proxies give up on silent connections.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// Time for a client that lost its stream to reconnect before its request is cancelled.
const COME_BACK_WITHIN: Duration = Duration::from_secs(5);
/// JSON-RPC: the request was cancelled.
const CANCELLED: i64 = -32800;

/// A request of the modern era: dropping the answer, stream or not, cancels it.
pub(super) async fn modern(
    handler: &Arc<RequestHandler>,
    facts: ClientFacts,
    request_meta: RequestMeta,
    raw: RawRequest<'_>,
    params: &Params<'_>,
    accepts_events: bool,
) -> Reply {
    let (out, mut told) = outbox::channel(WAITING_MAX);
    let id = raw.id.to_owned();
    let mut work: BoxFuture<'static, Completion> = {
        let (handler, extracted) = (Arc::clone(handler), Extracted::of(raw.method, params));
        let (raw, out) = (Owned::of(raw), Out::Request(out));
        Box::pin(async move {
            handler.modern(facts, request_meta, raw.borrowed(), extracted?, out).await
        })
    };
    if !accepts_events {
        drop(told);
        return answered(&id, work.await);
    }
    let stream_state = tokio::select! {
        biased;
        answer = &mut work => match told.try_recv() {
            // Notification and answer arrived together. The notification is not lost.
            Some(first) => ResponseStream::Answered { answer: message(&id, answer), told, first: Some(first) },
            None => return answered(&id, answer),
        },
        first = told.recv() => ResponseStream::Running { work, told, id, first: Some(first) },
        () = tokio::time::sleep(SILENCE_MAX) => ResponseStream::Running { work, told, id, first: None },
    };
    let events = Box::pin(stream::unfold(stream_state, ResponseStream::next));
    let body = if raw.method == "subscriptions/listen" {
        ReplyBody::Notifications(events)
    } else {
        ReplyBody::Response(events)
    };
    Reply::streamed(body)
}

/// A request as it came, to keep.
struct Owned {
    id: Box<RawValue>,
    method: Cow<'static, str>,
    params: Option<Box<RawValue>>,
}

impl Owned {
    fn of(raw: RawRequest<'_>) -> Self {
        Self {
            id: raw.id.to_owned(),
            method: known_method(raw.method),
            params: raw.params.map(ToOwned::to_owned),
        }
    }

    fn borrowed(&self) -> RawRequest<'_> {
        RawRequest { id: &self.id, method: &self.method, params: self.params.as_deref() }
    }
}

/// The answer alone, with the status its era wants for it.
fn answered(id: &RawValue, answer: Completion) -> Reply {
    match answer {
        Ok(_) => Reply::json(StatusCode::OK, message(id, answer)),
        Err(error) => {
            let status = match error.code {
                HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION => {
                    StatusCode::BAD_REQUEST
                }
                METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
                _ => StatusCode::OK,
            };
            Reply::refusal(status, Some(id), &error)
        }
    }
}

fn message(id: &RawValue, answer: Result<impl Into<Completed>, RpcError>) -> String {
    match answer.map(Into::into) {
        Ok(Completed { result, added }) => wire::response_with(id, &result, &added),
        Err(error) => wire::error_response(id, &error),
    }
}

/// State of a response stream.
enum ResponseStream {
    Running {
        work: BoxFuture<'static, Completion>,
        told: outbox::Receiver<String>,
        id: Box<RawValue>,
        first: Option<String>,
    },
    Answered {
        answer: String,
        told: outbox::Receiver<String>,
        first: Option<String>,
    },
    Told,
}

impl ResponseStream {
    async fn next(self) -> Option<(String, Self)> {
        let mut stream_state = self;
        loop {
            stream_state = match stream_state {
                Self::Running { work, told, id, first: Some(first) } => {
                    return Some((event(first), Self::Running { work, told, id, first: None }));
                }
                Self::Running { mut work, mut told, id, first: None } => tokio::select! {
                    biased;
                    it = told.recv() => {
                        return Some((event(it), Self::Running { work, told, id, first: None }));
                    }
                    answer = &mut work => {
                        Self::Answered { answer: message(&id, answer), told, first: None }
                    }
                    () = tokio::time::sleep(KEEP_ALIVE_EVERY) => {
                        let alive = KEEP_ALIVE.to_owned();
                        return Some((alive, Self::Running { work, told, id, first: None }));
                    }
                },
                // Late notifications come before the answer.
                Self::Answered { answer, mut told, first } => {
                    return Some(match first.or_else(|| told.try_recv()) {
                        Some(it) => (event(it), Self::Answered { answer, told, first: None }),
                        None => (event(answer), Self::Told),
                    });
                }
                Self::Told => return None,
            }
        }
    }
}

/// A request of the legacy era. A single answer goes with its connection; a stream may be lost and resumed, so the
/// request continues for a while without a reader.
pub(super) async fn legacy(
    handler: &Arc<RequestHandler>,
    session: &Arc<Session>,
    raw: RawRequest<'_>,
    params: &Params<'_>,
    accepts_events: bool,
    tasks: &TaskTracker,
) -> Reply {
    let in_flight = match session.begin(raw.id) {
        Ok(in_flight) => in_flight,
        Err(error) => return Reply::refusal(StatusCode::BAD_REQUEST, Some(raw.id), &error),
    };
    let cancelled = Arc::clone(&in_flight.cancelled);
    let (out, mut told) = outbox::channel(WAITING_MAX);
    let id = raw.id.to_owned();
    let mut work = handler.legacy(&session.client, raw, params, Out::Request(out));
    if !accepts_events {
        told.close();
    }
    let first = tokio::select! {
        biased;
        answer = &mut work => {
            let answer = message(&id, answer);
            // Notification and answer arrived together. The notification is not lost.
            return match told.try_recv() {
                Some(first) if accepts_events => notified_and_answered(session, first, &mut told, answer),
                Some(_) | None => Reply::json(StatusCode::OK, answer),
            };
        }
        () = cancelled.wait() => {
            let error = RpcError::new(CANCELLED, "the request was cancelled");
            return Reply::refusal(StatusCode::OK, Some(&id), &error);
        }
        first = told.recv(), if accepts_events => Some(first),
        () = tokio::time::sleep(SILENCE_MAX), if accepts_events => None,
    };
    let buffer = session.open_stream();
    let events = buffer.read(Some(0), session.primes(), session.in_use());
    tasks.spawn(async move {
        if let Some(first) = first {
            buffer.push(first);
        }
        let abandoned = buffer.abandoned(COME_BACK_WITHIN);
        tokio::pin!(abandoned);
        loop {
            tokio::select! {
                biased;
                // A client that cancels a request does not want its answer either.
                () = cancelled.wait() => break,
                () = &mut abandoned => break,
                it = told.recv() => buffer.push(it),
                answer = &mut work => {
                    while let Some(it) = told.try_recv() {
                        buffer.push(it);
                    }
                    // A client may use the id again as soon as it has the answer.
                    drop(in_flight);
                    buffer.push(message(&id, answer));
                    break;
                }
            }
        }
        buffer.finish();
    });
    Reply::streamed(ReplyBody::Response(events))
}

/// A stream of what is known to its end already.
fn notified_and_answered(
    session: &Arc<Session>,
    first: String,
    told: &mut outbox::Receiver<String>,
    answer: String,
) -> Reply {
    let buffer = session.open_stream();
    buffer.push(first);
    while let Some(it) = told.try_recv() {
        buffer.push(it);
    }
    buffer.push(answer);
    buffer.finish();
    let events = buffer.read(Some(0), session.primes(), session.in_use());
    Reply::streamed(ReplyBody::Response(events))
}
