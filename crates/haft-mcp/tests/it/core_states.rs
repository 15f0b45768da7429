//! Any order of events against the bookkeeping of a connection, compared with a plain model of it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use haft_mcp::core::{Core, Counts, Ignored, Step};
use haft_mcp::{Failure, Limits, RequestError, Sent, TransportError};
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    message_bytes_max: 120,
    depth_max: 4,
    nodes_max: 40,
    noise_bytes_max: 60,
    unasked_max: 6,
    server_requests_max: 1,
    pages_max: 1,
    items_max: 1,
};
const RATE_SPAN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
enum Event {
    Wait,
    Abandon(u64),
    Receive(Message),
    Pass(u64),
    End,
}

/// A server's message. Ids are small, so that they hit requests that are pending, were answered or given up, and that
/// never were.
#[derive(Debug, Clone)]
enum Message {
    Result(u64),
    Error(u64),
    BrokenError(u64),
    ErrorForNobody,
    StrangeId(&'static str),
    Deep(u64),
    BadUtf8(u64),
    MalformedWithoutId,
    Batch(u64),
    Noise(usize),
    Notification,
    Request,
    TooLong,
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        5 => (1..12_u64).prop_map(Message::Result),
        2 => (1..12_u64).prop_map(Message::Error),
        1 => (1..12_u64).prop_map(Message::BrokenError),
        1 => Just(Message::ErrorForNobody),
        1 => prop_oneof![Just("\"1\""), Just("1.0"), Just("-1"), Just("[1]"), Just("1e0")]
            .prop_map(Message::StrangeId),
        1 => (1..12_u64).prop_map(Message::Deep),
        1 => (1..12_u64).prop_map(Message::BadUtf8),
        1 => Just(Message::MalformedWithoutId),
        1 => (1..12_u64).prop_map(Message::Batch),
        2 => (0..40_usize).prop_map(Message::Noise),
        2 => Just(Message::Notification),
        2 => Just(Message::Request),
        1 => Just(Message::TooLong),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(Event::Wait),
        2 => (1..12_u64).prop_map(Event::Abandon),
        12 => message().prop_map(Event::Receive),
        2 => (0..12_u64).prop_map(Event::Pass),
        1 => Just(Event::End),
    ]
}

impl Message {
    fn bytes(&self) -> Vec<u8> {
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        match self {
            Self::Result(id) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
            Self::Error(id) => {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"no"}}}}"#)
            }
            Self::BrokenError(id) => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"no"}}"#),
            Self::ErrorForNobody => {
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}"#.to_owned()
            }
            Self::StrangeId(id) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
            Self::Deep(id) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, deep(5)),
            Self::BadUtf8(id) => {
                let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":""#);
                return [head.as_bytes(), b"\xff\"}"].concat();
            }
            Self::MalformedWithoutId => r#"{"jsonrpc":"2.0","result":{}}"#.to_owned(),
            Self::Batch(id) => format!(r#"[{{"jsonrpc":"2.0","id":{id},"result":{{}}}}]"#),
            Self::Noise(length) => "#".repeat(*length),
            Self::Notification => r#"{"jsonrpc":"2.0","method":"tell"}"#.to_owned(),
            Self::Request => r#"{"jsonrpc":"2.0","id":1,"method":"ask"}"#.to_owned(),
            Self::TooLong => format!(r#"{{"method":"tell","params":{{"a":"{}"}}}}"#, deep(50)),
        }
        .into_bytes()
    }
}

/// The result of a step, without its messages.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Answer(u64, &'static str),
    Broken(BTreeSet<u64>),
    Request,
    Notification,
    Ignored(Ignored),
    End(BTreeSet<u64>),
}

#[derive(Default)]
struct Model {
    waiting: BTreeSet<u64>,
    counts: Counts,
    noise: u64,
    unasked_since: Option<Instant>,
    unasked: u32,
}

