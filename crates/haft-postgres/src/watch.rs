//! Follows the database: polls the counters of changes, sends heartbeats, tidies up.
//!
//! A notification only shortens the wait for the next poll. The guarantees rest on the poll.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::Type;
use tokio_util::sync::CancellationToken;

use crate::connection::{Link, Target};
use crate::error::DatabaseError;
use crate::random;
use crate::replicas::{OwnReplica, Registered, ReplicaTable};
use crate::settings::ReplicaSettings;
use crate::topics::TopicSeqs;

const POLL_INTERVAL: Duration = Duration::from_millis(400);
/// Added to the interval at random, so that replicas do not poll in step.
const POLL_JITTER: Duration = Duration::from_millis(200);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
const TIDY_INTERVAL: Duration = Duration::from_secs(50);
const TIDY_JITTER: Duration = Duration::from_secs(20);
/// Time between two polls that callers ask for.
const REFRESH_INTERVAL: Duration = Duration::from_millis(50);
/// The longest wait of a caller for a poll.
const REFRESH_MAX: Duration = Duration::from_secs(1);
/// Time for which lost commits are reported.
const LOSS_REPORTED_FOR: Duration = Duration::from_hours(1);

/// Days that a date of the database can go back.
const RETAIN_DAYS_MAX: i32 = 36_500;

/// The start of the server tells two of them apart, also behind a pooling proxy.
const POLL: &str = "
    select name, seq, (extract(epoch from pg_postmaster_start_time()) * 1000000)::int8 from haft.topic";
const TIDY: &str = "select haft.tidy($1)";

/// Polls the database and holds what was found.
pub(crate) struct Poller {
    link: Link,
    topics: watch::Sender<TopicSeqs>,
    replicas: watch::Sender<Arc<ReplicaTable>>,
    /// Held during a poll, with the time at which the last one was sent.
    polling: tokio::sync::Mutex<Instant>,
    /// Held during a read of the table of replicas that a caller asked for, with the time of the last one.
    reading: tokio::sync::Mutex<Instant>,
    own: Mutex<Own>,
    lost_commits: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Own {
    registered: Option<Registered>,
    reported: OwnReplica,
    /// A problem that the heartbeat found.
    found: Option<String>,
}

impl Poller {
    pub(crate) fn new(link: Link) -> Self {
        Self {
            link,
            topics: watch::Sender::new(TopicSeqs::unknown(Instant::now())),
            replicas: watch::Sender::default(),
            polling: tokio::sync::Mutex::new(Instant::now()),
            reading: tokio::sync::Mutex::new(Instant::now()),
            own: Mutex::default(),
            lost_commits: Mutex::default(),
        }
    }

    /// Takes a number and sends the first heartbeat.
    pub(crate) async fn join(&self, settings: ReplicaSettings) -> Result<u16, DatabaseError> {
        let config = settings.config.clone();
        let registered = Registered::register(&self.link, settings).await?;
        let number = registered.number;
        let reported = OwnReplica { config, ..OwnReplica::default() };
        *self.own.lock() = Own { registered: Some(registered), reported, found: None };
        self.beat().await?;
        Ok(number)
    }

    pub(crate) fn topics(&self) -> watch::Receiver<TopicSeqs> {
        self.topics.subscribe()
    }

    pub(crate) fn replicas(&self) -> watch::Receiver<Arc<ReplicaTable>> {
        self.replicas.subscribe()
    }

    pub(crate) fn registered(&self) -> Option<Registered> {
        self.own.lock().registered.clone()
    }

    pub(crate) fn report(&self, own: OwnReplica) {
        self.own.lock().reported = own;
    }

    /// The time since the last poll that was answered.
    pub(crate) fn age(&self) -> Duration {
        self.topics.borrow().confirmed().elapsed()
    }

    pub(crate) fn has_lost_commits(&self) -> bool {
        self.lost_commits.lock().is_some_and(|at| at.elapsed() < LOSS_REPORTED_FOR)
    }

    /// Polls the counters.
    pub(crate) async fn poll(&self) -> Result<(), DatabaseError> {
        let mut sent = self.polling.lock().await;
        self.poll_now(&mut sent).await
    }

    /// Polls, unless a poll was sent since the call. A database that does not respond is not waited for.
    pub(crate) async fn refresh(&self) -> Result<(), DatabaseError> {
        let refreshed = timeout(REFRESH_MAX, self.refresh_now()).await;
        refreshed.unwrap_or(Err(DatabaseError::TimedOut { after: REFRESH_MAX }))
    }

    async fn refresh_now(&self) -> Result<(), DatabaseError> {
        let called = Instant::now();
        let mut sent = self.polling.lock().await;
        if *sent >= called && self.topics.borrow().confirmed() >= called {
            return Ok(());
        }
        sleep((*sent + REFRESH_INTERVAL).saturating_duration_since(Instant::now())).await;
        self.poll_now(&mut sent).await
    }

