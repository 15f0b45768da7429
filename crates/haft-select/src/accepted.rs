//! The kinds of values that the parameters of a tool take.

use super::parameter::{Parameter, Wants};
use super::values::Value;

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
    /// Derived from the names and descriptions of parameters.
    pub(super) fn new(parameters: &[Parameter]) -> Self {
        Self(parameters.iter().map(bits).fold(0, |all, bits| all | bits))
    }

    /// The kinds of parameters that take a value. None for numbers, which too many take.
    pub(super) fn of_value(value: Value) -> Option<Self> {
        Some(Self(match value {
            Value::Url => URL,
            Value::File | Value::Folder => PATH,
            Value::Email => PERSON,
            Value::Id => ID,
            Value::Hash => REVISION | ID,
            Value::Time => DATE,
            Value::Number => return None,
        }))
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

fn bits(parameter: &Parameter) -> u8 {
    let Parameter { name, description, .. } = parameter;
    let kind = match parameter.wants() {
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
