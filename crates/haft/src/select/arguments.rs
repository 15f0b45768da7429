//! Whether a tool takes the values that a request has.

use super::entry::{Entry, Parameter};
use super::index::Index;
use super::missing::{self, Wants};
use super::values::{self, Chunk, Value};

/// Kinds of values that a tool takes, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Accepted(u8);

const URL: u8 = 1;
const PATH: u8 = 1 << 1;
const PERSON: u8 = 1 << 2;
const ID: u8 = 1 << 3;
const DATE: u8 = 1 << 4;
const REVISION: u8 = 1 << 5;

/// Names of parameters that take a commit.
const REVISIONS: [&str; 6] = ["revision", "commit", "target", "ref", "sha", "hash"];

impl Accepted {
    /// Told from the names and descriptions of parameters.
    pub(super) fn new(parameters: &[Parameter]) -> Self {
        Self(parameters.iter().map(bits).fold(0, |all, bits| all | bits))
    }
}

fn bits(parameter: &Parameter) -> u8 {
    let Parameter { name, description, .. } = parameter;
    let kind = match missing::wants(parameter) {
        Wants::Url => URL,
        Wants::Path => PATH,
        Wants::Person => PERSON,
        Wants::Id | Wants::Thing => ID,
        Wants::Date => DATE,
        _ => 0,
    };
    let said = description.to_lowercase();
    let is_person = name == "to" || said.contains("email");
    let is_id = said.starts_with("id") || said.contains(" id");
    let is_revision = REVISIONS.contains(&name.as_str());
    kind | if is_person { PERSON } else { 0 }
        | if is_id { ID } else { 0 }
        | if is_revision { REVISION } else { 0 }
}

/// The values of a request.
pub(super) struct Given {
    /// One for each kind.
    kinds: Vec<u8>,
    /// For each id the nouns of which descriptions show such ids.
    ids: Vec<Vec<String>>,
}

impl Given {
    pub(super) fn new(index: &Index, chunks: &[Chunk<'_>]) -> Self {
        let mut given = Self { kinds: Vec::new(), ids: Vec::new() };
        for chunk in chunks.iter().filter(|it| !it.is_quoted) {
            let Some(value) = chunk.value else { continue };
            let kind = match value {
                Value::Url => URL,
                Value::File | Value::Folder => PATH,
                Value::Email => PERSON,
                Value::Id => ID,
                Value::Hash => REVISION | ID,
                Value::Time => DATE,
                Value::Number => continue,
            };
            if !given.kinds.contains(&kind) {
                given.kinds.push(kind);
            }
            if let (Value::Id, Some(prefix)) = (value, values::id_prefix(chunk.text)) {
                given.ids.push(index.nouns_of_ids(&prefix));
            }
        }
        given
    }

    /// How many kinds of the values a tool takes, less those that it does not take.
    pub(super) fn taken_by(&self, entry: &Entry) -> f32 {
        let one = |kind: &u8| if entry.accepted.0 & kind == 0 { -1.0 } else { 1.0 };
        self.kinds.iter().map(one).sum()
    }

    /// Whether one of the ids is of a kind that a tool takes: `m-47720`, where `message_id` is "such as m-48213".
    pub(super) fn has_id_for(&self, entry: &Entry) -> bool {
        self.ids.iter().any(|nouns| nouns.iter().any(|noun| entry.takes_ids_of(noun)))
    }
}
