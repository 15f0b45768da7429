//! One change of a definition, for programs and in words.

use haft_text::printable;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::word_diff::{WordEdit, WordOp, word_diff};

/// One change of a definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The parameter or field.
    pub at: String,
    /// The approved value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The current value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// The changed words of a string.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<WordEdit>,
}

/// The kinds of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A parameter that may be left out was added.
    ParameterAdded,
    /// A parameter that must be passed was added.
    RequiredParameterAdded,
    /// A parameter was removed.
    ParameterRemoved,
    /// A parameter accepts more values than before.
    TypeWidened,
    /// A parameter accepts fewer values than before.
    TypeNarrowed,
    /// A parameter accepts other values than before.
    TypeChanged,
    /// A parameter may be left out now.
    MadeOptional,
    /// A parameter must be passed now.
    MadeRequired,
    /// Another part of a schema changed.
    SchemaChanged,
    /// A description, a title or instructions changed.
    TextChanged,
    /// A hint about the behaviour changed.
    AnnotationChanged,
    /// Another field changed.
    FieldChanged,
    /// A fact about the server changed.
    FactChanged,
    /// A string has hidden or bidirectional characters that the approved one lacks.
    HiddenCharacters,
    /// A string addresses the model, and the approved one does not.
    InstructionLikeText,
}

impl Change {
    pub(super) fn plain(kind: ChangeKind, at: &str) -> Self {
        Self { kind, at: at.to_owned(), before: None, after: None, words: Vec::new() }
    }

    pub(super) fn between(
        kind: ChangeKind,
        at: &str,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> Self {
        let (before, after) = (before.cloned(), after.cloned());
        Self { kind, at: at.to_owned(), before, after, words: Vec::new() }
    }

    pub(super) fn text(at: &str, before: Option<&Value>, after: Option<&Value>) -> Self {
        let text = |value: Option<&Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let words = word_diff(&text(before), &text(after));
        Self { words, ..Self::between(ChangeKind::TextChanged, at, before, after) }
    }

    /// The change in one line, safe to print.
    pub fn sentence(&self) -> String {
        let at = printable(&self.at);
        let value = |value: &Option<Value>| match value {
            Some(value) => printable(&value.to_string()).into_owned(),
            None => "none".to_owned(),
        };
        let from_to = || format!("{} -> {}", value(&self.before), value(&self.after));
        match self.kind {
            ChangeKind::ParameterAdded => {
                format!("parameter `{at}` added: {}", value(&self.after))
            }
            ChangeKind::RequiredParameterAdded => {
                format!("required parameter `{at}` added: {}", value(&self.after))
            }
            ChangeKind::ParameterRemoved => format!("parameter `{at}` removed"),
            ChangeKind::TypeWidened => format!("`{at}` accepts more: {}", from_to()),
            ChangeKind::TypeNarrowed => format!("`{at}` accepts less: {}", from_to()),
            ChangeKind::TypeChanged => format!("`{at}` accepts other values: {}", from_to()),
            ChangeKind::MadeOptional => format!("`{at}` became optional"),
            ChangeKind::MadeRequired => format!("`{at}` became required"),
            ChangeKind::SchemaChanged => format!("schema of `{at}` changed: {}", from_to()),
            ChangeKind::TextChanged if self.before.is_none() => {
                format!("{at}: {}", value(&self.after))
            }
            ChangeKind::TextChanged => format!("text of `{at}` changed: {}", self.word_line()),
            ChangeKind::AnnotationChanged => format!("annotation `{at}` changed: {}", from_to()),
            ChangeKind::FieldChanged => format!("`{at}` changed: {}", from_to()),
            ChangeKind::FactChanged => format!("{at} changed: {}", from_to()),
            ChangeKind::HiddenCharacters => {
                format!("hidden characters in `{at}`: {}", value(&self.after))
            }
            ChangeKind::InstructionLikeText => {
                format!("text that addresses the model in `{at}`: {}", value(&self.after))
            }
        }
    }

    /// The changed words with removed ones as `[-old-]` and added ones as `{+new+}`.
    fn word_line(&self) -> String {
        let show = |edit: &WordEdit| {
            let text = printable(&edit.text).into_owned();
            let (words, gap) = match text.strip_suffix(' ') {
                Some(words) => (words, " "),
                None => (text.as_str(), ""),
            };
            match edit.op {
                WordOp::Same => text,
                WordOp::Removed => format!("[-{words}-]{gap}"),
                WordOp::Added => format!("{{+{words}+}}{gap}"),
            }
        };
        self.words.iter().map(show).collect()
    }
}
