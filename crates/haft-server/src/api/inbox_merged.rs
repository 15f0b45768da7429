//! The inboxes of all replicas as one stream of events.

use std::collections::{HashMap, HashSet, VecDeque};

use axum::response::sse::Event;
use haft::ReplicaNumber;
use haft::human_input::{CloseReason, InboxItem};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::gather::{Identified as _, Listed, id_of};
use super::inbox::OpenItems;
use super::inbox_events::{Feed, FeedEvent, closed, event};
use crate::serve::{GATHER_TIMEOUT, PeerEvent, PeerEvents, PeerUpdate};

/// The questions of all replicas. The first event has those of every replica that answered in time. From then on each
/// replica contributes its changes, and one that answers late, or again, the difference.
pub(super) struct MergedFeed {
    own: Feed,
    others: PeerEvents,
    /// The replicas that the first event waits for. Nothing after it.
    waiting: Option<HashSet<ReplicaNumber>>,
    /// The questions that the client knows, by their replica; none is this one.
    told: HashMap<Option<ReplicaNumber>, HashSet<String>>,
    ready: VecDeque<Event>,
}

/// A change at one replica.
enum Change {
    /// All its open questions.
    Open(Vec<(String, Listed<InboxItem>)>),
    Asked(String, Listed<InboxItem>),
    /// With the event that reports it.
    Closed(String, Event),
}

impl MergedFeed {
    /// Waits for the replicas in `live` before the first event.
    pub(super) fn new(own: Feed, live: Vec<ReplicaNumber>, others: PeerEvents) -> Self {
        let waiting = Some(live.into_iter().collect());
        Self { own, others, waiting, told: HashMap::new(), ready: VecDeque::new() }
    }

    /// The next event; nothing when the inbox here is gone.
    pub(super) async fn next(&mut self) -> Option<Event> {
        if let Some(waiting) = self.waiting.take() {
            return self.first(waiting).await;
        }
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            tokio::select! {
                own = self.own.next() => self.take(None, own?.into()),
                update = self.others.next() => self.take_update(update),
            }
        }
    }

    /// The open questions of all replicas that answer in time.
    async fn first(&mut self, mut waiting: HashSet<ReplicaNumber>) -> Option<Event> {
        let until = Instant::now() + GATHER_TIMEOUT;
        let mut items = Vec::new();
        if let Change::Open(own) = self.own.next().await?.into() {
            self.know(None, &own);
            items.extend(own);
        }
        let mut later = Vec::new();
        while !waiting.is_empty()
            && let Ok(update) = timeout_at(until, self.others.next()).await
        {
            match update {
                PeerUpdate::Event(number, event) if waiting.contains(&number) => {
                    if let Some(Change::Open(open)) = Change::of(event) {
                        waiting.remove(&number);
                        self.know(Some(number), &open);
                        items.extend(open);
                    }
                }
                PeerUpdate::Left(number) if waiting.remove(&number) => {}
                other => later.push(other),
            }
        }
        items.sort_by(|(one, _), (other, _)| one.cmp(other));
        let items = items.into_iter().map(|(_, item)| item).collect();
        let mut replicas_missing: Vec<u16> = waiting.into_iter().map(ReplicaNumber::get).collect();
        replicas_missing.sort_unstable();
        for update in later {
            self.take_update(update);
        }
        Some(event("open", &OpenItems { items, replicas_missing }))
    }

    fn know(&mut self, replica: Option<ReplicaNumber>, items: &[(String, Listed<InboxItem>)]) {
        self.told.insert(replica, items.iter().map(|(id, _)| id.clone()).collect());
    }

    fn take_update(&mut self, update: PeerUpdate) {
        match update {
            PeerUpdate::Event(number, event) => {
                if let Some(change) = Change::of(event) {
                    self.take(Some(number), change);
                }
            }
            // Its questions ended with it.
            PeerUpdate::Left(number) => self.take(Some(number), Change::Open(Vec::new())),
        }
    }

    fn take(&mut self, replica: Option<ReplicaNumber>, change: Change) {
        let told = self.told.entry(replica).or_default();
        match change {
            Change::Open(items) => {
                let open: HashSet<&String> = items.iter().map(|(id, _)| id).collect();
                let gone: Vec<String> =
                    told.iter().filter(|id| !open.contains(id)).cloned().collect();
                for id in gone {
                    told.remove(&id);
                    self.ready.push_back(closed(&id, CloseReason::Withdrawn));
                }
                for (id, item) in items {
                    if told.insert(id) {
                        self.ready.push_back(event("asked", &item));
                    }
                }
            }
            Change::Asked(id, item) => {
                if told.insert(id) {
                    self.ready.push_back(event("asked", &item));
                }
            }
            Change::Closed(id, event) => {
                if told.remove(&id) {
                    self.ready.push_back(event);
                }
            }
        }
    }
}

impl Change {
    /// The change that another replica reports. Nothing for an event that is not one.
    fn of(event: PeerEvent) -> Option<Self> {
        #[derive(Deserialize)]
        struct Open {
            items: Vec<Box<RawValue>>,
        }
        let PeerEvent { name, data, .. } = event;
        let other = |item: Box<RawValue>| Some((id_of(&item)?, Listed::Other(item)));
        let raw = || serde_json::from_str::<Box<RawValue>>(&data).ok();
        match name.as_str() {
            "open" => {
                let Open { items } = serde_json::from_str(&data).ok()?;
                items.into_iter().map(other).collect::<Option<_>>().map(Self::Open)
            }
            "asked" => other(raw()?).map(|(id, item)| Self::Asked(id, item)),
            "closed" => {
                Some(Self::Closed(id_of(&*raw()?)?, Event::default().event("closed").data(data)))
            }
            _ => None,
        }
    }
}

impl From<FeedEvent> for Change {
    fn from(event: FeedEvent) -> Self {
        let own = |item: InboxItem| (item.id().to_owned(), Listed::Own(item));
        match event {
            FeedEvent::Open(items) => Self::Open(items.into_iter().map(own).collect()),
            FeedEvent::Asked(item) => {
                let (id, item) = own(item);
                Self::Asked(id, item)
            }
            FeedEvent::Closed { id, how } => {
                let event = closed(&id, how);
                Self::Closed(id, event)
            }
        }
    }
}
