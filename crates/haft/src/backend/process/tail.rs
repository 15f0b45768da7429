//! The last part of a process's output, for error messages.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Number of bytes kept of a stream.
pub const TAIL_BYTES_MAX: usize = 64 * 1024;

/// Number of characters of a line in a message; the details hold all of it.
const LINE_CHARS_MAX: usize = 300;

const READ_BYTES: usize = 8 * 1024;

/// The last [`TAIL_BYTES_MAX`] bytes of a stream.
#[derive(Debug, Default)]
pub struct Tail {
    kept: Vec<u8>,
    cut: bool,
}

impl Tail {
    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        // Grows to twice the size before the front is dropped, so that the bytes are not moved at
        // each push.
        if self.kept.len() > 2 * TAIL_BYTES_MAX {
            self.kept.drain(..self.kept.len() - TAIL_BYTES_MAX);
            self.cut = true;
        }
    }

    /// Discards the content.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.cut = false;
    }

    /// The tail as text; invalid UTF-8 shows as `U+FFFD`, and `...` marks a cut.
    pub fn text(&self) -> String {
        let start = self.kept.len().saturating_sub(TAIL_BYTES_MAX);
        let text = String::from_utf8_lossy(&self.kept[start..]);
        if !self.cut && start == 0 {
            return text.into_owned();
        }
        // Whole lines only: half a line may hold half a secret, which redaction would miss.
        let whole = text.split_once('\n').map_or(&*text, |(_, whole)| whole);
        format!("...{whole}")
    }
}

/// The last non-empty line, which usually holds the error.
pub fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LINE_CHARS_MAX).collect())
}

/// A tail that one task fills and another reads.
#[derive(Debug, Clone, Default)]
pub struct SharedTail(Arc<Mutex<Tail>>);

impl SharedTail {
    /// Reads `pipe` until it ends, so that the process never blocks on a full pipe.
    pub async fn drain(&self, mut pipe: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; READ_BYTES];
        // An error ends the stream: there is nothing more to keep.
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            self.with(|tail| tail.push(&buffer[..count]));
        }
    }

    /// Discards the content.
    pub fn clear(&self) {
        self.with(Tail::clear);
    }

    /// See [`Tail::text`].
    pub fn text(&self) -> String {
        self.with(|tail| tail.text())
    }

    fn with<T>(&self, look: impl FnOnce(&mut Tail) -> T) -> T {
        look(&mut self.0.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_bytes_of_a_flood_are_kept() {
        let flood = [vec![b'x'; 4 * 1024 * 1024], b"\xffthe end".to_vec()].concat();
        let tail = SharedTail::default();
        tail.drain(flood.as_slice()).await;
        let text = tail.text();
        assert!(text.starts_with("...xxx") && text.ends_with("x\u{fffd}the end"));
        assert_eq!(text.len(), "...".len() + TAIL_BYTES_MAX - 1 + "\u{fffd}".len());
    }

    #[test]
    fn the_last_line_that_is_not_empty_is_found() {
        assert_eq!(last_line("first\n  second \n\n").as_deref(), Some("second"));
        assert_eq!(last_line(" \n"), None);
        assert_eq!(last_line(&"é".repeat(1000)).unwrap().chars().count(), LINE_CHARS_MAX);
    }

    #[test]
    fn a_short_text_is_kept_whole() {
        let mut tail = Tail::default();
        tail.push(b"all ");
        tail.push(b"of it");
        assert_eq!(tail.text(), "all of it");
        tail.clear();
        assert_eq!(tail.text(), "");
    }
}
