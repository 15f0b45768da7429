//! Captures the output of a run, up to a limit.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Number of bytes kept of each of the two outputs: the beginning and the end.
///
/// More than a model receives by default, so that the log has the part that was cut there.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

const HEAD_BYTES_MAX: usize = OUTPUT_BYTES_MAX / 4 * 3;
const TAIL_BYTES_MAX: usize = OUTPUT_BYTES_MAX - HEAD_BYTES_MAX;
const READ_BYTES: usize = 8 * 1024;

/// The beginning and the end of a stream.
#[derive(Debug, Default)]
pub(super) struct Captured {
    head: Vec<u8>,
    tail: Vec<u8>,
    total: usize,
}

impl Captured {
    /// Reads `pipe` until it ends, so that the process never blocks on a full pipe.
    pub(super) async fn drain(&mut self, mut pipe: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; READ_BYTES];
        // An error ends the stream: there is nothing more to keep.
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            self.push(&buffer[..count]);
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len();
        let room = HEAD_BYTES_MAX - self.head.len();
        let (head, tail) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        // Grows to twice the size before the front is dropped, so that the bytes are not moved at
        // each push.
        if self.tail.len() > 2 * TAIL_BYTES_MAX {
            self.tail.drain(..self.tail.len() - TAIL_BYTES_MAX);
        }
    }

    /// The text; invalid UTF-8 shows as `U+FFFD`, and a separate line states how much was cut.
    pub(super) fn text(&self) -> String {
        if self.total <= OUTPUT_BYTES_MAX {
            let whole = [self.head.as_slice(), self.tail.as_slice()].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        // Whole lines only: half a line may hold half a secret, which redaction would miss.
        let head_end = self.head.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let head = if head_end == 0 { self.head.as_slice() } else { &self.head[..head_end] };
        let last = &self.tail[self.tail.len().saturating_sub(TAIL_BYTES_MAX)..];
        let tail_start = last.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let tail = &last[tail_start..];
        let cut = self.total - head.len() - tail.len();
        let head = String::from_utf8_lossy(head);
        let tail = String::from_utf8_lossy(tail);
        format!(
            "{}\n[{cut} of {} bytes were cut here]\n{}",
            head.trim_end_matches(['\n', '\u{fffd}']),
            self.total,
            tail.trim_start_matches('\u{fffd}')
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_keeps_its_beginning_and_its_end_and_says_what_is_missing() {
        let lines: Vec<String> = (0..1_000_000).map(|line| format!("{line}\n")).collect();
        let lines = lines.concat();
        let mut captured = Captured::default();
        captured.drain(lines.as_bytes()).await;
        let text = captured.text();
        assert!(text.len() <= OUTPUT_BYTES_MAX + 100);
        let (head, rest) = text.split_once("\n[").unwrap();
        let (marker, tail) = rest.split_once("]\n").unwrap();
        assert!(head.starts_with("0\n1\n") && tail.ends_with("\n999999\n"));
        let cut: usize = marker.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(head.len() + 1 + tail.len() + cut, lines.len());
        assert!(lines.contains(&format!("\n{tail}")) && lines.starts_with(&format!("{head}\n")));
    }

    #[tokio::test]
    async fn what_fits_is_whole_and_a_letter_is_never_cut() {
        let mut captured = Captured::default();
        captured.drain("é".repeat(OUTPUT_BYTES_MAX / 2).as_bytes()).await;
        assert_eq!(captured.text(), "é".repeat(OUTPUT_BYTES_MAX / 2));
        captured.drain(["x".as_bytes(), "é".repeat(1000).as_bytes()].concat().as_slice()).await;
        let marker = format!("of {} bytes were cut here", OUTPUT_BYTES_MAX + 2001);
        assert!(captured.text().contains(&marker));
        assert!(!captured.text().contains('\u{fffd}'));
    }
}
