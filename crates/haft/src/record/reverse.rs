//! Reads a log file line by line from its end, so that the newest entries cost the same in a file of any length.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use memchr::memrchr;

use super::lines::LINE_BYTES_MAX;

/// Size of one read. A line longer than that is read in blocks of growing size.
const BLOCK_BYTES: usize = 64 << 10;

/// The lines of a file, last one first. Lines that are added after the opening are not among them.
#[derive(Debug)]
pub(super) struct ReverseLines {
    file: File,
    /// The offset of the first byte of `block`. Everything before it is still to be read.
    start: u64,
    /// The bytes from `start` to the end of the next line.
    block: Vec<u8>,
    /// Length of the part of `block` that may contain a newline.
    unsearched: usize,
    is_skipping: bool,
    is_done: bool,
}

/// One line, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReverseLine<'a> {
    /// A line with the offset of its first byte. The last line of a file may lack its newline.
    Line(u64, &'a [u8]),
    /// The line was longer than [`LINE_BYTES_MAX`] and was skipped.
    TooLong,
}

impl ReverseLines {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let start = file.metadata()?.len();
        let (block, unsearched) = (Vec::new(), 0);
        let mut lines =
            Self { file, start, block, unsearched, is_skipping: false, is_done: start == 0 };
        // The newline at the end of the file ends the last line; no line begins after it.
        lines.read_block()?;
        if lines.block.pop_if(|last| *last == b'\n').is_some() {
            lines.unsearched -= 1;
        }
        Ok(lines)
    }

    /// The next line towards the start of the file.
    pub(super) fn next_line(&mut self) -> io::Result<Option<ReverseLine<'_>>> {
        // What the last call returned, with the newline before it.
        self.block.truncate(self.unsearched);
        while !self.is_done {
            if let Some(newline) = memrchr(b'\n', &self.block[..self.unsearched]) {
                self.unsearched = newline;
                return Ok(Some(self.line_from(newline + 1)));
            }
            if self.start == 0 {
                self.is_done = true;
                self.unsearched = 0;
                return Ok(Some(self.line_from(0)));
            }
            if self.block.len() > LINE_BYTES_MAX {
                self.is_skipping = true;
            }
            if self.is_skipping {
                self.block.clear();
            }
            self.read_block()?;
        }
        Ok(None)
    }

    fn line_from(&mut self, at: usize) -> ReverseLine<'_> {
        let is_too_long = self.block.len() - at > LINE_BYTES_MAX;
        if std::mem::take(&mut self.is_skipping) || is_too_long {
            ReverseLine::TooLong
        } else {
            ReverseLine::Line(self.start + at as u64, &self.block[at..])
        }
    }

    /// Puts the block before `start` in front of what is there. Blocks grow with the line, so that a long line is
    /// copied a few times only.
    fn read_block(&mut self) -> io::Result<()> {
        let wanted = BLOCK_BYTES.max(self.block.len());
        let length = usize::try_from(self.start).map_or(wanted, |start| start.min(wanted));
        let mut block = vec![0; length];
        self.start -= length as u64;
        match self.file.read_exact_at(&mut block, self.start) {
            Ok(()) => {}
            // The file was cut meanwhile: its old lines are gone.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.is_done = true;
                block.clear();
            }
            Err(error) => return Err(error),
        }
        self.unsearched = block.len();
        block.append(&mut self.block);
        self.block = block;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn lines_of(content: &[u8]) -> Vec<(u64, usize)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        let mut lines = ReverseLines::new(file).unwrap();
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push(match line {
                ReverseLine::Line(offset, line) => {
                    let at = usize::try_from(offset).unwrap();
                    assert_eq!(line, &content[at..at + line.len()]);
                    (offset, line.len())
                }
                ReverseLine::TooLong => (0, usize::MAX),
            });
        }
        found
    }

    #[test]
    fn lines_come_from_the_end() {
        assert_eq!(lines_of(b""), []);
        assert_eq!(lines_of(b"one"), [(0, 3)]);
        assert_eq!(lines_of(b"one\n"), [(0, 3)]);
        assert_eq!(lines_of(b"\n"), [(0, 0)]);
        assert_eq!(lines_of(b"one\n\ntwo\nthr"), [(9, 3), (5, 3), (4, 0), (0, 3)]);
    }

    #[test]
    fn lines_may_span_blocks_and_end_at_their_edges() {
        for length in
            [BLOCK_BYTES - 2, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 5 * BLOCK_BYTES]
        {
            let content = [b"first\n".as_slice(), &vec![b'x'; length], b"\nlast\n"].concat();
            let after = 6 + length as u64 + 1;
            assert_eq!(lines_of(&content), [(after, 4), (6, length), (0, 5)], "{length}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let content =
            [b"first\n".as_slice(), &vec![b'x'; LINE_BYTES_MAX + 1], b"\nlast\n"].concat();
        let after = 6 + LINE_BYTES_MAX as u64 + 2;
        assert_eq!(lines_of(&content), [(after, 4), (0, usize::MAX), (0, 5)]);
    }

    #[test]
    fn a_file_that_is_cut_meanwhile_ends() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'\n'; 3 * BLOCK_BYTES]).unwrap();
        let mut lines = ReverseLines::new(file.try_clone().unwrap()).unwrap();
        file.set_len(0).unwrap();
        let mut count = 0;
        while lines.next_line().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, BLOCK_BYTES - 1);
    }
}
