//! Reads a log file line by line with flat memory, whatever the file holds.

use std::io::{self, BufRead, Read};

/// A longer line is skipped and counted as malformed.
pub(super) const LINE_BYTES_MAX: usize = 64 << 20;

/// One line, or what stands in its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextLine {
    /// A complete line is in the buffer, without its newline.
    Complete,
    /// The line was longer than [`LINE_BYTES_MAX`] and was skipped.
    TooLong,
    /// The file ends in the middle of a line, or here. The line may yet be completed.
    Unfinished,
}

/// Reads the next line into `buffer` and returns its length in the file. An unfinished line counts
/// as zero, so that a follower reads it again.
pub(super) fn next_line(
    reader: &mut impl BufRead,
    buffer: &mut Vec<u8>,
) -> io::Result<(NextLine, u64)> {
    buffer.clear();
    let limit = LINE_BYTES_MAX as u64 + 1;
    let count = reader.by_ref().take(limit).read_until(b'\n', buffer)? as u64;
    if buffer.pop_if(|last| *last == b'\n').is_some() {
        return Ok((NextLine::Complete, count));
    }
    if count < limit {
        return Ok((NextLine::Unfinished, 0));
    }
    buffer.clear();
    let (rest, finished) = skip_line(reader)?;
    Ok(if finished { (NextLine::TooLong, count + rest) } else { (NextLine::Unfinished, 0) })
}

/// Reads past the next newline.
fn skip_line(reader: &mut impl BufRead) -> io::Result<(u64, bool)> {
    let mut skipped = 0;
    loop {
        let chunk = match reader.fill_buf() {
            Ok([]) => return Ok((skipped, false)),
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let newline = chunk.iter().position(|byte| *byte == b'\n');
        let count = newline.map_or(chunk.len(), |at| at + 1);
        reader.consume(count);
        skipped += count as u64;
        if newline.is_some() {
            return Ok((skipped, true));
        }
    }
}
