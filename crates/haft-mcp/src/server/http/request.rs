//! One request over HTTP: a single answer where nothing else is to be said, a stream of events else.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use http::StatusCode;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::log::{SIGN_OF_LIFE, SIGN_OF_LIFE_EVERY, event};
use super::session::Session;
use super::{Reply, ReplyBody};
use crate::error::{
    HEADER_MISMATCH, METHOD_NOT_FOUND, MISSING_CAPABILITY, RpcError, UNSUPPORTED_VERSION,
};
use crate::handler::BoxFuture;
use crate::server::desk::{Answer, Asked, Desk};
use crate::server::meta::Wishes;
use crate::server::peer::ClientFacts;
use crate::wire;

/// How many messages may wait for a slow reader.
const WAITING_MAX: usize = 256;
/// How long an answer may take before the client gets a stream that shows signs of life. What stands
/// between gives up on connections that are silent.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// How long a client that lost its stream may take to come back before its request is cancelled.
const COME_BACK_WITHIN: Duration = Duration::from_secs(5);
/// JSON-RPC: the request was cancelled.
const CANCELLED: i64 = -32800;

/// A request of the modern era: dropping the answer, stream or not, cancels it.
pub(super) async fn modern(
    desk: &Arc<Desk>,
    facts: ClientFacts,
    wishes: Wishes,
    asked: Asked<'_>,
    accepts_events: bool,
) -> Reply {
    let (out, mut told) = mpsc::channel(WAITING_MAX);
    let id = asked.id.to_owned();
    let mut work: BoxFuture<'static, Answer> = {
        let (desk, asked) = (Arc::clone(desk), Owned::of(asked));
        Box::pin(async move { desk.modern(facts, wishes, asked.borrowed(), out).await })
    };
    if !accepts_events {
        drop(told);
        return answered(&id, work.await);
    }
    let course = tokio::select! {
        biased;
        answer = &mut work => match told.try_recv() {
            // It was told and answered in one go. What was told is not lost for that.
            Ok(first) => Course::Answered { answer: message(&id, answer), told, first: Some(first) },
            Err(_) => return answered(&id, answer),
        },
        Some(first) = told.recv() => Course::Running { work, told, id, first: Some(first) },
        () = tokio::time::sleep(SILENCE_MAX) => Course::Running { work, told, id, first: None },
    };
    let events = Box::pin(stream::unfold(course, Course::next));
    let body = if asked.method == "subscriptions/listen" {
        ReplyBody::News(events)
    } else {
        ReplyBody::Course(events)
    };
    Reply { status: StatusCode::OK, session: None, body }
}

/// A request as it came, to keep.
struct Owned {
    id: Box<RawValue>,
    method: String,
    params: Option<Box<RawValue>>,
}

impl Owned {
    fn of(asked: Asked<'_>) -> Self {
        Self {
            id: asked.id.to_owned(),
            method: asked.method.to_owned(),
            params: asked.params.map(ToOwned::to_owned),
        }
    }

    fn borrowed(&self) -> Asked<'_> {
        Asked { id: &self.id, method: &self.method, params: self.params.as_deref() }
    }
}

