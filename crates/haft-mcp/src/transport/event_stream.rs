//! Server-sent events: bytes in, events out. No I/O; where the bytes were cut makes no difference.

use std::time::Duration;

/// Bytes of a line besides its value: the field's name, a colon, a space.
const FIELD_BYTES_MAX: usize = 16;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The kind of event; empty for a plain message.
    pub(super) name: String,
    /// Its lines of data, joined.
    pub(super) data: Vec<u8>,
}

/// The limit that a stream exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// A line or an event is longer than a message may be.
    Message,
    /// Too much came since the last event that is none: comments and unknown fields.
    Noise,
}

/// A stream of events that is being read.
#[derive(Debug)]
pub(super) struct EventStream {
    data_bytes_max: usize,
    noise_bytes_max: u64,
    /// Bytes since the last event, without its data.
    noise_bytes: u64,
    /// Received bytes, from the first byte of the line that has not ended yet.
    buffer: Vec<u8>,
    /// Where that line starts in the buffer.
    start: usize,
    /// Up to where the buffer has no more line ends.
    searched: usize,
    is_first_line: bool,
    /// The last line ended with a carriage return, so a line feed right now belongs to it.
    after_return: bool,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl EventStream {
    /// A stream of which nothing has been read.
    pub(super) fn new(data_bytes_max: usize, noise_bytes_max: u64) -> Self {
        Self {
            data_bytes_max,
            noise_bytes_max,
            noise_bytes: 0,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            is_first_line: true,
            after_return: false,
            name: String::new(),
            data: Vec::new(),
            has_data: false,
            id: None,
            last_id: None,
            retry: None,
        }
    }

    /// The id of the last complete event: the point to resume from.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The server's reconnect delay.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes in what arrived. [`Self::next`] gives the events.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Size of the incomplete event.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.buffer.len() - self.start + self.data.len()
    }

