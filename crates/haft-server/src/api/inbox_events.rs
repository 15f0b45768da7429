//! The inbox as it changes, as server-sent events.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, stream};
use haft::HumanInbox;
use haft::human_input::{InboxEvent, InboxItem};
use serde::Serialize;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Service;
use super::inbox::OpenItems;
use crate::serve::Caller;

/// Interval of keep-alive comments on a silent stream.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Follows the questions that wait for a person.
///
/// First an event `open` with those there are, as `GET /api/v1/inbox` has them; it comes again where a client
/// was too slow and missed something. Then `asked` with each new question, and `closed` with its `id` and
/// `how` it ended: `answered`, `refused`, `expired` or `withdrawn`.
#[utoipa::path(
    get, path = "/api/v1/inbox/events", operation_id = "follow_questions", tag = "inbox",
    responses((status = 200, description = "Events, until the client leaves or the service ends.", body = String, content_type = "text/event-stream"))
)]
pub(super) async fn events(
    State(service): State<Arc<Service>>,
    caller: Caller,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let feed = Feed::new(service.live.runtime().inbox().clone(), caller);
    let events = stream::unfold(feed, async |mut feed| Some((Ok(feed.next().await?), feed)));
    Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE_EVERY))
}

struct Feed {
    inbox: HumanInbox,
    caller: Caller,
    update: Receiver<InboxEvent>,
    ready: VecDeque<Event>,
    /// Questions that were sent to the client, so that it receives `closed` only for these.
    told: HashSet<String>,
}

impl Feed {
    fn new(inbox: HumanInbox, caller: Caller) -> Self {
        let (items, update) = inbox.follow();
        let (ready, told) = (VecDeque::new(), HashSet::new());
        let mut feed = Self { inbox, caller, update, ready, told };
        feed.tell_all(items);
        feed
    }

    /// The next event; nothing when the inbox is gone.
    async fn next(&mut self) -> Option<Event> {
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
        self.ready.push_back(event("open", &OpenItems { items }));
    }

    fn take(&mut self, update: InboxEvent) {
        match update {
            InboxEvent::Asked(item) if self.caller.may_see_question(&item) => {
                self.ready.push_back(event("asked", &item));
                self.told.insert(item.id);
            }
            InboxEvent::Closed { id, how } if self.told.remove(&id) => {
                self.ready.push_back(event("closed", &json!({ "id": id, "how": how })));
            }
            InboxEvent::Asked(_) | InboxEvent::Closed { .. } => {}
        }
    }
}

fn event(name: &str, data: &impl Serialize) -> Event {
    // Strings, numbers and values that came from JSON: serialization cannot fail.
    let text = serde_json::to_string(data).unwrap_or_default();
    // On one line: the arguments of a call may have line ends between their parts.
    Event::default().event(name).data(haft_text::json_text::compact(&text))
}