/// The answer alone, with the status its era wants for it.
fn answered(id: &RawValue, answer: Answer) -> Reply {
    match answer {
        Ok(result) => Reply::json(StatusCode::OK, wire::response(id, &result)),
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

fn message(id: &RawValue, answer: Answer) -> String {
    match answer {
        Ok(result) => wire::response(id, &result),
        Err(error) => wire::error_response(id, &error),
    }
}

/// How far the telling of a request is.
enum Course {
    Running {
        work: BoxFuture<'static, Answer>,
        told: mpsc::Receiver<String>,
        id: Box<RawValue>,
        first: Option<String>,
    },
    Answered {
        answer: String,
        told: mpsc::Receiver<String>,
        first: Option<String>,
    },
    Told,
}

impl Course {
    async fn next(self) -> Option<(String, Self)> {
        let mut course = self;
        loop {
            course = match course {
                Self::Running { work, told, id, first: Some(first) } => {
                    return Some((event(first), Self::Running { work, told, id, first: None }));
                }
                Self::Running { mut work, mut told, id, first: None } => tokio::select! {
                    biased;
                    Some(it) = told.recv() => {
                        return Some((event(it), Self::Running { work, told, id, first: None }));
                    }
                    answer = &mut work => {
                        Self::Answered { answer: message(&id, answer), told, first: None }
                    }
                    () = tokio::time::sleep(SIGN_OF_LIFE_EVERY) => {
                        let alive = SIGN_OF_LIFE.to_owned();
                        return Some((alive, Self::Running { work, told, id, first: None }));
                    }
                },
                // What was told in the last moment comes before the answer.
                Self::Answered { answer, mut told, first } => {
                    return Some(match first.or_else(|| told.try_recv().ok()) {
                        Some(it) => (event(it), Self::Answered { answer, told, first: None }),
                        None => (event(answer), Self::Told),
                    });
                }
                Self::Told => return None,
            }
        }
    }
}

/// A request of the legacy era. A single answer goes with its connection; a stream may be lost and taken
/// up again, so the request goes on for a while without a reader.
pub(super) async fn legacy(
    desk: &Arc<Desk>,
    session: &Arc<Session>,
    asked: Asked<'_>,
    accepts_events: bool,
    tasks: &TaskTracker,
) -> Reply {
    let under_way = match session.begin(asked.id) {
        Ok(under_way) => under_way,
        Err(error) => return Reply::refusal(StatusCode::BAD_REQUEST, Some(asked.id), &error),
    };
    let cancelled = under_way.cancelled.clone();
    let (out, mut told) = mpsc::channel(WAITING_MAX);
    let id = asked.id.to_owned();
    let mut work: BoxFuture<'static, Answer> = {
        let (desk, asked, client) =
            (Arc::clone(desk), Owned::of(asked), Arc::clone(&session.client));
        Box::pin(async move { desk.legacy(&client, asked.borrowed(), out).await })
    };
    if !accepts_events {
        told.close();
    }
    let first = tokio::select! {
        biased;
        answer = &mut work => {
            let answer = message(&id, answer);
            // It was told and answered in one go. What was told is not lost for that.
            return match told.try_recv() {
                Ok(first) if accepts_events => told_and_answered(session, first, &mut told, answer),
                Ok(_) | Err(_) => Reply::json(StatusCode::OK, answer),
            };
        }
        () = cancelled.cancelled() => {
            let error = RpcError::new(CANCELLED, "the request was cancelled");
            return Reply::refusal(StatusCode::OK, Some(&id), &error);
        }
        Some(first) = told.recv(), if accepts_events => Some(first),
        () = tokio::time::sleep(SILENCE_MAX), if accepts_events => None,
    };
    let log = session.open_stream();
    let events = log.read(Some(0), session.primes(), session.in_use());
    tasks.spawn(async move {
        if let Some(first) = first {
            log.push(first);
        }
        let abandoned = log.abandoned(COME_BACK_WITHIN);
        tokio::pin!(abandoned);
        loop {
            tokio::select! {
                biased;
                // Whoever cancels a request does not want its answer either.
                () = cancelled.cancelled() => break,
                () = &mut abandoned => break,
                Some(it) = told.recv() => log.push(it),
                answer = &mut work => {
                    while let Ok(it) = told.try_recv() {
                        log.push(it);
                    }
                    // A client may use the id again as soon as it has the answer.
                    drop(under_way);
                    log.push(message(&id, answer));
                    break;
                }
            }
        }
        log.finish();
    });
    Reply { status: StatusCode::OK, session: None, body: ReplyBody::Course(events) }
}

/// A stream of what is known to its end already.
fn told_and_answered(
    session: &Arc<Session>,
    first: String,
    told: &mut mpsc::Receiver<String>,
    answer: String,
) -> Reply {
    let log = session.open_stream();
    log.push(first);
    while let Ok(it) = told.try_recv() {
        log.push(it);
    }
    log.push(answer);
    log.finish();
    let events = log.read(Some(0), session.primes(), session.in_use());
    Reply { status: StatusCode::OK, session: None, body: ReplyBody::Course(events) }
}
