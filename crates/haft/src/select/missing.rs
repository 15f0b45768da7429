//! Which arguments a tool needs that a request does not have.

use serde::Serialize;

use super::entry::Parameter;
use super::facts::Facts;
use super::index::Index;
use super::text::split_name;

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
pub(super) fn missing(index: &Index, tool: usize, request: &str) -> Vec<Missing> {
    let (entry, words) = (&index.entries[tool], &index.words);
    if entry.required.is_empty() {
        return Vec::new();
    }
    let own = |word: &str| {
        let stems = words.of(word);
        !stems.is_empty() && stems.iter().all(|word| entry.says(&word.stem))
    };
    let facts = Facts::new(request, own);
    let mut used = Used::default();
    let asked = entry.required.iter().filter(|it| !index.is_context(tool, &it.name));
    let missing = asked.filter(|it| !has(it, &facts, request, &mut used));
    missing
        .map(|it| Missing { name: it.name.clone(), description: it.description.clone() })
        .collect()
}

/// What kind of value a parameter wants, told from its name.
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
    /// How much to show: whoever calls chooses it.
    Chosen,
    /// What nobody guesses: a number, a name, a code.
    Id,
    Number,
    /// Made from the request itself.
    Wording,
    Anything,
}

/// A request of this many words says what to do.
const WORDING_WORDS_MIN: usize = 4;

/// Ends of a way. A request that says one of them does not say the other.
const ENDS: [&str; 8] =
    ["origin", "destination", "from", "to", "departure", "arrival", "start", "end"];

/// What was found for the parameters before: a number is the argument of one parameter, not of two.
#[derive(Default)]
struct Used {
    numbers: usize,
    ends: usize,
}

/// With so many commas there is a list.
const LIST_COMMAS_MIN: usize = 2;

fn has(parameter: &Parameter, facts: &Facts, request: &str, used: &mut Used) -> bool {
    // One of a few is chosen by the caller, who sees them.
    if parameter.kind == "boolean" || parameter.has_choices {
        return true;
    }
    let said = facts.substance || facts.names > 0;
    match wants(parameter) {
        Wants::Url => facts.url || facts.path || facts.quoted,
        Wants::Path => facts.path || facts.quoted || said,
        Wants::Date => facts.date || facts.numbers > 0,
        Wants::Language => facts.language || facts.quoted,
        Wants::Person => facts.email || facts.mark || said,
        Wants::Place => {
            used.ends += usize::from(is_end(&parameter.name));
            facts.names.max(facts.places) >= used.ends.max(1) || facts.quoted
        }
        Wants::Text => facts.substance,
        Wants::Thing => facts.particular() || said,
        Wants::Chosen => true,
        Wants::Id => facts.particular(),
        Wants::Details => facts.particular() || request.matches(',').count() >= LIST_COMMAS_MIN,
        Wants::Number => {
            used.numbers += 1;
            facts.numbers >= used.numbers
        }
        Wants::Wording => said || request.split_whitespace().count() >= WORDING_WORDS_MIN,
        Wants::Anything => said || facts.particular(),
    }
}

fn says_place(description: &str) -> bool {
    let lower = description.to_lowercase();
    ["location", "address", "city"].iter().any(|word| lower.contains(word))
        && !lower.contains("date")
}

fn is_end(name: &str) -> bool {
    split_name(name).to_lowercase().split_whitespace().any(|word| ENDS.contains(&word))
}

pub(super) fn wants(parameter: &Parameter) -> Wants {
    let name = split_name(&parameter.name).to_lowercase();
    let mut words = name.split_whitespace().rev();
    // The last word is what it is: `start_date` is a date, `file_name` is a name of a file.
    let known =
        |word: &str| KINDS.iter().find(|(_, names)| names.contains(&word)).map(|(kind, _)| *kind);
    let by_name = words.find_map(known);
    let is_number = matches!(parameter.kind.as_str(), "number" | "integer" | "float");
    match by_name {
        // `start` may be the start of a day or of a way.
        Some(Wants::Date) if says_place(&parameter.description) => Wants::Place,
        Some(kind) => kind,
        None if matches!(parameter.kind.as_str(), "object" | "dict" | "array") => Wants::Details,
        None if is_number => Wants::Number,
        None => Wants::Anything,
    }
}
