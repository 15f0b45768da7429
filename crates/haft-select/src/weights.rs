//! The weights of the ranking. `docs/research/tool-choice.md` describes the experiments.

use super::values::{Chunk, Value};

/// The numbers of the ranking.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights {
    /// Words of a tool's name, for comparing words.
    pub(super) name: f32,
    pub(super) server: f32,
    pub(super) parameter: f32,
    pub(super) parameter_text: f32,
    pub(super) example: f32,
    /// Saturation of BM25.
    pub(super) k1: f32,
    /// The penalty of long descriptions.
    pub(super) b: f32,
    /// The weight of the first sentence of a description in the direction of the whole.
    pub(super) first_sentence: f32,
    /// The weight of the name in it.
    pub(super) name_direction: f32,
    /// The weight of quoted strings in the direction of a request.
    pub(super) quoted: f32,
    /// The weight of numbers and clock times in it.
    pub(super) number: f32,
    /// The weight of paths, addresses and ids in it.
    pub(super) value: f32,
    /// The weight of quoted words as shared words.
    pub(super) quoted_words: f32,
    /// The weight of the words of paths, addresses and ids as shared words.
    pub(super) value_words: f32,
    /// The weight of a verb that another tool of the server has and this one has not.
    pub(super) operation: f32,
    /// The weight of each kind of value that a tool accepts, or does not accept.
    pub(super) accepted: f32,
    /// The weight of an id that looks like one the tool accepts.
    pub(super) id: f32,
    /// The weight of a service's cosines, if present, beside the table's.
    pub(super) known: f32,
    pub(super) table: f32,
    /// Shared words, against what a perfect match would share.
    pub(super) lexical: f32,
    /// Shared words, against the best tool; grows with the length of the request.
    pub(super) relative: f32,
    /// The number of words at which that begins, and the range over which it grows.
    pub(super) ramp_begin: f32,
    pub(super) ramp_words: f32,
    /// The best part of a request that wants several things.
    pub(super) part: f32,
    /// The bonus of the best tool of a server for its other tools.
    pub(super) sibling: f32,
    /// Words that a request means without saying them.
    pub(super) expanded: f32,
    /// The weight for the direction of the request.
    pub(super) expanded_direction: f32,
    /// The degree to which parts are scaled alike: 0 not at all, 1 wholly.
    pub(super) part_scale: f32,
    /// The weight of the second nearest example beside the nearest.
    pub(super) second_example: f32,
    /// The balance of description and examples: the better one (0) or both alike (1).
    pub(super) said_and_shown: f32,
}

pub(super) const WEIGHTS: Weights = Weights {
    name: 2.0,
    server: 1.5,
    parameter: 0.5,
    parameter_text: 0.3,
    example: 0.3,
    k1: 1.2,
    b: 0.7,
    first_sentence: 0.1,
    name_direction: 0.1,
    quoted: 0.5,
    number: 0.7,
    value: 0.2,
    quoted_words: 0.5,
    value_words: 0.1,
    operation: 0.16,
    accepted: 0.12,
    id: 0.25,
    known: 0.8,
    table: 0.65,
    lexical: 1.0,
    relative: 1.0,
    ramp_begin: 6.0,
    ramp_words: 24.0,
    part: 1.5,
    sibling: 0.6,
    expanded: 0.5,
    expanded_direction: 0.25,
    part_scale: 0.7,
    second_example: 0.3,
    said_and_shown: 0.6,
};

impl Weights {
    /// The weight of a piece of a request in its direction.
    pub(super) fn in_direction(&self, chunk: &Chunk<'_>) -> f32 {
        let quoted = if chunk.is_quoted { self.quoted } else { 1.0 };
        quoted
            * match chunk.value {
                None => 1.0,
                Some(Value::Number | Value::Time) => self.number,
                Some(_) => self.value,
            }
    }

    /// The weight of the words of a piece of a request as shared words.
    pub(super) fn in_words(&self, chunk: &Chunk<'_>) -> f32 {
        let quoted = if chunk.is_quoted { self.quoted_words } else { 1.0 };
        quoted
            * match chunk.value {
                None | Some(Value::Number | Value::Time) => 1.0,
                Some(_) => self.value_words,
            }
    }
}