    /// The next complete event, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Event>, Excess> {
        loop {
            if self.after_return && self.buffer.get(self.start) == Some(&b'\n') {
                self.start += 1;
                self.searched = self.start;
                self.after_return = false;
            }
            let found = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]);
            let end = found.map_or(self.buffer.len(), |found| self.searched + found);
            if end - self.start > self.data_bytes_max.saturating_add(FIELD_BYTES_MAX) {
                return Err(Excess::Message);
            }
            if found.is_none() {
                // An empty rest does not show if a line feed follows.
                self.after_return &= self.start == self.buffer.len();
                self.searched = end;
                return Ok(None);
            }
            self.after_return = self.buffer[end] == b'\r';
            let event = self.line(self.start, end)?;
            self.start = end + 1;
            self.searched = self.start;
            if event.is_some() {
                self.noise_bytes = 0;
                return Ok(event);
            }
            if self.noise_bytes > self.noise_bytes_max {
                return Err(Excess::Noise);
            }
        }
    }

    /// Takes in the line at `start..end`. An empty one completes an event.
    fn line(&mut self, mut start: usize, end: usize) -> Result<Option<Event>, Excess> {
        if self.is_first_line && self.buffer[start..end].starts_with(BYTE_ORDER_MARK) {
            start += BYTE_ORDER_MARK.len();
        }
        self.is_first_line = false;
        let line = &self.buffer[start..end];
        if !line.starts_with(b"data:") {
            self.noise_bytes += line.len() as u64 + 1;
        }
        if line.is_empty() {
            return Ok(self.complete());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            // A line that starts with a colon is a comment.
            Some(0) => return Ok(None),
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                let joint = usize::from(self.has_data);
                if self.data.len() + joint + value.len() > self.data_bytes_max {
                    return Err(Excess::Message);
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => {
                let millis = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
        Ok(None)
    }

    fn complete(&mut self) -> Option<Event> {
        if let Some(id) = self.id.take() {
            // An empty id takes the last one back.
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        self.has_data = false;
        (!data.is_empty()).then_some(Event { name, data })
    }
}

/// Parses a stream in these pieces, for tests with any bytes.
pub(crate) fn read_all(pieces: &[&[u8]], data_bytes_max: usize) -> String {
    let mut stream = EventStream::new(data_bytes_max, u64::MAX);
    let mut events = Vec::new();
    for piece in pieces {
        stream.push(piece);
        loop {
            match stream.next() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                // What was complete before stays; the rest is of no more use.
                Err(_) => return format!("{events:?}, and then too long"),
            }
        }
    }
    format!("{events:?}, {:?}, {:?}", stream.last_id(), stream.retry())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Read = (Vec<(String, String)>, Option<String>, Option<Duration>, bool);

    fn read(pieces: &[&[u8]], max: usize) -> Read {
        let mut stream = EventStream::new(max, u64::MAX);
        let mut events = Vec::new();
        let mut is_too_long = false;
        'pieces: for piece in pieces {
            stream.push(piece);
            loop {
                match stream.next() {
                    Ok(Some(Event { name, data })) => {
                        events.push((name, String::from_utf8_lossy(&data).into_owned()));
                    }
                    Ok(None) => break,
                    Err(_) => {
                        is_too_long = true;
                        break 'pieces;
                    }
                }
            }
        }
        (events, stream.last_id().map(ToOwned::to_owned), stream.retry(), is_too_long)
    }

    fn events(text: &str) -> Vec<(String, String)> {
        read(&[text.as_bytes()], 1000).0
    }

    fn event(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn fields_lines_and_comments_follow_the_standard() {
        assert_eq!(
            events(
                "\u{feff}data: a\ndata:b\ndata\n\n: ping\r\nevent: endpoint\r\ndata: /x\r\n\r\n"
            ),
            [event("", "a\nb\n"), event("endpoint", "/x")]
        );
        assert_eq!(events("data: 1\r\rdata:  2\r\r"), [event("", "1"), event("", " 2")]);
        assert_eq!(events("event: none\n\nother: x\ndata: y\n\n"), [event("", "y")]);
        assert_eq!(events("data: never ended\n"), []);
    }

    #[test]
    fn comments_and_unknown_fields_are_bounded() {
        let mut stream = EventStream::new(1000, 100);
        for _ in 0..10 {
            stream.push(b": ping\n\n: ping\n\ndata: x\n\n");
            let events: Vec<_> = std::iter::from_fn(|| stream.next().unwrap()).collect();
            assert_eq!(events.len(), 1, "an event restarts the count");
        }
        stream.push(": ping\n\nstrange: line\n".repeat(5).as_bytes());
        assert_eq!(stream.next(), Err(Excess::Noise));
    }

    #[test]
    fn ids_count_when_their_event_is_complete() {
        let ids = |text: &str| read(&[text.as_bytes()], 1000).1;
        assert_eq!(ids("id: 7\ndata:\n\n").as_deref(), Some("7"));
        assert_eq!(ids("id: 7\n\nid: 8\ndata: cut").as_deref(), Some("7"));
        assert_eq!(ids("id: 7\n\nid\n\n"), None);
        assert_eq!(ids("id: 7\n\nid: a\0b\n\n").as_deref(), Some("7"));
        let retry = read(&[b"retry: 500\nretry: soon\n\n"], 1000).2;
        assert_eq!(retry, Some(Duration::from_millis(500)));
    }

    #[test]
    fn lines_and_events_over_the_limit_are_refused() {
        let too_long = |text: &str| read(&[text.as_bytes()], 10).3;
        assert!(!too_long("data: 1234567890\n\n"));
        assert!(too_long("data: 12345\ndata: 12345\n\n"));
        assert!(too_long("data: 1234567890123\n\n"));
        assert!(too_long(": a comment that never comes to its end"));
    }

    proptest! {
        /// Wherever the network cuts the bytes, the events are the same.
        #[test]
        fn cutting_the_bytes_changes_nothing(
            lines in prop::collection::vec("(data|id|event|retry|)(:|: |)[a-c0-9]{0,4}(\r|\n|\r\n|\n\n|\r\r|\r\n\r\n)", 0..12),
            mark in any::<bool>(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let text = format!("{}{}", if mark { "\u{feff}" } else { "" }, lines.concat());
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut start = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                pieces.push(&bytes[start..cut]);
                start = cut;
            }
            prop_assert_eq!(read(&pieces, 1000), read(&[bytes], 1000));
        }
    }
}
