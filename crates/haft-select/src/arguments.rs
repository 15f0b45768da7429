//! The values of a request as arguments of a tool.

use super::accepted::Accepted;
use super::entry::Entry;
use super::index::Index;
use super::values::{self, Chunk, Value};

/// The values of a request.
pub(super) struct Given {
    /// One for each kind.
    kinds: Vec<Accepted>,
    /// For each id the nouns of which descriptions show such ids.
    ids: Vec<Vec<String>>,
}

impl Given {
    pub(super) fn new(index: &Index, chunks: &[Chunk<'_>]) -> Self {
        let mut given = Self { kinds: Vec::new(), ids: Vec::new() };
        for chunk in chunks.iter().filter(|it| !it.is_quoted) {
            let Some(value) = chunk.value else { continue };
            let Some(kind) = Accepted::of_value(value) else { continue };
            if !given.kinds.contains(&kind) {
                given.kinds.push(kind);
            }
            if let (Value::Id, Some(prefix)) = (value, values::id_prefix(chunk.text)) {
                given.ids.push(index.nouns_of_ids(&prefix));
            }
        }
        given
    }

    /// The number of value kinds that a tool accepts, minus those that it does not.
    pub(super) fn taken_by(&self, entry: &Entry) -> f32 {
        let one = |kind: &Accepted| if entry.accepted.meets(*kind) { 1.0 } else { -1.0 };
        self.kinds.iter().map(one).sum()
    }

    /// Returns true if one of the ids is of a kind that a tool accepts: `m-47720`, where
    /// `message_id` is "such as m-48213".
    pub(super) fn has_id_for(&self, entry: &Entry) -> bool {
        self.ids.iter().any(|nouns| nouns.iter().any(|noun| entry.takes_ids_of(noun)))
    }
}
