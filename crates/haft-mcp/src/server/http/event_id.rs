//! Ids of events: the replica that keeps the stream (only where there are replicas), the stream, the event.

use std::fmt;
use std::num::NonZeroU16;

/// The id of an event, such as `3-41`, or `31746-3-41` where there are replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) replica: Option<NonZeroU16>,
    pub(super) stream: u64,
    pub(super) event: u64,
}

impl EventId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (rest, event) = text.rsplit_once('-')?;
        let (replica, stream) = match rest.split_once('-') {
            Some((replica, stream)) => (Some(replica.parse().ok()?), stream),
            None => (None, rest),
        };
        Some(Self { replica, stream: stream.parse().ok()?, event: event.parse().ok()? })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replica, stream, event } = self;
        match replica {
            Some(replica) => write!(f, "{replica}-{stream}-{event}"),
            None => write!(f, "{stream}-{event}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let replica = NonZeroU16::new(31746);
        for (text, replica) in [("3-41", None), ("31746-3-41", replica)] {
            let id = EventId { replica, stream: 3, event: 41 };
            assert_eq!(id.to_string(), text);
            assert_eq!(EventId::parse(text), Some(id));
        }
        for text in ["", "3", "-", "0-3-41", "65536-3-41", "1-2-3-4", "a-b"] {
            assert_eq!(EventId::parse(text), None, "{text}");
        }
    }
}
