//! Which arguments a tool needs that a request does not have.

use serde::Serialize;

use super::entry::{Entry, Parameter};
use super::facts::Facts;
use super::text::{Words, split_name};

/// An argument that nobody has said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The parameter's name.
    pub name: String,
    /// What its tool says of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// What is missing for a call of a tool. Nothing, where the request has something for each required argument.
pub(super) fn missing(entry: &Entry, request: &str, words: &Words) -> Vec<Missing> {
    if entry.required.is_empty() {
        return Vec::new();
    }
    let own = |word: &str| {
        let stems = words.of(word);
        !stems.is_empty() && stems.iter().all(|word| entry.says(&word.stem))
    };
    let facts = Facts::new(request, own);
    let lacks = |parameter: &&Parameter| !has(parameter, &facts, request);
    let missing = entry.required.iter().filter(lacks);
    missing
        .map(|it| Missing { name: it.name.clone(), description: it.description.clone() })
        .collect()
}

/// What kind of value a parameter wants, told from its name.
const KINDS: [(Wants, &[&str]); 10] = [
    (Wants::Wording, &["question", "code", "sql", "script", "program"]),
    (Wants::Url, &["url", "uri", "link", "website"]),
    (Wants::Path, &["path", "file", "filename", "filepath", "folder", "directory"]),
    (
        Wants::Date,
        &["date", "time", "start", "begin", "end", "when", "deadline", "check", "day", "datetime"],
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
        &[
            "id",
            "key",
            "symbol",
            "ticker",
            "ticket",
            "container",
            "service",
            "username",
            "selector",
        ],
    ),
    (Wants::Number, &["amount", "quantity", "price", "latitude", "longitude"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    Url,
    Path,
    Date,
    Language,
    Person,
    Place,
    Text,
    Thing,
    Number,
    /// Made from the request itself.
    Wording,
    Anything,
}

/// A request of this many words says what to do.
const WORDING_WORDS_MIN: usize = 4;

fn has(parameter: &Parameter, facts: &Facts, request: &str) -> bool {
    if parameter.kind == "boolean" {
        return true;
    }
    let lower = request.to_lowercase();
    if parameter.choices.iter().any(|choice| lower.contains(&choice.to_lowercase())) {
        return true;
    }
    let said = facts.substance || facts.name;
    match wants(parameter) {
        Wants::Url => facts.url || facts.path || facts.quoted,
        Wants::Path => facts.path || facts.quoted || said,
        Wants::Date => facts.date || facts.number,
        Wants::Language => facts.language || facts.quoted,
        Wants::Person => facts.email || facts.mark || facts.name || facts.substance,
        Wants::Place => facts.name || facts.place || facts.quoted,
        Wants::Text => facts.substance,
        Wants::Thing => facts.particular() || said,
        Wants::Number => facts.number,
        Wants::Wording => said || request.split_whitespace().count() >= WORDING_WORDS_MIN,
        Wants::Anything => said || facts.particular(),
    }
}

fn wants(parameter: &Parameter) -> Wants {
    let name = split_name(&parameter.name).to_lowercase();
    let mut words = name.split_whitespace().rev();
    // The last word is what it is: `start_date` is a date, `file_name` is a name of a file.
    let known =
        |word: &str| KINDS.iter().find(|(_, names)| names.contains(&word)).map(|(kind, _)| *kind);
    let by_name = words.find_map(known);
    let is_number = matches!(parameter.kind.as_str(), "number" | "integer" | "float");
    match by_name {
        Some(kind) => kind,
        None if is_number => Wants::Number,
        None => Wants::Anything,
    }
}
