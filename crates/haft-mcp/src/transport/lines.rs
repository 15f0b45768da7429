//! Bytes into lines, with a limit on what one line may take.

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8};
use futures_util::FutureExt as _;
use haft_bounds::heavy::LARGE_BYTES;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::MessageRouter;
use crate::budget::Charge;
use crate::error::{Failure, TransportError};

/// Buffer space of one read.
const READ_BYTES: usize = 64 * 1024;
/// Buffer space of one read in the middle of a long line.
const READ_BYTES_MAX: usize = 1024 * 1024;

/// The most room that is kept between two messages, and for how many small ones.
const ROOM_BYTES_MAX: usize = 4 * 1024 * 1024;
const SMALL_IN_A_ROW_MAX: u32 = 64;

/// Bytes of a line around its message: a byte order mark and a carriage return.
const AROUND_BYTES_MAX: usize = 4;

/// Buffered input without a whole line.
pub struct Lines {
    router: MessageRouter,
    buffer: Vec<u8>,
    /// Up to here there is no line end.
    searched: usize,
    /// Number of reads since the last large message.
    small_in_a_row: u32,
    /// The memory of the line that is being read.
    charge: Charge,
    /// Skipped bytes of a line that exceeds the memory budget.
    passed_over: Option<usize>,
}

impl Lines {
    /// Nothing was read yet.
    pub fn new(router: MessageRouter) -> Self {
        let charge = router.charge();
        Self {
            router,
            buffer: Vec::new(),
            searched: 0,
            small_in_a_row: 0,
            charge,
            passed_over: None,
        }
    }

    /// Reads until the end and reports it to the router.
    pub async fn read(mut self, mut reader: impl AsyncRead + Unpin, encoding: &'static Encoding) {
        let mut decoder = (encoding != UTF_8).then(|| encoding.new_decoder_without_bom_handling());
        let mut raw = Vec::new();
        let reason = loop {
            let into = if decoder.is_some() { &mut raw } else { &mut self.buffer };
            // What is long already may be much longer: the room for it grows with it.
            into.reserve(into.len().clamp(READ_BYTES, READ_BYTES_MAX));
            match reader.read_buf(into).await {
                Ok(0) => break "the server closed its output".to_owned(),
                Ok(_) => {}
                Err(error) => break format!("the server's output cannot be read: {error}"),
            }
            if let Some(decoder) = &mut decoder {
                decode(decoder, &raw, &mut self.buffer);
                raw.clear();
            }
            if !self.hand_over().await {
                return;
            }
        };
        // A last line may lack its end.
        if !self.buffer.is_empty() {
            self.buffer.push(b'\n');
            if !self.hand_over().await {
                return;
            }
        }
        self.router.end(&TransportError::after_sending(Failure::Closed, reason));
    }

    /// Adds bytes and hands over every whole line. False: a line is too long, and the router knows. For messages that are
    /// read at once.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        self.buffer.extend_from_slice(bytes);
        self.hand_over().now_or_never().unwrap_or(false)
    }

    async fn hand_over(&mut self) -> bool {
        let max = self.router.limits().message_bytes_max;
        if !self.pass_over() {
            return self.passed_over.is_none_or(|passed| passed <= max) || self.too_long();
        }
        let mut start = 0;
        let mut handed_over = 0;
        while let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
            let end = self.searched + found;
            handed_over += end + 1 - start;
            if end - start > LARGE_BYTES {
                self.hand_over_large(start, end).await;
                start = 0;
            } else {
                self.router.receive(message(&self.buffer[start..end]));
                start = end + 1;
            }
            self.searched = start;
        }
        self.buffer.drain(..start);
        self.searched = self.buffer.len();
        self.give_back_room(handed_over);
        if self.buffer.len() > max.saturating_add(AROUND_BYTES_MAX) {
            return self.too_long();
        }
        if self.buffer.is_empty() {
            self.charge.release();
        } else if let Err(error) = self.charge.cover(self.buffer.len()) {
            // Its request fails; the lines after it are read as ever.
            self.router.refuse_unread(&self.buffer, error);
            self.passed_over = Some(self.buffer.len());
            self.buffer = Vec::new();
            self.searched = 0;
            self.charge.release();
        }
        true
    }

    /// Lends the whole buffer out while the line in it is read elsewhere, so that nothing is copied.
    async fn hand_over_large(&mut self, start: usize, end: usize) {
        let line = Line { buffer: std::mem::take(&mut self.buffer), start, end };
        let Line { mut buffer, end, .. } = self.router.accept(None, line).await;
        buffer.drain(..=end);
        self.buffer = buffer;
    }

    fn too_long(&self) -> bool {
        self.router.end(&self.router.too_long());
        false
    }

    /// Drops the rest of a line that there is no memory for. Whether the buffer begins with a line now.
    fn pass_over(&mut self) -> bool {
        let Some(passed) = self.passed_over else { return true };
        if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
            self.buffer.drain(..=end);
            self.passed_over = None;
        } else {
            self.passed_over = Some(passed + self.buffer.len());
            self.buffer.clear();
        }
        self.searched = 0;
        self.passed_over.is_none()
    }

    /// A large message keeps its room for the next one, which is often as large, but not for ever.
    fn give_back_room(&mut self, handed_over: usize) {
        let room = self.buffer.capacity();
        if room <= 4 * READ_BYTES || !self.buffer.is_empty() {
            return;
        }
        self.small_in_a_row = if handed_over > READ_BYTES { 0 } else { self.small_in_a_row + 1 };
        if room > ROOM_BYTES_MAX || self.small_in_a_row > SMALL_IN_A_ROW_MAX {
            self.buffer = Vec::new();
            self.small_in_a_row = 0;
        }
    }
}

/// A line within the buffer it was read into.
struct Line {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl AsRef<[u8]> for Line {
    fn as_ref(&self) -> &[u8] {
        message(&self.buffer[self.start..self.end])
    }
}

/// The message of a line. Empty lines have one too: they are noise, and noise has a limit.
fn message(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // Some platforms put a mark before the first thing a program prints.
    line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
}

/// Decodes what was read; a character that is cut at the end waits inside the decoder.
fn decode(decoder: &mut Decoder, raw: &[u8], into: &mut Vec<u8>) {
    let mut text = String::with_capacity(READ_BYTES);
    let mut read = 0;
    loop {
        let (result, count, _) = decoder.decode_to_string(&raw[read..], &mut text, false);
        read += count;
        into.extend_from_slice(text.as_bytes());
        text.clear();
        if result == CoderResult::InputEmpty {
            return;
        }
    }
}