    async fn poll_now(&self, sent: &mut Instant) -> Result<(), DatabaseError> {
        let now = Instant::now();
        *sent = now;
        let rows = self.link.read(POLL, &[]).await?;
        let server = rows.first().map_or(0, |row| row.get(2));
        let seqs = TopicSeqs::of(rows.iter().map(|row| (row.get(0), row.get(1))), server, now);
        let before = self.topics.send_replace(seqs);
        if seqs.went_back(&before) {
            self.note_lost_commits();
        }
        Ok(())
    }

    /// Reports that the database lost commits.
    pub(crate) fn note_lost_commits(&self) {
        tracing::error!(
            "the database lost commits, as in a failover without a synchronous standby: its state is used, and changes \
             of the last seconds may be gone"
        );
        *self.lost_commits.lock() = Some(Instant::now());
    }

    /// Reads the table of replicas, unless it was read since the call. Callers at the same time share a read.
    pub(crate) async fn refresh_replicas(&self) -> Result<(), DatabaseError> {
        let called = Instant::now();
        let reading = async {
            let mut sent = self.reading.lock().await;
            if *sent >= called {
                return Ok(());
            }
            sleep((*sent + REFRESH_INTERVAL).saturating_duration_since(Instant::now())).await;
            *sent = Instant::now();
            self.beat().await
        };
        let read = timeout(REFRESH_MAX, reading).await;
        read.unwrap_or(Err(DatabaseError::TimedOut { after: REFRESH_MAX }))
    }

    /// Sends a heartbeat and reads the table of replicas.
    pub(crate) async fn beat(&self) -> Result<(), DatabaseError> {
        let (registered, own) = {
            let own = self.own.lock();
            let Some(registered) = own.registered.clone() else { return Ok(()) };
            let mut reported = own.reported.clone();
            reported.problem = reported.problem.or_else(|| own.found.clone());
            (registered, reported)
        };
        let mut beat = registered.beat(&self.link, &own).await?;
        if !beat.is_registered {
            let mut again = registered;
            let before = again.number;
            again.register_again(&self.link).await?;
            if again.number != before {
                let number = again.number;
                tracing::error!(
                    "another replica took the number {before} while this one did not respond; it is now {number}, and \
                     what clients hold from before is gone"
                );
            }
            self.own.lock().registered = Some(again.clone());
            beat = again.beat(&self.link, &own).await?;
        }
        let found = beat.problem(seconds_now());
        let mut own = self.own.lock();
        if let Some(problem) = found.as_ref().filter(|found| own.found.as_ref() != Some(found)) {
            tracing::warn!("this replica has a problem: {problem}");
        }
        own.found = found;
        drop(own);
        self.replicas.send_replace(Arc::new(beat.table));
        Ok(())
    }
}

/// Follows the database: polls, sends heartbeats, tidies up.
pub(crate) struct Follower {
    pub(crate) poller: Arc<Poller>,
    pub(crate) work: Arc<Link>,
    pub(crate) target: Arc<Target>,
    pub(crate) stop: CancellationToken,
    pub(crate) retain_days: u32,
}

impl Follower {
    /// Works until the end.
    pub(crate) async fn run(self) {
        let (mut beat_at, mut tidy_at) =
            (Instant::now() + HEARTBEAT_INTERVAL, Instant::now() + random::up_to(TIDY_JITTER));
        let mut is_lost = false;
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = sleep(POLL_INTERVAL + random::up_to(POLL_JITTER)) => {}
                () = self.target.notified.notified() => {}
            }
            let mut polled = self.poller.poll().await;
            if Instant::now() >= beat_at && polled.is_ok() {
                polled = self.poller.beat().await;
                beat_at = Instant::now() + HEARTBEAT_INTERVAL;
            }
            match &polled {
                Ok(()) if is_lost => tracing::info!("the database is back"),
                Err(error) if !is_lost => tracing::warn!(
                    "{error}; calls continue, changes are refused until it is back; {}",
                    error.remedy()
                ),
                Ok(()) | Err(_) => {}
            }
            is_lost = polled.is_err();
            if Instant::now() >= tidy_at && !is_lost {
                tidy_at = Instant::now() + TIDY_INTERVAL + random::up_to(TIDY_JITTER);
                self.tidy().await;
            }
        }
    }

    async fn tidy(&self) {
        let days = i32::try_from(self.retain_days).unwrap_or(RETAIN_DAYS_MAX).min(RETAIN_DAYS_MAX);
        if let Err(error) = self.work.query(TIDY, &[(&days, Type::INT4)]).await {
            tracing::warn!(%error, "the tables were not tidied; next attempt in a minute");
        }
    }
}

/// The time by this machine's clock, in seconds since 1970.
fn seconds_now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
