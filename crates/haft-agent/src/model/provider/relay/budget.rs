//! The limits of one answer, checked before genai reads any of it.

/// The size of one piece of an answer: an event, a line, or an answer that is not a stream. Genai holds it whole.
const PIECE_BYTES_MAX: usize = 16 << 20;
/// Maximum number of JSON values in an event. Each takes up to a hundred bytes once it is parsed,
/// however short it is.
const PIECE_VALUES_MAX: usize = 1_000_000;

/// The limits of one answer.
#[derive(Debug, Clone, Copy)]
pub(in crate::model::provider) struct AnswerLimits {
    /// All of it, as it arrives.
    pub(in crate::model::provider) bytes_max: u64,
    pub(in crate::model::provider) framing: Framing,
}

/// The delimiter of events in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model::provider) enum Framing {
    /// At an empty line: server-sent events.
    Events,
    /// At the end of each line.
    Lines,
    /// At the end of the answer.
    Whole,
}

/// The limit that an answer exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::model::provider) enum Excess {
    #[error("it has more than {bytes_max} bytes")]
    Answer { bytes_max: u64 },
    #[error("a piece of it has more than {PIECE_BYTES_MAX} bytes")]
    Piece,
    #[error("a piece of it has more than {PIECE_VALUES_MAX} JSON values")]
    Values,
}

/// The remaining limits of an answer.
pub(super) struct Budget {
    limits: AnswerLimits,
    bytes: u64,
    piece_bytes: usize,
    piece_values: usize,
    line_bytes: usize,
    is_in_string: bool,
    is_escaped: bool,
    last: u8,
}

impl Budget {
    pub(super) fn new(limits: AnswerLimits) -> Self {
        Self {
            limits,
            bytes: 0,
            piece_bytes: 0,
            piece_values: 0,
            line_bytes: 0,
            is_in_string: false,
            is_escaped: false,
            last: 0,
        }
    }

    /// Accounts for a chunk of the answer.
    pub(super) fn spend(&mut self, chunk: &[u8]) -> Result<(), Excess> {
        let bytes_max = self.limits.bytes_max;
        self.bytes = self.bytes.saturating_add(chunk.len() as u64);
        if self.bytes > bytes_max {
            return Err(Excess::Answer { bytes_max });
        }
        for &byte in chunk {
            self.step(byte)?;
        }
        Ok(())
    }

    fn step(&mut self, byte: u8) -> Result<(), Excess> {
        let last = std::mem::replace(&mut self.last, byte);
        if self.limits.framing == Framing::Events && (last, byte) == (b'\r', b'\n') {
            // The second half of a line end.
            return Ok(());
        }
        self.piece_bytes += 1;
        match byte {
            b'\n' | b'\r' => self.end_line(byte),
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = self.is_in_string,
            b'"' => self.is_in_string = !self.is_in_string,
            b',' | b':' | b'[' | b'{' if !self.is_in_string => self.piece_values += 1,
            _ => {}
        }
        if !matches!(byte, b'\n' | b'\r') {
            self.line_bytes += 1;
        }
        if self.piece_bytes > PIECE_BYTES_MAX {
            return Err(Excess::Piece);
        }
        if self.piece_values > PIECE_VALUES_MAX {
            return Err(Excess::Values);
        }
        Ok(())
    }

    /// A JSON string cannot cross the end of a line, so a quotation mark in a comment changes
    /// nothing.
    fn end_line(&mut self, byte: u8) {
        self.is_in_string = false;
        self.is_escaped = false;
        let ends_piece = match self.limits.framing {
            Framing::Events => self.line_bytes == 0,
            Framing::Lines => byte == b'\n',
            Framing::Whole => false,
        };
        if ends_piece {
            self.piece_bytes = 0;
            self.piece_values = 0;
        }
        self.line_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(framing: Framing) -> Budget {
        Budget::new(AnswerLimits { bytes_max: 64 << 20, framing })
    }

    #[test]
    fn a_piece_is_limited_and_the_next_one_begins_anew() {
        let half = vec![b'x'; PIECE_BYTES_MAX / 2];
        for (framing, end) in [
            (Framing::Events, &b"\n\n"[..]),
            (Framing::Events, b"\r\n\r\n"),
            (Framing::Events, b"\r\r"),
            (Framing::Lines, b"\n"),
        ] {
            let mut budget = budget(framing);
            for _ in 0..4 {
                budget.spend(&half).unwrap();
                budget.spend(end).unwrap();
            }
            budget.spend(&half).unwrap();
            budget.spend(&half).unwrap();
            assert_eq!(budget.spend(b"x"), Err(Excess::Piece), "{framing:?}");
        }
        for (framing, end) in [(Framing::Events, &b"\r\n"[..]), (Framing::Whole, b"\n\n")] {
            let mut budget = budget(framing);
            budget.spend(&half).unwrap();
            budget.spend(end).unwrap();
            assert_eq!(budget.spend(&half), Err(Excess::Piece), "{framing:?}");
        }
    }

    #[test]
    fn the_answer_is_limited_as_a_whole() {
        let mut budget = Budget::new(AnswerLimits { bytes_max: 10, framing: Framing::Events });
        budget.spend(b"1234\n\n6789").unwrap();
        assert_eq!(budget.spend(b"x"), Err(Excess::Answer { bytes_max: 10 }));
    }

    #[test]
    fn values_are_counted_outside_strings_only() {
        let zeros = b"0,".repeat(PIECE_VALUES_MAX / 2 + 1);
        let mut values = budget(Framing::Whole);
        values.spend(b"[").unwrap();
        values.spend(&zeros).unwrap();
        assert_eq!(values.spend(&zeros), Err(Excess::Values));
        let mut text = budget(Framing::Whole);
        text.spend(br#"{"text":"\\\""#).unwrap();
        text.spend(&zeros).unwrap();
        text.spend(&zeros).unwrap();
        assert_eq!(text.piece_values, 2);
        // A quotation mark in a comment hides nothing.
        let mut events = budget(Framing::Events);
        events.spend(b": \"\ndata: [").unwrap();
        events.spend(&zeros).unwrap();
        assert_eq!(events.spend(&zeros), Err(Excess::Values));
    }
}
