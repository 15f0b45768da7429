//! The inbox as it changes, as server-sent events.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::stream::{BoxStream, StreamExt as _};
use futures_util::{Stream, stream};
use haft::HumanInbox;
use haft::human_input::{CloseReason, InboxEvent, InboxItem};
use serde::Serialize;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Service;
use super::gather::{Gather, Listed};
use super::inbox::OpenItems;
use super::inbox_merged::MergedFeed;
use crate::serve::{Caller, PeerEvents};

/// Interval of keep-alive comments on a silent stream.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Follows the questions that wait for a person.
///
/// First an event `open` with those there are, as `GET /api/v1/inbox` has them; it comes again where a client
/// was too slow and missed something. Then `asked` with each new question, and `closed` with its `id` and
/// `how` it ended: `answered`, `refused`, `expired` or `withdrawn`. Where the service has several replicas, the events are
/// of all of them, and the questions of a replica that is gone are `withdrawn`.
#[utoipa::path(
    get, path = "/api/v1/inbox/events", operation_id = "follow_questions", tag = "inbox",
    responses((status = 200, description = "Events, until the client leaves or the service ends.", body = String, content_type = "text/event-stream"))
)]
pub(super) async fn events(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Gather(peers): Gather,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let feed = Feed::new(service.live.runtime().inbox().clone(), caller);
    let events: BoxStream<'static, Event> = match peers {
        Some((peers, request)) => {
            let live = peers.live();
            let feed = MergedFeed::new(feed, live, PeerEvents::open(peers, request));
            stream::unfold(feed, async |mut feed| Some((feed.next().await?, feed))).boxed()
        }
        None => {
            stream::unfold(feed, async |mut feed| Some((feed.next().await?.sent(), feed))).boxed()
        }
    };
    Sse::new(events.map(Ok)).keep_alive(KeepAlive::new().interval(ALIVE_EVERY))
}

/// The questions of this replica that a caller may see, as they change.
pub(super) struct Feed {
    inbox: HumanInbox,
    caller: Caller,
    update: Receiver<InboxEvent>,
    ready: VecDeque<FeedEvent>,
    /// Questions that were sent to the client, so that it receives `closed` only for these.
    told: HashSet<String>,
}

/// One event of a feed.
pub(super) enum FeedEvent {
    /// All open questions: at first, and after some events were missed.
    Open(Vec<InboxItem>),
    Asked(InboxItem),
    Closed {
        id: String,
        how: CloseReason,
    },
}

impl FeedEvent {
    fn sent(self) -> Event {
        match self {
            Self::Open(items) => {
                let items = items.into_iter().map(Listed::Own).collect();
                event("open", &OpenItems { items, replicas_missing: Vec::new() })
            }
            Self::Asked(item) => event("asked", &item),
            Self::Closed { id, how } => closed(&id, how),
        }
    }
}

impl Feed {
    fn new(inbox: HumanInbox, caller: Caller) -> Self {
        let (items, update) = inbox.follow();
        let (ready, told) = (VecDeque::new(), HashSet::new());
        let mut feed = Self { inbox, caller, update, ready, told };
        feed.tell_all(items);
        feed
    }

    /// The next event; nothing when the inbox is gone. Cancelling it loses nothing.
    pub(super) async fn next(&mut self) -> Option<FeedEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match self.update.recv().await {
                Ok(update) => self.take(update),
                Err(RecvError::Lagged(_)) => {
                    let (items, update) = self.inbox.follow();
                    self.update = update;
                    self.tell_all(items);
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn tell_all(&mut self, mut items: Vec<InboxItem>) {
        items.retain(|item| self.caller.may_see_question(item));
        self.told = items.iter().map(|item| item.id.clone()).collect();
        self.ready.push_back(FeedEvent::Open(items));
    }

    fn take(&mut self, update: InboxEvent) {
        match update {
            InboxEvent::Asked(item) if self.caller.may_see_question(&item) => {
                self.told.insert(item.id.clone());
                self.ready.push_back(FeedEvent::Asked(item));
            }
            InboxEvent::Closed { id, how } if self.told.remove(&id) => {
                self.ready.push_back(FeedEvent::Closed { id, how });
            }
            InboxEvent::Asked(_) | InboxEvent::Closed { .. } => {}
        }
    }
}

/// The event of a question that is closed.
pub(super) fn closed(id: &str, how: CloseReason) -> Event {
    event("closed", &json!({ "id": id, "how": how }))
}

/// An event with JSON data.
pub(super) fn event(name: &str, data: &impl Serialize) -> Event {
    // Strings, numbers and values that came from JSON: serialization cannot fail.
    let text = serde_json::to_string(data).unwrap_or_default();
    // On one line: the arguments of a call may have line ends between their parts.
    Event::default().event(name).data(haft_text::json_text::compact(&text))
}