impl Model {
    fn receive(&mut self, message: &Message, now: Instant) -> Outcome {
        match message {
            Message::TooLong => return self.end(),
            Message::Noise(length) => {
                let bytes = *length as u64 + 1;
                self.counts.noise_bytes += bytes;
                self.noise += bytes;
                if self.noise > LIMITS.noise_bytes_max {
                    return self.end();
                }
                return Outcome::Ignored(Ignored::Noise);
            }
            // Broken ones do not show that the server speaks MCP.
            Message::Deep(_)
            | Message::BadUtf8(_)
            | Message::MalformedWithoutId
            | Message::Batch(_) => self.counts.malformed += 1,
            _ => self.noise = 0,
        }
        match message {
            Message::Result(id) if self.waiting.remove(id) => Outcome::Answer(*id, "result"),
            Message::Error(id) if self.waiting.remove(id) => Outcome::Answer(*id, "error"),
            Message::BrokenError(id) if self.waiting.remove(id) => Outcome::Answer(*id, "protocol"),
            // The id of the first request as a string: no other request can be meant.
            Message::StrangeId("\"1\"") if self.waiting.remove(&1) => {
                Outcome::Answer(1, "protocol")
            }
            Message::Result(_)
            | Message::Error(_)
            | Message::BrokenError(_)
            | Message::StrangeId(_) => {
                self.counts.unmatched += 1;
                self.unasked(now).unwrap_or(Outcome::Ignored(Ignored::Unmatched))
            }
            Message::Notification => self.unasked(now).unwrap_or(Outcome::Notification),
            Message::Request => self.unasked(now).unwrap_or(Outcome::Request),
            Message::Deep(id) | Message::BadUtf8(id) => self
                .unasked(now)
                .unwrap_or_else(|| Outcome::Broken(self.waiting.take(id).into_iter().collect())),
            Message::ErrorForNobody | Message::MalformedWithoutId | Message::Batch(_) => self
                .unasked(now)
                .unwrap_or_else(|| Outcome::Broken(std::mem::take(&mut self.waiting))),
            Message::TooLong | Message::Noise(_) => unreachable!("handled above"),
        }
    }

    fn unasked(&mut self, now: Instant) -> Option<Outcome> {
        if self.unasked_since.is_none_or(|since| now - since >= RATE_SPAN) {
            self.unasked_since = Some(now);
            self.unasked = 0;
        }
        self.unasked += 1;
        (self.unasked > LIMITS.unasked_max).then(|| self.end())
    }

    fn end(&mut self) -> Outcome {
        Outcome::End(std::mem::take(&mut self.waiting))
    }
}

/// Does with a step what the router does.
fn outcome(core: &mut Core<u64>, bytes: &[u8], now: Instant) -> Outcome {
    match core.receive(bytes, None, now) {
        Step::Answer(id, Ok(_)) => Outcome::Answer(id, "result"),
        Step::Answer(id, Err(RequestError::Rpc(_))) => Outcome::Answer(id, "error"),
        Step::Answer(id, Err(RequestError::Protocol { .. })) => Outcome::Answer(id, "protocol"),
        Step::Answer(_, Err(error)) => panic!("a message became {error:?}"),
        Step::Broken(ids, _) => Outcome::Broken(distinct(ids)),
        Step::Request { .. } => Outcome::Request,
        Step::Notification { .. } => Outcome::Notification,
        Step::Ignored(ignored) => Outcome::Ignored(ignored),
        Step::Foreign(_) => Outcome::Ignored(Ignored::Unmatched),
        Step::End(reason) => {
            assert_eq!((reason.kind, reason.sent), (Failure::Protocol, Sent::Maybe));
            Outcome::End(distinct(core.end(reason)))
        }
    }
}

/// Asserts that no waiter is handed out twice.
fn distinct(ids: Vec<u64>) -> BTreeSet<u64> {
    let count = ids.len();
    let ids: BTreeSet<u64> = ids.into_iter().collect();
    assert_eq!(ids.len(), count);
    ids
}

proptest! {
    /// Proves S3-SC-007: each waiter is handed out exactly once or still waits; nothing is handed out for an id that
    /// does not wait; limits end the connection exactly when exceeded.
    #[test]
    fn the_books_agree_with_the_model(events in prop::collection::vec(event(), 0..120)) {
        let (mut core, mut model) = (Core::new(LIMITS), Model::default());
        let mut now = Instant::now();
        let mut issued = 0;
        let mut ended = false;
        for event in events {
            match event {
                Event::Wait => {
                    let id = core.next_id();
                    issued += 1;
                    prop_assert_eq!(id, issued);
                    let waits = core.wait(id, id);
                    prop_assert_eq!(waits.is_err(), ended);
                    match waits {
                        Ok(()) => prop_assert!(model.waiting.insert(id)),
                        Err(refusal) => prop_assert_eq!(refusal.sent, Sent::No),
                    }
                }
                Event::Abandon(id) => {
                    let expected = model.waiting.take(&id);
                    prop_assert_eq!(core.abandon(id), expected);
                }
                Event::Pass(secs) => now += Duration::from_secs(secs),
                Event::Receive(message) => {
                    let expected = model.receive(&message, now);
                    ended |= matches!(expected, Outcome::End(_));
                    prop_assert_eq!(outcome(&mut core, &message.bytes(), now), expected);
                }
                Event::End => {
                    ended = true;
                    let reason = TransportError::after_sending(Failure::Closed, "gone");
                    let handed_out = distinct(core.end(reason));
                    prop_assert_eq!(handed_out, std::mem::take(&mut model.waiting));
                }
            }
            prop_assert_eq!(core.pending(), model.waiting.len());
            prop_assert!(model.waiting.iter().all(|id| core.waiter(*id) == Some(id)));
            prop_assert_eq!(core.counts(), model.counts);
            prop_assert_eq!(core.ended().is_some(), ended);
        }
    }
}
