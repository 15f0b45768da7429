//! The bookkeeping of one connection: who waits for what, and what a message means to whom.
//! No I/O, no clock of its own, no threads: the same calls always give the same steps.

use std::collections::HashMap;
use std::time::Instant;

use serde_json::value::RawValue;

use crate::error::{Failure, Fault, RequestError, TransportError};
use crate::limits::{Limits, RATE_SPAN};
use crate::wire::{Content, Parsed};

/// The state of one connection. `W` is whatever waits for an answer.
#[derive(Debug)]
pub struct Core<W> {
    limits: Limits,
    next_id: u64,
    pending: HashMap<u64, W>,
    counts: Counts,
    noise_since_message: u64,
    unasked_since: Option<Instant>,
    unasked: u32,
    ended: Option<TransportError>,
}

/// Counters of ignored input, so that it is not silent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes that were not a message: prints and colours.
    pub noise_bytes: u64,
    /// Messages that could not be read.
    pub malformed: u64,
    /// Answers without a pending request: late, repeated, or with a foreign id.
    pub unmatched: u64,
}

/// The meaning of a message.
#[derive(Debug)]
pub enum Step<'a, W> {
    /// The answer to a pending request.
    Answer(W, Result<&'a RawValue, RequestError>),
    /// The server asks.
    Request {
        /// The server's own id.
        id: &'a RawValue,
        /// The requested method.
        method: std::borrow::Cow<'a, str>,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// A notification of the server.
    Notification {
        /// The notification's method.
        method: std::borrow::Cow<'a, str>,
        /// To what.
        params: Option<&'a RawValue>,
    },
    /// Those who waited for what turned out broken. Without any, it was only counted.
    Broken(Vec<W>, RequestError),
    /// A response with an id that no request ever had; counted.
    Foreign(&'a RawValue),
    /// Input without an effect; counted.
    Ignored(Ignored),
    /// The server went beyond a limit and has to be cut off.
    End(TransportError),
}

/// Why something was set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// A print on the message channel.
    Noise,
    /// An answer without a pending request.
    Unmatched,
}

impl<W> Core<W> {
    /// A fresh connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            next_id: 1,
            pending: HashMap::new(),
            counts: Counts::default(),
            noise_since_message: 0,
            unasked_since: None,
            unasked: 0,
            ended: None,
        }
    }

    /// An id that was never used on this connection.
    pub fn next_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// From now on `waiter` waits for the answer to `id`; refused once the connection has ended.
    pub fn wait(&mut self, id: u64, waiter: W) -> Result<(), TransportError> {
        if let Some(ended) = &self.ended {
            return Err(TransportError { sent: crate::error::Sent::No, ..ended.clone() });
        }
        self.pending.insert(id, waiter);
        Ok(())
    }

    /// Removes the waiter of `id`. Returns it if the answer had not come.
    pub fn abandon(&mut self, id: u64) -> Option<W> {
        self.pending.remove(&id)
    }

    /// The waiter of `id`.
    pub fn waiter(&self, id: u64) -> Option<&W> {
        self.pending.get(&id)
    }

    /// The waiter of `id`, to record activity.
    pub fn waiter_mut(&mut self, id: u64) -> Option<&mut W> {
        self.pending.get_mut(&id)
    }

    /// Number of pending requests.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Counters of ignored input.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Ends the connection; hands out everyone who still waits. Only the first reason counts.
    pub fn end(&mut self, reason: TransportError) -> Vec<W> {
        self.ended.get_or_insert(reason);
        self.pending.drain().map(|(_, waiter)| waiter).collect()
    }

    /// Why the connection ended, if it has.
    pub fn ended(&self) -> Option<&TransportError> {
        self.ended.as_ref()
    }

    /// Takes in one message. Where it came as part of the exchange of one request, trouble that
    /// names no id is that request's own.
    pub fn receive<'a>(
        &mut self,
        bytes: &'a [u8],
        exchange: Option<u64>,
        now: Instant,
    ) -> Step<'a, W> {
        self.take(Parsed::read(bytes, &self.limits), exchange, now)
    }

    /// Takes in one message that was read already, which needs no lock on the connection.
    pub fn take<'a>(
        &mut self,
        message: Parsed<'a>,
        exchange: Option<u64>,
        now: Instant,
    ) -> Step<'a, W> {
        let Parsed { bytes, content } = message;
        let is_noise = match &content {
            // A JSON log line with a field `error` is a print, and fails no request.
            Content::Error { is_print, .. } => *is_print && exchange.is_none(),
            Content::Malformed { is_print, .. } => {
                *is_print && !exchange.is_some_and(|id| self.pending.contains_key(&id))
            }
            Content::TooLong
            | Content::Request { .. }
            | Content::Notification { .. }
            | Content::Result { .. } => false,
        };
        if is_noise {
            return self.noise(bytes + 1);
        }
        match content {
            Content::TooLong => Step::End(self.too_long()),
            Content::Malformed { why, id, fault, .. } => {
                self.malformed(&why, fault, exchange.or(id), now)
            }
            Content::Request { id, method, params } => {
                self.noise_since_message = 0;
                self.unasked(now).unwrap_or(Step::Request { id, method, params })
            }
            Content::Notification { method, params } => {
                self.noise_since_message = 0;
                self.unasked(now).unwrap_or(Step::Notification { method, params })
            }
            Content::Result { id, result } => {
                self.noise_since_message = 0;
                match self.taken(id) {
                    Taken::Waiter(waiter) => Step::Answer(waiter, Ok(result)),
                    Taken::OtherType(waiter) => Step::Answer(waiter, Err(other_type(id))),
                    Taken::Nobody => self.unmatched(Some(id), now),
                }
            }
            Content::Error { id, error, .. } => {
                self.noise_since_message = 0;
                self.refused(id, error, exchange, now)
            }
        }
    }

    /// The error for a message over the size limit, which cannot even be read to its end.
    pub fn too_long(&self) -> TransportError {
        let max = self.limits.message_bytes_max;
        TransportError::after_sending(
            Failure::Protocol,
            format!("the server sent a message of more than {max} bytes"),
        )
    }

    fn refused<'a>(
        &mut self,
        id: Option<&'a RawValue>,
        error: RequestError,
        exchange: Option<u64>,
        now: Instant,
    ) -> Step<'a, W> {
        let waiter = match (id, exchange) {
            (Some(id), _) => match self.taken(id) {
                Taken::Waiter(waiter) => Some(waiter),
                Taken::OtherType(waiter) => return Step::Answer(waiter, Err(other_type(id))),
                Taken::Nobody => None,
            },
            (None, Some(exchange)) => self.pending.remove(&exchange),
            // The server could not read one of our messages and does not name it.
            (None, None) => {
                return self.unasked(now).unwrap_or_else(|| {
                    let why = format!("the server sent an error without a request id: {error}");
                    self.broken(None, RequestError::protocol(why))
                });
            }
        };
        match waiter {
            Some(waiter) => Step::Answer(waiter, Err(error)),
            None => self.unmatched(id, now),
        }
    }

    fn malformed<'a>(
        &mut self,
        why: &str,
        fault: Fault,
        id: Option<u64>,
        now: Instant,
    ) -> Step<'a, W> {
        self.counts.malformed += 1;
        if let Some(end) = self.unasked(now) {
            return end;
        }
        let why = format!("the server sent a broken message: {why}");
        self.broken(id, RequestError::faulty(fault, why))
    }

    fn noise<'a>(&mut self, bytes: u64) -> Step<'a, W> {
        self.counts.noise_bytes += bytes;
        self.noise_since_message += bytes;
        let max = self.limits.noise_bytes_max;
        if self.noise_since_message <= max {
            return Step::Ignored(Ignored::Noise);
        }
        Step::End(self.too_noisy())
    }

    /// The error for more than may come between two messages.
    pub fn too_noisy(&self) -> TransportError {
        let max = self.limits.noise_bytes_max;
        TransportError::after_sending(
            Failure::Protocol,
            format!("the server sent more than {max} bytes that are not messages"),
        )
    }

    /// Fails the request that a broken message belongs to, if it is pending, or all requests if the message cannot be
    /// attributed.
    fn broken<'a>(&mut self, id: Option<u64>, why: RequestError) -> Step<'a, W> {
        let waiters = match id {
            Some(id) => self.pending.remove(&id).into_iter().collect(),
            None => self.pending.drain().map(|(_, waiter)| waiter).collect(),
        };
        Step::Broken(waiters, why)
    }

    /// A response without a waiting request: late, repeated, or with an id that was never given.
    fn unmatched<'a>(&mut self, id: Option<&'a RawValue>, now: Instant) -> Step<'a, W> {
        self.counts.unmatched += 1;
        let is_ours = |id: &RawValue| id.get().parse().is_ok_and(|id: u64| id < self.next_id);
        let foreign = id.filter(|id| !is_ours(id));
        self.unasked(now).unwrap_or(match foreign {
            Some(id) => Step::Foreign(id),
            None => Step::Ignored(Ignored::Unmatched),
        })
    }

    fn taken(&mut self, id: &RawValue) -> Taken<W> {
        let id = id.get();
        if let Some(waiter) = id.parse().ok().and_then(|id: u64| self.pending.remove(&id)) {
            return Taken::Waiter(waiter);
        }
        // Servers that keep ids as strings send `"7"` for 7. No other request can be meant.
        let text = id.strip_prefix('"').and_then(|id| id.strip_suffix('"'));
        let waiter = text.and_then(|id| self.pending.remove(&id.parse().ok()?));
        waiter.map_or(Taken::Nobody, Taken::OtherType)
    }

    /// Counts an unsolicited message.
    fn unasked<'a>(&mut self, now: Instant) -> Option<Step<'a, W>> {
        let since = *self.unasked_since.get_or_insert(now);
        if now.saturating_duration_since(since) >= RATE_SPAN {
            self.unasked_since = Some(now);
            self.unasked = 0;
        }
        self.unasked += 1;
        let max = self.limits.unasked_max;
        (self.unasked > max).then(|| {
            Step::End(TransportError::after_sending(
                Failure::Protocol,
                format!("the server sent more than {max} unsolicited messages in {RATE_SPAN:?}"),
            ))
        })
    }
}

/// The receiver of a response.
enum Taken<W> {
    /// The request that waits for it.
    Waiter(W),
    /// The request whose id it has as a string.
    OtherType(W),
    Nobody,
}

fn other_type(id: &RawValue) -> RequestError {
    let message = format!(
        "the server answered with the id `{id}`, a string, but the request has the number {}",
        id.get().trim_matches('"')
    );
    RequestError::faulty(Fault::ResponseId, message)
}
