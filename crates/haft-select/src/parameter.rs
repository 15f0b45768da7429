//! Parameters of a tool: what each of them wants, and which values the tool takes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::text::{Words, split_name};
use super::values;

/// Maximum number of parameters considered.
const PARAMETERS_MAX: usize = 100;

/// A parameter of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) description: String,
    /// `string`, `number`, `integer`, `array` and so on.
    pub(super) kind: String,
    /// True if the schema lists the permitted values.
    pub(super) has_choices: bool,
}

/// The kind of value of a parameter, by its name.
const KINDS: [(Wants, &[&str]); 12] = [
    (
        Wants::Wording,
        &["question", "code", "sql", "script", "program", "query", "topic", "prompt", "keywords"],
    ),
    (Wants::Url, &["url", "uri", "link", "website"]),
    (Wants::Path, &["path", "file", "filename", "filepath", "folder", "directory"]),
    (
        Wants::Date,
        &[
            "date",
            "dates",
            "time",
            "start",
            "begin",
            "end",
            "when",
            "deadline",
            "check",
            "day",
            "datetime",
            "period",
            "frame",
            "timeframe",
            "month",
            "year",
        ],
    ),
    (Wants::Language, &["language", "lang", "locale"]),
    (
        Wants::Person,
        &[
            "recipient",
            "recipients",
            "receiver",
            "attendee",
            "attendees",
            "email",
            "channel",
            "phone",
        ],
    ),
    (
        Wants::Place,
        &["location", "city", "place", "country", "origin", "destination", "address", "region"],
    ),
    (Wants::Text, &["text", "body", "content", "contents", "message", "note", "fields"]),
    (
        Wants::Thing,
        &["key", "symbol", "ticker", "ticket", "container", "service", "username", "selector"],
    ),
    (Wants::Chosen, &["limit", "page", "offset"]),
    (Wants::Id, &["id", "ids", "uuid", "identifier", "isbn"]),
    (Wants::Number, &["amount", "quantity", "price", "latitude", "longitude", "numbers"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    Url,
    Path,
    Date,
    Language,
    Person,
    Place,
    Text,
    Thing,
    /// Several values, in a list or under names.
    Details,
    /// An amount to show: the caller chooses it.
    Chosen,
    /// A value that cannot be guessed: a number, a name, a code.
    Id,
    Number,
    /// Made from the request itself.
    Wording,
    Anything,
}

fn says_place(description: &str) -> bool {
    let lower = description.to_lowercase();
    ["location", "address", "city"].iter().any(|word| lower.contains(word))
        && !lower.contains("date")
}

impl Parameter {
    /// Derived from its name, and from its type if the name is not conclusive.
    pub(super) fn wants(&self) -> Wants {
        let name = split_name(&self.name).to_lowercase();
        let mut words = name.split_whitespace().rev();
        // The last word is what it is: `start_date` is a date, `file_name` is a name of a file.
        let known = |word: &str| {
            KINDS.iter().find(|(_, names)| names.contains(&word)).map(|(kind, _)| *kind)
        };
        let by_name = words.find_map(known);
        let is_number = matches!(self.kind.as_str(), "number" | "integer" | "float");
        match by_name {
            // `start` may be the start of a day or of a way.
            Some(Wants::Date) if says_place(&self.description) => Wants::Place,
            Some(kind) => kind,
            None if matches!(self.kind.as_str(), "object" | "dict" | "array") => Wants::Details,
            None if is_number => Wants::Number,
            None => Wants::Anything,
        }
    }
}

/// The parameters that a call must have and that have no default.
pub(super) fn required(schema: &Value) -> Box<[Parameter]> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str).take(PARAMETERS_MAX);
    let of = |name: &str| {
        let nothing = Value::Null;
        let schema = schema.get("properties").and_then(|all| all.get(name)).unwrap_or(&nothing);
        schema.get("default").is_none().then(|| parameter(name, schema))
    };
    names.filter_map(of).collect()
}

fn parameter(name: &str, schema: &Value) -> Parameter {
    Parameter {
        name: name.to_owned(),
        description: text_of(schema, "description").to_owned(),
        kind: text_of(schema, "type").to_owned(),
        has_choices: schema.get("enum").is_some(),
    }
}

/// Names and schemas of the parameters considered.
pub(super) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().take(PARAMETERS_MAX)
}

/// All parameters considered.
pub(super) fn all(schema: &Value) -> Vec<Parameter> {
    properties(schema).map(|(name, schema)| parameter(name, schema)).collect()
}

/// Prefixes of ids in descriptions, and the stem of their noun: `m-` and `messag`.
pub(super) fn sample_ids(schema: &Value, words: &Words) -> Box<[(String, String)]> {
    let mut samples = Vec::new();
    for (name, schema) in properties(schema) {
        let noun = words.of(name).into_iter().find(|word| !is_id(&word.text));
        let Some(noun) = noun else { continue };
        let said = text_of(schema, "description").split_whitespace();
        let prefixes = said.filter_map(values::id_prefix);
        samples.extend(prefixes.map(|prefix| (prefix, noun.stem.clone())));
    }
    samples.into()
}

/// The stems of the tool's name and of every parameter that is an id.
pub(super) fn id_words(name: &str, schema: &Value, words: &Words) -> Box<[String]> {
    let mut found = BTreeSet::new();
    for (parameter, schema) in properties(schema) {
        let mut said = words.of(parameter);
        said.extend(words.of(text_of(schema, "description")));
        if said.iter().any(|word| is_id(&word.text)) {
            found.extend(said.into_iter().chain(words.of(name)).map(|word| word.stem));
        }
    }
    found.into_iter().collect()
}

fn is_id(word: &str) -> bool {
    matches!(word, "id" | "ids" | "uuid" | "identifier" | "number" | "key")
}

/// A string of a schema, or an empty one.
pub(super) fn text_of<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}
