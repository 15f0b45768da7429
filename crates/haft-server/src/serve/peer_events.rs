//! The event streams of all other replicas as one: each is opened for the caller, and again after it broke off.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use axum::body::HttpBody as _;
use haft::ReplicaNumber;
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::peers::{PeerRequest, Peers};

/// Interval between looks for new replicas, and between attempts to reach one.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Events that may wait for a slow client. Further ones wait at their replicas.
const WAITING_MAX: usize = 64;
/// The longest event.
const EVENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// One event of a replica.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PeerEvent {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// A change on the streams of other replicas.
#[derive(Debug)]
pub(crate) enum PeerUpdate {
    /// A replica sent an event.
    Event(ReplicaNumber, PeerEvent),
    /// A replica is not alive any more.
    Left(ReplicaNumber),
}

/// The streams of all other replicas. They end when it is dropped.
pub(crate) struct PeerEvents {
    updates: mpsc::Receiver<PeerUpdate>,
    _reading: AbortOnDropHandle<()>,
}

impl PeerEvents {
    /// Opens the stream of each live replica with the caller's request.
    pub(crate) fn open(peers: Peers, request: PeerRequest) -> Self {
        let (sender, updates) = mpsc::channel(WAITING_MAX);
        let reading = TaskTracker::new().spawn(follow(peers, request, sender));
        Self { updates, _reading: AbortOnDropHandle::new(reading) }
    }

    /// The next update.
    pub(crate) async fn next(&mut self) -> PeerUpdate {
        match self.updates.recv().await {
            Some(update) => update,
            // It ends with its receiver alone.
            None => std::future::pending().await,
        }
    }
}

/// Keeps one reader for each live replica.
async fn follow(peers: Peers, request: PeerRequest, updates: mpsc::Sender<PeerUpdate>) {
    let tasks = TaskTracker::new();
    let mut readers: HashMap<ReplicaNumber, AbortOnDropHandle<()>> = HashMap::new();
    let mut look = interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let live: HashSet<ReplicaNumber> = peers.live().into_iter().collect();
        let left: Vec<_> = readers.keys().filter(|it| !live.contains(it)).copied().collect();
        for number in left {
            readers.remove(&number);
            if updates.send(PeerUpdate::Left(number)).await.is_err() {
                return;
            }
        }
        for number in live {
            if readers.get(&number).is_none_or(|reader| reader.is_finished()) {
                let reader = read(peers.clone(), number, request.clone(), updates.clone());
                readers.insert(number, AbortOnDropHandle::new(tasks.spawn(reader)));
            }
        }
    }
}

/// Reads the stream of one replica until it breaks off.
async fn read(
    peers: Peers,
    number: ReplicaNumber,
    request: PeerRequest,
    updates: mpsc::Sender<PeerUpdate>,
) {
    let Ok(response) = peers.forward(number, &request).await else { return };
    if !response.status().is_success() {
        return;
    }
    let mut body = response.into_body();
    let mut lines = EventLines::default();
    while !body.is_end_stream()
        && let Some(Ok(frame)) = body.frame().await
    {
        let Ok(chunk) = frame.into_data() else { continue };
        let Some(events) = lines.push(&chunk) else {
            tracing::warn!(replica = %number, "a replica sent an event that is too long");
            return;
        };
        for event in events {
            if updates.send(PeerUpdate::Event(number, event)).await.is_err() {
                return;
            }
        }
    }
}

/// Server-sent events as Haft writes them, read from chunks.
#[derive(Default)]
struct EventLines {
    /// Bytes after the last line end.
    rest: Vec<u8>,
    event: PeerEvent,
}

impl EventLines {
    /// The events that are complete with this chunk. Nothing if one is too long.
    fn push(&mut self, chunk: &[u8]) -> Option<Vec<PeerEvent>> {
        self.rest.extend_from_slice(chunk);
        let mut events = Vec::new();
        let mut start = 0;
        while let Some(length) = self.rest[start..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.rest[start..start + length]);
            // No event that is written again may contain these.
            let line = line.trim_end_matches('\r').replace(['\r', '\0'], " ");
            events.extend(self.line(&line));
            start += length + 1;
        }
        self.rest.drain(..start);
        (self.rest.len() + self.event.data.len() <= EVENT_BYTES_MAX).then_some(events)
    }

    fn line(&mut self, line: &str) -> Option<PeerEvent> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return (!event.data.is_empty()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "id" => self.event.id = Some(value.to_owned()),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // A comment, or a field that has no meaning here.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_wherever_they_are_cut() {
        let text = ": alive\n\nevent: asked\nid: 7\ndata: {\"a\":\ndata: \"\u{e4}\"}\n\nevent: x\ndata: 1\n\n";
        let whole = EventLines::default().push(text.as_bytes()).unwrap();
        let asked = PeerEvent {
            name: "asked".to_owned(),
            id: Some("7".to_owned()),
            data: "{\"a\":\n\"\u{e4}\"}".to_owned(),
        };
        assert_eq!(whole[0], asked);
        assert_eq!((whole.len(), whole[1].name.as_str(), whole[1].id.as_deref()), (2, "x", None));
        for size in 1..9 {
            let mut lines = EventLines::default();
            let chunks = text.as_bytes().chunks(size);
            let events: Vec<_> = chunks.flat_map(|it| lines.push(it).unwrap()).collect();
            assert_eq!(events, whole, "{size}");
        }
    }
}
