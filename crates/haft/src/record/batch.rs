//! Lines that wait to be written or are being written, one after the other in one buffer.

use std::collections::VecDeque;
use std::ops::Range;

use jiff::civil::Date;

use super::line::Line;
use crate::memory::Reservation;

/// A larger buffer is not kept for the next batch.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// Whole lines in their order, and their bytes as they are written.
#[derive(Debug, Default)]
pub(super) struct Batch {
    text: Vec<u8>,
    lines: VecDeque<Queued>,
}

/// One line of a batch.
#[derive(Debug)]
struct Queued {
    /// The date whose file it belongs to.
    date: Date,
    /// Its length with its newline.
    bytes: usize,
    /// The memory it takes until it is written.
    _memory: Option<Reservation>,
}

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The length of all lines.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The date of a line, if the batch has it.
    pub(super) fn date(&self, line: usize) -> Option<Date> {
        self.lines.get(line).map(|line| line.date)
    }

    /// The lines of `date` that follow each other from `first` on.
    pub(super) fn run_of_date(&self, first: usize, date: Date) -> Range<usize> {
        let count = self.lines.range(first..).take_while(|line| line.date == date).count();
        first..first + count
    }

    /// The lengths of some lines, with their newlines.
    pub(super) fn lengths(&self, lines: Range<usize>) -> impl Iterator<Item = usize> + Clone {
        self.lines.range(lines).map(|line| line.bytes)
    }

    /// The bytes in a range, such as those of some lines.
    pub(super) fn text(&self, range: Range<usize>) -> &[u8] {
        &self.text[range]
    }

    /// Adds a line at the end. Copies it, unless it is long and the first: then the batch takes its buffer.
    pub(super) fn push(&mut self, line: &mut Line) {
        let bytes = line.text.len();
        if self.text.is_empty() && bytes > KEPT_BYTES_MAX {
            self.text = std::mem::take(&mut line.text).into_bytes();
        } else {
            self.text.extend_from_slice(line.text.as_bytes());
        }
        self.lines.push_back(Queued { date: line.date, bytes, _memory: line.memory.take() });
    }

    /// Drops the last line and returns whether there was one.
    pub(super) fn pop(&mut self) -> bool {
        let Some(line) = self.lines.pop_back() else { return false };
        self.text.truncate(self.text.len() - line.bytes);
        true
    }

    /// Moves lines from the beginning into the empty `target`, within `bytes_max` unless the first line is
    /// longer.
    pub(super) fn move_front(&mut self, target: &mut Self, bytes_max: usize) {
        if self.text.len() <= bytes_max {
            std::mem::swap(self, target);
            return;
        }
        let mut bytes = 0;
        while let Some(line) = self.lines.front()
            && (bytes == 0 || bytes + line.bytes <= bytes_max)
        {
            bytes += line.bytes;
            target.lines.extend(self.lines.pop_front());
        }
        let rest = self.text.split_off(bytes);
        target.text = std::mem::replace(&mut self.text, rest);
    }

    /// Puts the lines of `earlier`, without the first `skipped`, back before all others.
    pub(super) fn put_back(&mut self, earlier: &mut Self, skipped: usize) {
        let stored: usize = earlier.lines.drain(..skipped).map(|line| line.bytes).sum();
        let mut text = earlier.text.split_off(stored);
        text.append(&mut self.text);
        earlier.lines.append(&mut self.lines);
        self.text = text;
        std::mem::swap(&mut self.lines, &mut earlier.lines);
    }

    /// Empties the batch. Keeps its buffer for the next one, unless it is large.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.text.clear();
        if self.text.capacity() > KEPT_BYTES_MAX {
            self.text = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(texts: &[&str]) -> Batch {
        let date = jiff::civil::date(2026, 7, 15);
        let mut batch = Batch::default();
        for text in texts {
            batch.push(&mut Line { date, text: (*text).to_owned(), memory: None });
        }
        batch
    }

    #[track_caller]
    fn assert_holds(batch: &Batch, texts: &[&str]) {
        assert_eq!(batch.text, texts.concat().as_bytes());
        let bytes: Vec<usize> = batch.lengths(0..batch.len()).collect();
        assert_eq!(bytes, texts.iter().map(|text| text.len()).collect::<Vec<_>>());
    }

    #[test]
    fn what_was_not_stored_comes_back_in_its_place() {
        let mut waiting = batch(&["a\n", "bb\n", "ccc\n", "d\n"]);
        let mut taken = Batch::default();
        waiting.move_front(&mut taken, 6);
        assert_holds(&taken, &["a\n", "bb\n"]);
        assert_holds(&waiting, &["ccc\n", "d\n"]);
        waiting.put_back(&mut taken, 1);
        assert_holds(&waiting, &["bb\n", "ccc\n", "d\n"]);
        assert!(waiting.pop());
        assert_holds(&waiting, &["bb\n", "ccc\n"]);
    }

    #[test]
    fn a_line_that_is_longer_than_a_batch_goes_alone() {
        let mut waiting = batch(&["long\n", "b\n"]);
        let mut taken = Batch::default();
        waiting.move_front(&mut taken, 2);
        assert_holds(&taken, &["long\n"]);
        taken.clear();
        waiting.move_front(&mut taken, 2);
        assert_holds(&taken, &["b\n"]);
        assert!(waiting.is_empty());
    }
}
