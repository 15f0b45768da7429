//! One session of the legacy era.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::event_id::EventId;
use super::replay_buffer::{BufferBudget, ReplayBuffer};
use super::{Reply, ReplyBody};
use crate::budget::KeptBytes;
use crate::client::LEGACY_VERSIONS;
use crate::error::RpcError;
use crate::server::dispatch::Client;
use crate::server::flag::Flag;
use crate::server::{Change, INVALID_REQUEST};
use crate::wire;

/// Largest number of requests of one session in flight.
const REQUESTS_MAX: usize = 1_024;
/// Ended streams that are kept for a client that missed the end: their number, their total size (the last one is kept
/// whatever its size), and their lifetime.
const ENDED_MAX: usize = 32;
const ENDED_BYTES_MAX: usize = 1024 * 1024;
const ENDED_KEPT: Duration = Duration::from_secs(30);

/// The place of a session among replicas.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The replica that opened it. It has the client's level, subscriptions and stream of notifications.
    pub(super) home: NonZeroU16,
    /// This replica.
    pub(super) own: NonZeroU16,
}

/// One session.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) client: Arc<Client>,
    /// Where it belongs, if there are replicas.
    pub(super) place: Option<Place>,
    /// Cancelled when it ends, and with it everything in flight.
    pub(super) ended: CancellationToken,
    /// The requests in flight, by the client's own ids.
    running: Mutex<HashMap<Box<str>, Arc<Flag>>>,
    /// Notifications outside requests.
    notifications: Arc<ReplayBuffer>,
    /// The streams of requests.
    streams: Mutex<VecDeque<Arc<ReplayBuffer>>>,
    last_stream: AtomicU64,
    kept_bytes: BufferBudget,
    /// Number of requests and readers.
    uses: AtomicUsize,
    last_use: Mutex<Instant>,
}

impl Session {
    pub(super) fn new(
        id: String,
        client: Arc<Client>,
        place: Option<Place>,
        kept_bytes: KeptBytes,
    ) -> Arc<Self> {
        let kept_bytes =
            BufferBudget { principal: Arc::clone(&client.facts.principal), kept_bytes };
        let own = place.map(|place| place.own);
        Arc::new(Self {
            id,
            client,
            place,
            ended: CancellationToken::new(),
            running: Mutex::default(),
            notifications: ReplayBuffer::new(0, own, kept_bytes.clone()),
            kept_bytes,
            streams: Mutex::default(),
            last_stream: AtomicU64::new(0),
            uses: AtomicUsize::new(0),
            last_use: Mutex::new(Instant::now()),
        })
    }

