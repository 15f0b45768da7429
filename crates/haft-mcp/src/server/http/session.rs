//! One session of the legacy era.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::log::{KeptFor, StreamLog};
use super::{Reply, ReplyBody};
use crate::budget::KeptBytes;
use crate::client::LEGACY_VERSIONS;
use crate::error::RpcError;
use crate::server::desk::Client;
use crate::server::{Change, INVALID_REQUEST};
use crate::wire;

/// How many requests of one session may be under way at once.
const REQUESTS_MAX: usize = 1_024;
/// How many streams that have ended are kept for a client that missed the end, how large they may be
/// together (the last one is kept whatever its size), and for how long.
const ENDED_MAX: usize = 32;
const ENDED_BYTES_MAX: usize = 1024 * 1024;
const ENDED_KEPT: Duration = Duration::from_secs(30);

/// One session.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) client: Arc<Client>,
    /// Cancelled when it ends, and with it everything under way.
    pub(super) ended: CancellationToken,
    /// The requests under way, by the client's own ids.
    running: Mutex<HashMap<Box<str>, CancellationToken>>,
    /// What is told without a request.
    news: Arc<StreamLog>,
    /// The streams of requests.
    streams: Mutex<VecDeque<Arc<StreamLog>>>,
    last_stream: AtomicU64,
    kept_bytes: KeptFor,
    /// How many requests and readers there are.
    uses: AtomicUsize,
    last_use: Mutex<Instant>,
}

impl Session {
    pub(super) fn new(id: String, client: Arc<Client>, kept_bytes: KeptBytes) -> Arc<Self> {
        let kept_bytes = KeptFor { principal: Arc::clone(&client.facts.principal), kept_bytes };
        Arc::new(Self {
            id,
            client,
            ended: CancellationToken::new(),
            running: Mutex::default(),
            news: StreamLog::new(0, kept_bytes.clone()),
            kept_bytes,
            streams: Mutex::default(),
            last_stream: AtomicU64::new(0),
            uses: AtomicUsize::new(0),
            last_use: Mutex::new(Instant::now()),
        })
    }

    /// Since when nobody uses it; nothing while somebody does.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (self.uses.load(Ordering::Relaxed) == 0).then(|| *lock(&self.last_use))
    }

    /// When somebody last began or ended to use it.
    pub(super) fn last_use(&self) -> Instant {
        *lock(&self.last_use)
    }

    pub(super) fn in_use(self: &Arc<Self>) -> InUse {
        self.uses.fetch_add(1, Ordering::Relaxed);
        InUse(Arc::clone(self))
    }

    /// Notes that a request is under way.
    pub(super) fn begin(self: &Arc<Self>, id: &RawValue) -> Result<UnderWay, RpcError> {
        let mut running = lock(&self.running);
        if running.contains_key(id.get()) {
            let text = format!("a request with the id {id} is under way already");
            return Err(RpcError::new(INVALID_REQUEST, text));
        }
        if running.len() >= REQUESTS_MAX {
            let text = format!("{REQUESTS_MAX} requests are under way already");
            return Err(RpcError::new(INVALID_REQUEST, text));
        }
        let cancelled = self.ended.child_token();
        running.insert(id.get().into(), cancelled.clone());
        drop(running);
        Ok(UnderWay { in_use: self.in_use(), id: id.get().into(), cancelled })
    }

    /// The client wants no answer any more.
    pub(super) fn cancel(&self, id: &str) {
        if let Some(request) = lock(&self.running).get(id) {
            request.cancel();
        }
    }

    /// A stream for a request.
    pub(super) fn open_stream(&self) -> Arc<StreamLog> {
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        let log = StreamLog::new(number, self.kept_bytes.clone());
        lock(&self.streams).push_back(Arc::clone(&log));
        self.tidy();
        log
    }

    /// Forgets streams that ended long ago.
    pub(super) fn tidy(&self) {
        let mut streams = lock(&self.streams);
        let (mut ended, mut bytes) = (0, 0);
        let mut kept = VecDeque::with_capacity(streams.len());
        // The newest first: they are the ones a client may come back for.
        for log in streams.drain(..).rev() {
            if let Some(since) = log.is_over_since() {
                ended += 1;
                bytes += log.bytes();
                let is_too_much = ended > ENDED_MAX || (ended > 1 && bytes > ENDED_BYTES_MAX);
                if is_too_much || since.elapsed() > ENDED_KEPT {
                    continue;
                }
            }
            kept.push_front(log);
        }
        *streams = kept;
    }

    /// Whether its client knows events that say nothing and only give a place to come back to.
    pub(super) fn primes(&self) -> bool {
        self.client.facts.protocol_version == LEGACY_VERSIONS[0]
    }

    /// Tells what is another than before.
    pub(super) fn announce(&self, news: &[Change]) {
        for change in news.iter().filter(|change| self.client.wants(change)) {
            self.news.push_once(wire::notification(change.method(), &change.params(None)));
        }
    }

    /// A stream of news, or the rest of the stream that `last` is an event of.
    pub(super) fn events(self: &Arc<Self>, last: Option<&str>) -> Reply {
        let stream = |log: &Arc<StreamLog>, after| log.read(after, self.primes(), self.in_use());
        let body = match last.filter(|last| !last.is_empty()) {
            None => ReplyBody::News(stream(&self.news, None)),
            Some(last) => {
                let place = last.split_once('-').and_then(|(stream, after)| {
                    Some((stream.parse::<u64>().ok()?, after.parse::<u64>().ok()?))
                });
                match place {
                    Some((0, after)) => ReplyBody::News(stream(&self.news, Some(after))),
                    // One that ended has to be refused: a client that gets an empty stream believes that
                    // there is more to come, and asks again for ever.
                    Some((number, after))
                        if let Some(log) = self.stream(number)
                            && !log.is_over_after(after) =>
                    {
                        ReplyBody::Course(stream(&log, Some(after)))
                    }
                    Some(_) | None => {
                        let text = "Bad Request: the stream of that `Last-Event-ID` has ended or is not kept";
                        let error = RpcError::new(INVALID_REQUEST, text);
                        return Reply::refusal(StatusCode::BAD_REQUEST, None, &error);
                    }
                }
            }
        };
        Reply { status: StatusCode::OK, session: None, body }
    }

    fn stream(&self, number: u64) -> Option<Arc<StreamLog>> {
        lock(&self.streams).iter().find(|log| log.number == number).cloned()
    }

    /// Ends it, and everything of it.
    pub(super) fn end(&self) {
        self.ended.cancel();
        self.news.finish();
    }
}

/// Somebody uses the session.
pub(super) struct InUse(Arc<Session>);

impl Drop for InUse {
    fn drop(&mut self) {
        *lock(&self.0.last_use) = Instant::now();
        self.0.uses.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request under way.
pub(super) struct UnderWay {
    in_use: InUse,
    id: Box<str>,
    pub(super) cancelled: CancellationToken,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.in_use.0.running).remove(&self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
