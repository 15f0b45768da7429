//! The age of the keys of a database, and the source of a ring of keys.

use std::time::Duration;

use haft_postgres::Topic;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::error::KeyError;
use super::file::KeyFile;
use super::shared::{LoadedKeys, SharedKeys, unavailable};
use super::store::{KeyStore, StoredKey};

/// Age from which on a request waits for newer keys: a process that was stopped for a while must not accept a key that
/// was revoked meanwhile.
const CURRENT_MAX: Duration = Duration::from_secs(1);
/// The longest such wait.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// After a wait in vain no request waits for this long, unless the keys are confirmed before.
const NO_WAIT_FOR: Duration = Duration::from_secs(30);
/// Interval of reading all keys although their counter is the same: a failover may repeat a number.
const READ_EVERY: Duration = Duration::from_secs(10);

/// Makes keys that were read the current ones.
pub(super) type Publish<'a> = &'a (dyn Fn(Vec<StoredKey>) + Sync);

/// The source of the keys of a running server.
#[derive(Debug)]
pub(super) enum KeySource {
    /// Read again by requests, if the last read is old.
    File(KeyFile),
    /// Read again by a task, when a counter in the database changes.
    Shared(SharedSource),
}

impl KeySource {
    pub(super) fn store(&self) -> &dyn KeyStore {
        match self {
            Self::File(file) => file,
            Self::Shared(shared) => &shared.store,
        }
    }
}

/// The keys in a database.
#[derive(Debug)]
pub(super) struct SharedSource {
    pub(super) store: SharedKeys,
    /// Age from which on no key is accepted.
    stale_max: Duration,
    state: Mutex<State>,
    /// Held while the keys are read.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    seq: i64,
    /// The server that the keys were read from, as the polls before name it.
    server: Option<i64>,
    read: Instant,
    /// Every change before this time is known.
    confirmed: Instant,
    no_wait_until: Option<Instant>,
    problem: Option<String>,
}

impl SharedSource {
    /// Reads the keys.
    pub(super) async fn open(
        store: SharedKeys,
        stale_max: Duration,
    ) -> Result<(Self, Vec<StoredKey>), KeyError> {
        let now = Instant::now();
        let LoadedKeys { seq, keys, problem } = store.load().await?;
        let state =
            State { seq, server: None, read: now, confirmed: now, no_wait_until: None, problem };
        let reading = tokio::sync::Mutex::default();
        Ok((Self { store, stale_max, state: Mutex::new(state), reading }, keys))
    }

    /// Reads the keys if they changed, and publishes them. They are current as of the last poll then.
    pub(super) async fn follow(&self, publish: Publish<'_>) -> Result<(), KeyError> {
        let _reading = self.reading.lock().await;
        let topics = *self.store.database().topics().borrow();
        {
            let mut state = self.state.lock();
            let is_same =
                state.seq == topics.seq(Topic::Keys) && state.server == Some(topics.server());
            if is_same && state.read.elapsed() < READ_EVERY {
                state.confirm(topics.confirmed());
                return Ok(());
            }
        }
        let now = Instant::now();
        let LoadedKeys { seq, keys, problem } = self.store.load().await?;
        // Within the lock, so that an older reading cannot replace a newer one, and before the keys count as current.
        publish(keys);
        let mut state = self.state.lock();
        state.seq = seq;
        state.server = Some(topics.server());
        state.read = now;
        state.confirm(now);
        if let Some(problem) = problem.as_ref().filter(|it| state.problem.as_ref() != Some(it)) {
            tracing::error!("{problem}; upgrade this Haft, or create the key again");
        }
        state.problem = problem;
        Ok(())
    }

    /// Polls the database, then reads the keys if they changed.
    pub(super) async fn refresh(&self, publish: Publish<'_>) -> Result<(), KeyError> {
        self.store.database().refresh().await.map_err(unavailable)?;
        self.follow(publish).await
    }

    /// Returns true if a request must wait for newer keys.
    pub(super) fn must_wait(&self) -> bool {
        let state = self.state.lock();
        state.confirmed.elapsed() >= CURRENT_MAX
            && state.no_wait_until.is_none_or(|until| Instant::now() >= until)
    }

    /// Waits for newer keys, for a while.
    pub(super) async fn wait(&self, publish: Publish<'_>) {
        let refreshed = timeout(WAIT_MAX, self.refresh(publish)).await;
        if !matches!(refreshed, Ok(Ok(()))) {
            self.state.lock().no_wait_until = Some(Instant::now() + NO_WAIT_FOR);
        }
    }

    /// The age of the keys, if it is more than they may have.
    pub(super) fn stale_for(&self) -> Option<Duration> {
        let age = self.state.lock().confirmed.elapsed();
        (age >= self.stale_max).then_some(age)
    }

    pub(super) fn problem(&self) -> Option<String> {
        match self.stale_for() {
            Some(age) => Some(format!(
                "the keys were confirmed {} s ago, more than `shared.stale_max`; no key is accepted",
                age.as_secs()
            )),
            None => self.state.lock().problem.clone(),
        }
    }
}

impl State {
    fn confirm(&mut self, at: Instant) {
        self.confirmed = self.confirmed.max(at);
        if self.confirmed.elapsed() < CURRENT_MAX {
            self.no_wait_until = None;
        }
    }
}