    /// Start of the idle time; none while it is in use.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (self.uses.load(Ordering::Relaxed) == 0).then(|| *self.last_use.lock())
    }

    /// The last start or end of a use.
    pub(super) fn last_use(&self) -> Instant {
        *self.last_use.lock()
    }

    pub(super) fn in_use(self: &Arc<Self>) -> InUse {
        self.uses.fetch_add(1, Ordering::Relaxed);
        InUse(Arc::clone(self))
    }

    /// Registers a request in flight.
    pub(super) fn begin(self: &Arc<Self>, id: &RawValue) -> Result<InFlightRequest, RpcError> {
        let mut running = self.running.lock();
        if running.contains_key(id.get()) {
            let text = format!("a request with the id {id} is already in flight");
            return Err(RpcError::new(INVALID_REQUEST, text));
        }
        if running.len() >= REQUESTS_MAX {
            let text = format!("{REQUESTS_MAX} requests are already in flight");
            return Err(RpcError::new(INVALID_REQUEST, text));
        }
        let cancelled = Arc::new(Flag::default());
        running.insert(id.get().into(), Arc::clone(&cancelled));
        drop(running);
        // After it is in the list: a session that ends from here on finds it there.
        if self.ended.is_cancelled() {
            cancelled.set();
        }
        Ok(InFlightRequest { in_use: self.in_use(), id: id.get().into(), cancelled })
    }

    /// The client wants no answer any more. Returns false if no such request is in flight here.
    pub(super) fn cancel(&self, id: &str) -> bool {
        let running = self.running.lock();
        let request = running.get(id);
        request.inspect(|request| request.set()).is_some()
    }

    /// A stream for a request.
    pub(super) fn open_stream(&self) -> Arc<ReplayBuffer> {
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        let buffer = ReplayBuffer::new(number, self.own(), self.kept_bytes.clone());
        self.streams.lock().push_back(Arc::clone(&buffer));
        self.tidy();
        buffer
    }

    /// Forgets streams that ended long ago.
    pub(super) fn tidy(&self) {
        let mut streams = self.streams.lock();
        let (mut ended, mut bytes) = (0, 0);
        let mut kept = VecDeque::with_capacity(streams.len());
        // The newest first: they are the ones a client may come back for.
        for buffer in streams.drain(..).rev() {
            if let Some(since) = buffer.is_over_since() {
                ended += 1;
                bytes += buffer.bytes();
                let is_too_much = ended > ENDED_MAX || (ended > 1 && bytes > ENDED_BYTES_MAX);
                if is_too_much || since.elapsed() > ENDED_KEPT {
                    continue;
                }
            }
            kept.push_front(buffer);
        }
        *streams = kept;
    }

    /// Returns true if its client knows events without data, which only give a point to resume from.
    pub(super) fn primes(&self) -> bool {
        self.client.facts.protocol_version == LEGACY_VERSIONS[0]
    }

    /// This replica, if there are several.
    fn own(&self) -> Option<NonZeroU16> {
        self.place.map(|place| place.own)
    }

    /// Sends notifications of changes.
    pub(super) fn announce(&self, changes_seen: &[Change]) {
        for change in changes_seen.iter().filter(|change| self.client.wants(change)) {
            self.notifications.push_once(wire::notification(change.method(), &change.params(None)));
        }
    }

    /// A stream of changes_seen, or the rest of the stream that `last` is an event of.
    pub(super) fn events(self: &Arc<Self>, last: Option<&str>) -> Reply {
        let stream =
            |buffer: &Arc<ReplayBuffer>, after| buffer.read(after, self.primes(), self.in_use());
        let body = match last.filter(|last| !last.is_empty()) {
            None => ReplyBody::Notifications(stream(&self.notifications, None)),
            Some(last) => {
                let last = EventId::parse(last);
                let is_here = last.is_some_and(|last| last.replica == self.own());
                match last.map(|last| (last.stream, last.event)) {
                    // The replica that kept it is gone, and its notifications continue here.
                    Some((0, _)) if !is_here && self.place.is_some() => {
                        ReplyBody::Notifications(stream(&self.notifications, None))
                    }
                    Some((0, after)) if is_here => {
                        ReplyBody::Notifications(stream(&self.notifications, Some(after)))
                    }
                    // One that ended has to be refused: a client that gets an empty stream believes that
                    // there is more to come, and asks again for ever.
                    Some((number, after))
                        if is_here
                            && let Some(buffer) = self.stream(number)
                            && !buffer.is_over_after(after) =>
                    {
                        ReplyBody::Response(stream(&buffer, Some(after)))
                    }
                    Some(_) | None => {
                        let text = "Bad Request: the stream of that `Last-Event-ID` has ended or is not kept";
                        let error = RpcError::new(INVALID_REQUEST, text);
                        return Reply::refusal(StatusCode::BAD_REQUEST, None, &error);
                    }
                }
            }
        };
        Reply::streamed(body)
    }

    fn stream(&self, number: u64) -> Option<Arc<ReplayBuffer>> {
        self.streams.lock().iter().find(|buffer| buffer.number == number).cloned()
    }

    /// Ends it, and everything of it.
    pub(super) fn end(&self) {
        self.ended.cancel();
        for request in self.running.lock().values() {
            request.set();
        }
        self.notifications.finish();
    }
}

/// A use of the session.
pub(super) struct InUse(Arc<Session>);

impl Drop for InUse {
    fn drop(&mut self) {
        *self.0.last_use.lock() = Instant::now();
        self.0.uses.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request in flight.
pub(super) struct InFlightRequest {
    in_use: InUse,
    id: Box<str>,
    pub(super) cancelled: Arc<Flag>,
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.in_use.0.running.lock().remove(&self.id);
    }
}
