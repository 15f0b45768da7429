//! One tool as the index keeps it. Made once for each text, and shared by every later state of the toolbox.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::accepted::Accepted;
use super::operation::{self, Operations};
use super::parameter::{self, Parameter};
use super::text::{Words, split_name};
use super::vector::Vector;
use super::weights::Weights;
use haft_text::beginning;

/// The description of a tool for selection.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolText {
    /// The name under which it is called.
    pub name: String,
    /// The server it comes from.
    pub server: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// Its purpose and when to prefer it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// Requests it is meant for.
    pub examples: Vec<String>,
}

/// The end of longer descriptions carries little information.
const DESCRIPTION_CHARS_MAX: usize = 4000;
/// Maximum number of examples considered.
const EXAMPLES_MAX: usize = 64;

pub(super) struct Entry {
    pub(super) name: String,
    pub(super) server: Option<String>,
    pub(super) fingerprint: [u8; 32],
    /// The stems, sorted, with a space between them.
    stems: Box<str>,
    weights: Box<[f32]>,
    /// True for words that describe the tool itself. Examples and parameter descriptions contain
    /// words of requests.
    own: Box<[bool]>,
    /// The sum of the weights.
    pub(super) length: f32,
    direction: Vector,
    /// One for each example.
    examples: Box<[Vector]>,
    pub(super) required: Box<[Parameter]>,
    pub(super) operations: Operations,
    pub(super) accepted: Accepted,
    /// Prefixes of ids in its descriptions, and the nouns they belong to.
    pub(super) sample_ids: Box<[(String, String)]>,
    /// The stems around the ids that it takes.
    id_words: Box<[String]>,
}

impl ToolText {
    /// The name as words, a full stop, the description: what the table was trained on.
    pub(super) fn said(&self) -> String {
        let name = split_name(&self.name);
        let title = self.title.as_deref().filter(|title| !title.is_empty());
        let title = title.map(|title| format!(" {title}.")).unwrap_or_default();
        let description = beginning(&self.description, DESCRIPTION_CHARS_MAX);
        format!("{name}.{title} {description}")
    }

    /// The examples considered.
    pub(super) fn looked_at(&self) -> &[String] {
        &self.examples[..self.examples.len().min(EXAMPLES_MAX)]
    }

    /// Identifies equal descriptions without keeping them.
    pub(super) fn fingerprint(&self) -> [u8; 32] {
        let Self { name, server, title, description, input_schema, examples } = self;
        let parts = (name, server, title, description, input_schema, examples);
        let bytes = serde_json::to_vec(&parts).unwrap_or_default();
        Sha256::digest(bytes).into()
    }
}

impl Entry {
    pub(super) fn new(
        tool: &ToolText,
        fingerprint: [u8; 32],
        words: &Words,
        weights: &Weights,
    ) -> Self {
        let description = beginning(&tool.description, DESCRIPTION_CHARS_MAX);
        let mut terms: BTreeMap<String, (f32, bool)> = BTreeMap::new();
        let mut add = |text: &str, weight: f32, is_own: bool| {
            for word in words.of(text) {
                let term = terms.entry(word.stem).or_default();
                term.0 += weight;
                term.1 |= is_own;
            }
        };
        add(&tool.name, weights.name, true);
        add(tool.server.as_deref().unwrap_or_default(), weights.server, true);
        add(tool.title.as_deref().unwrap_or_default(), 1.0, true);
        add(description, 1.0, true);
        for (name, schema) in parameter::properties(&tool.input_schema) {
            add(name, weights.parameter, true);
            add(parameter::text_of(schema, "description"), weights.parameter_text, false);
        }
        let examples = tool.looked_at();
        for example in examples {
            add(example, weights.example, false);
        }
        let stems: Vec<&str> = terms.keys().map(String::as_str).collect();
        Self {
            name: tool.name.clone(),
            server: tool.server.clone(),
            fingerprint,
            stems: stems.join(" ").into(),
            length: terms.values().map(|(weight, _)| weight).sum(),
            own: terms.values().map(|(_, own)| *own).collect(),
            weights: terms.into_values().map(|(weight, _)| weight).collect(),
            direction: direction(tool, description, weights),
            examples: examples.iter().map(|text| Vector::of_request(text, weights)).collect(),
            required: parameter::required(&tool.input_schema),
            operations: operation::of_tool(&tool.name, description),
            accepted: Accepted::new(&parameter::all(&tool.input_schema)),
            sample_ids: parameter::sample_ids(&tool.input_schema, words),
            id_words: parameter::id_words(&tool.name, &tool.input_schema, words),
        }
    }

    /// Returns true if the tool accepts ids of a noun.
    pub(super) fn takes_ids_of(&self, noun: &str) -> bool {
        self.id_words.iter().any(|word| word == noun)
    }

    /// The similarity of a direction to the tool: to its description, and to its two nearest
    /// examples.
    pub(super) fn cosine(&self, direction: &Vector, weights: &Weights) -> f32 {
        let examples = self.examples.iter().map(|example| example.cosine(direction));
        both(self.direction.cosine(direction), examples, weights)
    }

    pub(super) fn has_examples(&self) -> bool {
        !self.examples.is_empty()
    }

    /// The highest similarity of a direction to the tool's description or examples.
    pub(super) fn nearest(&self, direction: &Vector) -> f32 {
        let examples = self.examples.iter().map(|example| example.cosine(direction));
        examples.fold(self.direction.cosine(direction), f32::max)
    }

    /// Returns true if a stem is one of the tool's own words.
    pub(super) fn says(&self, stem: &str) -> bool {
        self.stems.split(' ').zip(&self.own).any(|(own, is_own)| *is_own && own == stem)
    }

    /// The stems of the tool's description, with their weights.
    pub(super) fn terms(&self) -> impl Iterator<Item = (&str, f32)> {
        self.stems.split(' ').zip(self.weights.iter().copied())
    }
}

/// Combines the similarity to the description with that to the examples.
pub(super) fn both(said: f32, examples: impl Iterator<Item = f32>, weights: &Weights) -> f32 {
    let (mut first, mut second) = (None, None);
    for cosine in examples {
        let Some(best) = first else {
            first = Some(cosine);
            continue;
        };
        second = Some(second.unwrap_or(f32::MIN).max(cosine.min(best)));
        first = Some(cosine.max(best));
    }
    let Some(first) = first else { return said };
    let shown = second.map_or(first, |second| first + weights.second_example * (second - first));
    let even = f32::midpoint(said, shown);
    said.max(shown) + weights.said_and_shown * (even - said.max(shown))
}

fn direction(tool: &ToolText, description: &str, weights: &Weights) -> Vector {
    let name = split_name(&tool.name);
    let first = description.split_inclusive(['.', '!', '?', '\n']).next().unwrap_or(&name);
    Vector::blend(&[
        (&Vector::of(&tool.said()), 1.0),
        (&Vector::of(first), weights.first_sentence),
        (&Vector::of(&name), weights.name_direction),
    ])
}
