//! Feeds any bytes into the readers of the wire. Each function returns the parsed result, and panics if a promise is
//! broken; the fuzz targets and the test of their corpus call the same ones.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use haft_bounds::json::{self, Budget};
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::core::{Core, Step};
use crate::error::TransportError;
use crate::transport::lines::Lines;
use crate::transport::read_events;
use crate::wire::{self, Incoming};
use crate::{Handler, Limits, MessageRouter};

/// Small enough that inputs reach every one of them.
const LIMITS: Limits = Limits {
    message_bytes_max: 512,
    depth_max: 16,
    nodes_max: 128,
    noise_bytes_max: 256,
    unasked_max: 32,
    server_requests_max: 4,
    pages_max: 1,
    items_max: 1,
};

/// The parsed output of a stdio server, read in these pieces.
pub fn framing(pieces: &[&[u8]]) -> String {
    let notes = Arc::new(Notes::default());
    let router = MessageRouter::new(Arc::clone(&notes) as Arc<dyn Handler>, LIMITS);
    let mut lines = Lines::new(router.clone());
    // Whether a line is cut off while it is read or when it is whole makes no difference.
    let is_whole = pieces.iter().all(|piece| lines.push(piece));
    assert!(is_whole || router.ended().is_some(), "cut off without an error");
    let received = notes.0.lock();
    format!("{received}{:?}", router.ended().map(|reason| reason.message))
}

/// The parsed stream of events, read in these pieces.
pub fn event_stream(pieces: &[&[u8]]) -> String {
    read_events(pieces, LIMITS.message_bytes_max)
}

/// Counts the nodes of a document, and compares them with a parser's count.
pub fn nodes(bytes: &[u8]) -> String {
    let shape = json::measure(bytes);
    let budget = Budget { nodes_max: 16, depth_max: 4 };
    let checked = budget.check(bytes);
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        // A key that comes twice is counted twice and kept once.
        assert!(shape.nodes >= nodes_of(&value), "fewer values than a parser finds");
        let fits = shape.nodes <= budget.nodes_max && shape.depth <= budget.depth_max;
        assert_eq!(checked.is_ok(), fits, "the check and the count disagree");
    }
    format!("{shape:?} {checked:?}")
}

fn nodes_of(value: &Value) -> usize {
    let inner: usize = match value {
        Value::Array(items) => items.iter().map(nodes_of).sum(),
        Value::Object(members) => members.values().map(|value| 1 + nodes_of(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    1 + inner
}

/// The parsed form of one message.
pub fn envelope(bytes: &[u8]) -> String {
    let parsed = wire::parse(bytes, LIMITS.budget());
    if let Ok(message) = &parsed {
        let shape = json::measure(bytes);
        assert!(shape.depth <= LIMITS.depth_max, "too deep, and read");
        assert!(shape.nodes <= LIMITS.nodes_max, "too many values, and read");
        let id = match message {
            Incoming::Request { id, .. } | Incoming::Result { id, .. } => Some(*id),
            Incoming::Error { id, .. } => *id,
            Incoming::Notification { .. } => None,
        };
        if let (Some(id), Some(salvaged)) = (id, wire::salvage_id(bytes)) {
            assert_eq!(id.get(), salvaged.to_string(), "another id is salvaged than read");
        }
        // What is handed on untouched is JSON by itself.
        if let Incoming::Result { result, .. } = message {
            assert!(serde_json::from_str::<&RawValue>(result.get()).is_ok(), "half a result");
        }
    }
    hand_out(bytes);
    format!("{parsed:?}")
}

/// Each waiter is handed out at most once, and only if it was pending.
fn hand_out(bytes: &[u8]) {
    let mut core = Core::new(LIMITS);
    for waiter in 1..=3 {
        assert!(core.wait(waiter, waiter).is_ok(), "a fresh connection refuses");
    }
    let now = Instant::now();
    let mut handed_out = Vec::new();
    for _ in 0..2 {
        match core.receive(bytes, None, now) {
            Step::Answer(waiter, _) => handed_out.push(waiter),
            Step::Broken(waiters, _) => handed_out.extend(waiters),
            Step::End(reason) => handed_out.extend(core.end(reason)),
            Step::Request { .. }
            | Step::Notification { .. }
            | Step::Ignored(_)
            | Step::Foreign(_) => {}
        }
    }
    let count = handed_out.len();
    handed_out.sort_unstable();
    handed_out.dedup();
    assert_eq!(handed_out.len(), count, "handed out twice");
    assert_eq!(count + core.pending(), 3, "a waiter was lost");
}

/// Everything that a handler receives, in order.
#[derive(Default)]
struct Notes(Mutex<String>);

impl Notes {
    fn add(&self, what: std::fmt::Arguments<'_>) {
        let mut notes = self.0.lock();
        // Writing to a string cannot fail.
        let _ = writeln!(notes, "{what}");
    }
}

impl Handler for Notes {
    fn notification(&self, method: &str, params: Option<&RawValue>) {
        self.add(format_args!("notification {method:?} {:?}", params.map(RawValue::get)));
    }

    fn report_anomaly(&self, what: &str) {
        self.add(format_args!("trouble {what:?}"));
    }

    fn ended(&self, reason: &TransportError) {
        self.add(format_args!("ended {reason}"));
    }
}
