//! The messages of one stream, kept for a client that lost it and comes back.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::ReplyEvents;
use super::event_id::EventId;
use super::session::InUse;
use crate::budget::{HeldBytes, KeptBytes};
use crate::wire;

/// Largest number and size of buffered messages. The last message is kept whatever its size.
const EVENTS_MAX: usize = 1_024;
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Interval of keep-alive comments on a quiet stream.
pub(super) const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
/// Reconnect delay for a client that lost the stream, in milliseconds.
const RETRY_MS: u32 = 500;

/// A keep-alive: a comment, which readers of events ignore.
pub(super) const KEEP_ALIVE: &str = ":\n\n";

/// One message as an event without a name of its own.
pub(super) fn event(message: String) -> String {
    format!("event: message\ndata: {}\n\n", wire::on_one_line(message))
}

/// The messages of one stream, numbered.
pub(super) struct ReplayBuffer {
    /// Which of its session's streams it is.
    pub(super) number: u64,
    /// Named by the ids of events.
    replica: Option<NonZeroU16>,
    state: Mutex<State>,
    changed: Notify,
    kept_bytes: BufferBudget,
}

/// Counts what is kept for one client.
#[derive(Clone)]
pub(super) struct BufferBudget {
    pub(super) principal: Arc<str>,
    pub(super) kept_bytes: KeptBytes,
}

/// A message that is kept, with its memory.
struct BufferedMessage {
    number: u64,
    message: String,
    _held: Option<HeldBytes>,
}

struct State {
    kept: VecDeque<BufferedMessage>,
    bytes: usize,
    /// The number of the last message.
    last: u64,
    /// The last message that was read.
    read: u64,
    is_finished: bool,
    /// Which reader is the current one: a new one takes over.
    reader: u64,
    /// Start of the time without a reader.
    alone_since: Option<Instant>,
}

enum Next {
    Event(u64, String),
    Wait,
    End,
}

impl ReplayBuffer {
    pub(super) fn new(
        number: u64,
        replica: Option<NonZeroU16>,
        kept_bytes: BufferBudget,
    ) -> Arc<Self> {
        let state = State {
            kept: VecDeque::new(),
            bytes: 0,
            last: 0,
            read: 0,
            is_finished: false,
            reader: 0,
            alone_since: Some(Instant::now()),
        };
        let (state, changed) = (Mutex::new(state), Notify::new());
        Arc::new(Self { number, replica, state, changed, kept_bytes })
    }

    pub(super) fn push(&self, message: String) {
        let BufferBudget { principal, kept_bytes } = &self.kept_bytes;
        let held = kept_bytes.count(principal, message.len());
        {
            let mut state = self.state();
            state.last += 1;
            state.bytes += message.len();
            let number = state.last;
            state.kept.push_back(BufferedMessage { number, message, _held: held });
            while state.kept.len() > EVENTS_MAX || (state.bytes > BYTES_MAX && state.kept.len() > 1)
            {
                let dropped = state.kept.pop_front().map_or(0, |kept| kept.message.len());
                state.bytes -= dropped;
            }
        }
        self.changed.notify_waiters();
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
        self.changed.notify_waiters();
    }

    /// Returns true if no message will ever follow this one.
    pub(super) fn is_over_after(&self, number: u64) -> bool {
        let state = self.state();
        state.is_finished && state.last <= number
    }

    /// Since when there was neither a message nor a reader, for a stream that has ended.
    pub(super) fn is_over_since(&self) -> Option<Instant> {
        let state = self.state();
        state.alone_since.filter(|_| state.is_finished)
    }

    /// Size of the buffered messages.
    pub(super) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Waits until there has been no reader for `after`.
    pub(super) async fn abandoned(&self, after: Duration) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let alone_since = self.state().alone_since;
            match alone_since {
                Some(since) if since.elapsed() >= after => return,
                Some(since) => {
                    let _ = tokio::time::timeout_at(since + after, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// Reads from after this message, or from after the last read one. A previous reader is disconnected.
    pub(super) fn read(
        self: &Arc<Self>,
        after: Option<u64>,
        primes: bool,
        in_use: InUse,
    ) -> ReplyEvents {
        let (reader, after) = {
            let mut state = self.state();
            state.reader += 1;
            state.alone_since = None;
            (state.reader, after.unwrap_or(state.read))
        };
        self.changed.notify_waiters();
        // Something to come back to, before there is any message.
        let hello =
            primes.then(|| format!("id: {}\nretry: {RETRY_MS}\ndata: \n\n", self.event_id(after)));
        let reading = Reading { buffer: Arc::clone(self), reader, after, hello, _in_use: in_use };
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

    fn event_id(&self, event: u64) -> EventId {
        EventId { replica: self.replica, stream: self.number, event }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// One who reads.
struct Reading {
    buffer: Arc<ReplayBuffer>,
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
                let changed = self.buffer.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                match self.buffer.next(self.reader, self.after) {
                    Next::Event(number, message) => Some((number, message)),
                    Next::End => return None,
                    Next::Wait => {
                        if tokio::time::timeout(KEEP_ALIVE_EVERY, changed).await.is_ok() {
                            continue;
                        }
                        None
                    }
                }
            };
            let Some((number, message)) = found else {
                return Some((KEEP_ALIVE.to_owned(), self));
            };
            self.after = number;
            let mut text = String::with_capacity(message.len() + 48);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "id: {}", self.buffer.event_id(number));
            text.push_str(&event(message));
            return Some((text, self));
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        {
            let mut state = self.buffer.state();
            if state.reader == self.reader {
                state.alone_since = Some(Instant::now());
            }
        }
        self.buffer.changed.notify_waiters();
    }
}
