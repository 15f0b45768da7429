//! The embedded table: one vector for each piece of a word. Read in place from the program's own bytes, so that a
//! start costs nothing and only the first use builds the way from a piece to its row.

use std::sync::LazyLock;

use super::text;
use super::values;
use super::weights::Weights;

/// The dimension of a vector.
pub(super) const DIMENSIONS: usize = 256;

/// Longer words are not words.
const WORD_CHARS_MAX: usize = 100;

const BYTES: &[u8] = include_bytes!("../assets/toolvec256.bin");
const PIECES: &str = include_str!("../assets/toolvec256.vocab.txt");
const HEADER: usize = 12;
const ROWS: usize = (BYTES.len() - HEADER) / (4 + DIMENSIONS);

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(Vocabulary::new);

/// The sum of the rows of a string's tokens, not normalised. Zero without known words.
pub(super) fn embed(text: &str) -> [f32; DIMENSIONS] {
    let mut sum = [0.0; DIMENSIONS];
    add_text(&mut sum, text, 1.0);
    sum
}

/// Like `embed`, for a request. Quoted strings and values name the subject and not the action, and
/// count less.
pub(super) fn embed_request(text: &str, weights: &Weights) -> [f32; DIMENSIONS] {
    let mut sum = [0.0; DIMENSIONS];
    for chunk in values::chunks(text) {
        add_text(&mut sum, chunk.text, weights.in_direction(&chunk));
    }
    sum
}

fn add_text(sum: &mut [f32; DIMENSIONS], text: &str, weight: f32) {
    let mut folded = String::new();
    let mut ids = Vec::new();
    for token in text::tokens(text) {
        text::fold(token, &mut folded);
        ids.clear();
        // A word that is not made of known pieces is left out.
        if folded.chars().count() > WORD_CHARS_MAX || !VOCABULARY.split(&folded, &mut ids) {
            continue;
        }
        for id in &ids {
            add_row(sum, *id, weight);
        }
    }
}

fn add_row(sum: &mut [f32; DIMENSIONS], id: u32, weight: f32) {
    let id = id as usize;
    let at = HEADER + 4 * id;
    let scale: [u8; 4] =
        BYTES.get(at..at + 4).and_then(|it| it.try_into().ok()).unwrap_or_default();
    let scale = weight * f32::from_le_bytes(scale);
    let row = HEADER + 4 * ROWS + id * DIMENSIONS;
    for (sum, byte) in sum.iter_mut().zip(BYTES.get(row..row + DIMENSIONS).unwrap_or_default()) {
        *sum += scale * f32::from(byte.cast_signed());
    }
}

/// From a token to its row: a hash table with open addressing, half full.
struct Vocabulary {
    slots: Vec<u32>,
    lines: Vec<(u32, u32)>,
}

const SLOTS: usize = 1 << 16;
const EMPTY: u32 = u32::MAX;
const INSIDE: &str = "##";

impl Vocabulary {
    #[allow(clippy::cast_possible_truncation, reason = "the file has 30,000 short lines")]
    fn new() -> Self {
        let mut vocabulary = Self { slots: vec![EMPTY; SLOTS], lines: Vec::with_capacity(ROWS) };
        let mut begin = 0;
        for (id, line) in PIECES.split('\n').enumerate() {
            let (is_inside, word) = match line.strip_prefix(INSIDE) {
                Some(word) if !word.is_empty() => (true, word),
                Some(_) | None => (false, line),
            };
            let mut slot = hash(is_inside, word);
            while vocabulary.slots[slot] != EMPTY {
                slot = (slot + 1) % SLOTS;
            }
            vocabulary.slots[slot] = id as u32;
            vocabulary.lines.push((begin, begin + line.len() as u32));
            begin += line.len() as u32 + 1;
        }
        vocabulary
    }

    /// Adds the pieces of a word. False if some of it is in no piece.
    fn split(&self, word: &str, ids: &mut Vec<u32>) -> bool {
        let mut rest = word;
        while !rest.is_empty() {
            let is_inside = rest.len() < word.len();
            let ends = rest.char_indices().map(|(at, char)| at + char.len_utf8()).rev();
            let longest = { ends }.find_map(|end| Some((self.find(is_inside, &rest[..end])?, end)));
            let Some((id, end)) = longest else { return false };
            ids.push(id);
            rest = &rest[end..];
        }
        true
    }

    fn find(&self, is_inside: bool, word: &str) -> Option<u32> {
        let mut slot = hash(is_inside, word);
        loop {
            let id = self.slots[slot];
            let (begin, end) = *self.lines.get(id as usize)?;
            let line = &PIECES[begin as usize..end as usize];
            let found = if is_inside { line.strip_prefix(INSIDE) } else { Some(line) };
            if found == Some(word) {
                return Some(id);
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

/// FNV-1a.
fn hash(is_inside: bool, word: &str) -> usize {
    let mut hash: u32 = if is_inside { 0x811c_9dc5 } else { 0x0100_0193 };
    for byte in word.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    (hash ^ (hash >> 16)) as usize % SLOTS
}
