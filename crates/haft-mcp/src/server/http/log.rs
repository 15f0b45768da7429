//! The messages of one stream, kept for a client that lost it and comes back.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Events;
use super::session::InUse;
use crate::budget::{HeldBytes, KeptBytes};
use crate::wire;

/// How much is kept at most. The last message is, whatever its size.
const EVENTS_MAX: usize = 1_024;
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// How often a quiet stream shows that it is alive.
pub(super) const SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(15);
/// How soon a client that lost the stream should come back, in milliseconds.
const RETRY_MS: u32 = 500;

/// A sign of life: a comment, which readers of events leave out.
pub(super) const SIGN_OF_LIFE: &str = ":\n\n";

/// One message as an event without a name of its own.
pub(super) fn event(message: String) -> String {
    format!("event: message\ndata: {}\n\n", wire::on_one_line(message))
}

/// The messages of one stream, numbered.
pub(super) struct StreamLog {
    /// Which of its session's streams it is.
    pub(super) number: u64,
    state: Mutex<State>,
    news: Notify,
    kept_bytes: KeptFor,
}

/// Counts what is kept for one client.
#[derive(Clone)]
pub(super) struct KeptFor {
    pub(super) principal: Arc<str>,
    pub(super) kept_bytes: KeptBytes,
}

/// A message that is kept, with its memory.
struct Kept {
    number: u64,
    message: String,
    _held: Option<HeldBytes>,
}

struct State {
    kept: VecDeque<Kept>,
    bytes: usize,
    /// The number of the last message.
    last: u64,
    /// The last message somebody read.
    read: u64,
    is_finished: bool,
    /// Which reader is the current one: a new one takes over.
    reader: u64,
    /// Since when nobody reads.
    alone_since: Option<Instant>,
}

enum Next {
    Event(u64, String),
    Wait,
    End,
}

impl StreamLog {
    pub(super) fn new(number: u64, kept_bytes: KeptFor) -> Arc<Self> {
        let state = State {
            kept: VecDeque::new(),
            bytes: 0,
            last: 0,
            read: 0,
            is_finished: false,
            reader: 0,
            alone_since: Some(Instant::now()),
        };
        Arc::new(Self { number, state: Mutex::new(state), news: Notify::new(), kept_bytes })
    }

    pub(super) fn push(&self, message: String) {
        let KeptFor { principal, kept_bytes } = &self.kept_bytes;
        let held = kept_bytes.count(principal, message.len());
        {
            let mut state = self.state();
            state.last += 1;
            state.bytes += message.len();
            let number = state.last;
            state.kept.push_back(Kept { number, message, _held: held });
            while state.kept.len() > EVENTS_MAX || (state.bytes > BYTES_MAX && state.kept.len() > 1)
            {
                let dropped = state.kept.pop_front().map_or(0, |kept| kept.message.len());
                state.bytes -= dropped;
            }
        }
        self.news.notify_waiters();
    }

    /// The same, unless it waits to be read already.
    pub(super) fn push_once(&self, message: String) {
        let is_waiting = {
            let state = self.state();
            state.kept.iter().any(|it| it.number > state.read && it.message == message)
        };
        if !is_waiting {
            self.push(message);
        }
    }

    /// There will be no more messages.
    pub(super) fn finish(&self) {
        self.state().is_finished = true;
        self.news.notify_waiters();
    }

    /// Whether there is nothing after this message, now and for ever.
    pub(super) fn is_over_after(&self, number: u64) -> bool {
        let state = self.state();
        state.is_finished && state.last <= number
    }

    /// Since when there was neither a message nor a reader, for a stream that has ended.
    pub(super) fn is_over_since(&self) -> Option<Instant> {
        let state = self.state();
        state.alone_since.filter(|_| state.is_finished)
    }

    /// How much is kept.
    pub(super) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Waits until nobody has been reading for so long.
    pub(super) async fn abandoned(&self, after: Duration) {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let alone_since = self.state().alone_since;
            match alone_since {
                Some(since) if since.elapsed() >= after => return,
                Some(since) => {
                    let _ = tokio::time::timeout_at(since + after, news).await;
                }
                None => news.await,
            }
        }
    }

    /// Reads on after this message, or after what was read last. Whoever read before is sent away.
    pub(super) fn read(
        self: &Arc<Self>,
        after: Option<u64>,
        primes: bool,
        in_use: InUse,
    ) -> Events {
        let (reader, after) = {
            let mut state = self.state();
            state.reader += 1;
            state.alone_since = None;
            (state.reader, after.unwrap_or(state.read))
        };
        self.news.notify_waiters();
        // Something to come back to, before there is any message.
        let hello =
            primes.then(|| format!("id: {}-{after}\nretry: {RETRY_MS}\ndata: \n\n", self.number));
        let reading = Reading { log: Arc::clone(self), reader, after, hello, _in_use: in_use };
        Box::pin(stream::unfold(reading, Reading::next))
    }

    fn next(&self, reader: u64, after: u64) -> Next {
        let mut state = self.state();
        if state.reader != reader {
            return Next::End;
        }
        let found = state.kept.iter().find(|it| it.number > after);
        let found = found.map(|it| (it.number, it.message.clone()));
        match found {
            Some((number, message)) => {
                state.read = state.read.max(number);
                Next::Event(number, message)
            }
            None if state.is_finished => Next::End,
            None => Next::Wait,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who reads.
struct Reading {
    log: Arc<StreamLog>,
    reader: u64,
    after: u64,
    hello: Option<String>,
    _in_use: InUse,
}

impl Reading {
    async fn next(mut self) -> Option<(String, Self)> {
        if let Some(hello) = self.hello.take() {
            return Some((hello, self));
        }
        loop {
            let found = {
                let news = self.log.news.notified();
                tokio::pin!(news);
                news.as_mut().enable();
                match self.log.next(self.reader, self.after) {
                    Next::Event(number, message) => Some((number, message)),
                    Next::End => return None,
                    Next::Wait => {
                        if tokio::time::timeout(SIGN_OF_LIFE_EVERY, news).await.is_ok() {
                            continue;
                        }
                        None
                    }
                }
            };
            let Some((number, message)) = found else {
                return Some((SIGN_OF_LIFE.to_owned(), self));
            };
            self.after = number;
            let mut text = String::with_capacity(message.len() + 48);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "id: {}-{number}", self.log.number);
            text.push_str(&event(message));
            return Some((text, self));
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        {
            let mut state = self.log.state();
            if state.reader == self.reader {
                state.alone_since = Some(Instant::now());
            }
        }
        self.log.news.notify_waiters();
    }
}
