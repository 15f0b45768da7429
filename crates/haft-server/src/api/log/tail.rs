//! The log as it grows, as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::stream::{BoxStream, StreamExt as _};
use futures_util::{Stream, stream};
use haft::record::{Follow, LogError, LoggedCall};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::super::gather::Gather;
use super::{Service, Which, dir, unreadable};
use crate::serve::{PeerEvent, PeerEvents, PeerUpdate, Problem, Query};

/// Interval between reads of the log.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Interval of keep-alive comments on a silent stream.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Calls from now on, each as an event `call` when it is over. `limit` and `newest_first` have no effect here. An
/// event `problem` reports that the log cannot be read for now; the stream stays open. Where the service has several
/// replicas, the calls are of all of them.
#[utoipa::path(
    get, path = "/api/v1/log/tail", operation_id = "follow_log", tag = "log", params(Which),
    responses(
        (status = 200, description = "Events, until the client leaves or the service ends.", body = String, content_type = "text/event-stream"),
        (status = 503, description = "The log cannot be read."),
    )
)]
pub(super) async fn tail(
    State(service): State<Arc<Service>>,
    Query(which): Query<Which>,
    Gather(peers): Gather,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let (dir, filter) = (dir(&service), which.filter()?);
    let follow = spawn_blocking(move || Follow::new(dir, filter)).await;
    let follow = follow.map_err(|_| Problem::internal())?.map_err(|error| unreadable(&error))?;
    let tail = Tail { follow, ready: VecDeque::new(), trouble: None };
    let own = stream::unfold(tail, Tail::next);
    let events: BoxStream<'static, Event> = match peers {
        Some((peers, request)) => {
            let others = stream::unfold(PeerEvents::open(peers, request), other_call);
            stream::select(own, others).boxed()
        }
        None => own.boxed(),
    };
    Ok(Sse::new(events.map(Ok)).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)))
}

/// The next event of another replica, as it came.
async fn other_call(mut others: PeerEvents) -> Option<(Event, PeerEvents)> {
    loop {
        if let PeerUpdate::Event(_, PeerEvent { name, id, data }) = others.next().await {
            let event = Event::default().event(name).data(data);
            let event = id.into_iter().fold(event, Event::id);
            return Some((event, others));
        }
    }
}

struct Tail {
    follow: Follow,
    ready: VecDeque<LoggedCall>,
    /// The last reported problem of the log, so that it is reported once.
    trouble: Option<String>,
}

impl Tail {
    /// The next event. Dropping the future ends the stream.
    async fn next(mut self) -> Option<(Event, Self)> {
        loop {
            if let Some(call) = self.ready.pop_front() {
                let event = Event::default().event("call").id(&call.execution_id);
                return Some((event.json_data(&call).ok()?, self));
            }
            let mut follow = self.follow;
            let (polled, follow) = spawn_blocking(move || (follow.poll(), follow)).await.ok()?;
            self.follow = follow;
            if let Some(problem) = self.take(polled) {
                return Some((Event::default().event("problem").data(problem), self));
            }
            if self.ready.is_empty() {
                sleep(LOOK_EVERY).await;
            }
        }
    }

    /// Queues the calls that were read; reports a problem if it is new.
    fn take(&mut self, polled: Result<Vec<LoggedCall>, LogError>) -> Option<String> {
        match polled {
            Ok(calls) => {
                self.ready.extend(calls);
                self.trouble = None;
                None
            }
            Err(error) => {
                let problem = error.problem();
                let is_news = self.trouble.as_ref() != Some(&problem);
                self.trouble = Some(problem.clone());
                is_news.then_some(problem)
            }
        }
    }
}
