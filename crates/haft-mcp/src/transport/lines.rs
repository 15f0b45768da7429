//! Bytes into lines, with a limit on what one line may take.

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::Inbox;
use crate::error::{Failure, TransportError};

/// How much room there is for one read.
const READ_BYTES: usize = 64 * 1024;
/// How much room there is for one read in the middle of a long line.
const READ_BYTES_MAX: usize = 1024 * 1024;

/// What a line may have around its message: a byte order mark and a carriage return.
const AROUND_BYTES_MAX: usize = 4;

/// What was read and is no whole line yet.
pub struct Lines {
    inbox: Inbox,
    buffer: Vec<u8>,
    /// Up to here there is no line end.
    searched: usize,
}

impl Lines {
    /// Nothing was read yet.
    pub fn new(inbox: Inbox) -> Self {
        Self { inbox, buffer: Vec::new(), searched: 0 }
    }

    /// Reads until the end and says so to the inbox.
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
            if !self.hand_over() {
                return;
            }
        };
        // A last line may lack its end.
        let rest = std::mem::take(&mut self.buffer);
        if !rest.is_empty() {
            self.hand_over_line(&rest);
        }
        self.inbox.end(&TransportError::after_sending(Failure::Closed, reason));
    }

    /// Adds bytes and hands over every whole line. False: a line is too long, and the inbox knows.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        self.buffer.extend_from_slice(bytes);
        self.hand_over()
    }

    fn hand_over(&mut self) -> bool {
        let mut start = 0;
        while let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
            let end = self.searched + found;
            self.hand_over_line(&self.buffer[start..end]);
            start = end + 1;
            self.searched = start;
        }
        self.buffer.drain(..start);
        self.searched = self.buffer.len();
        // A large message must not keep its room for ever.
        if self.buffer.is_empty() && self.buffer.capacity() > 4 * READ_BYTES {
            self.buffer = Vec::new();
        }
        let max = self.inbox.limits().message_bytes_max;
        if self.buffer.len() > max.saturating_add(AROUND_BYTES_MAX) {
            self.inbox.end(&self.inbox.too_long());
            return false;
        }
        true
    }

    fn hand_over_line(&self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Some platforms put a mark before the first thing a program prints.
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        // Empty lines too: they are noise, and noise has a limit.
        self.inbox.receive(line);
    }
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
