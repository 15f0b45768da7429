//! Finds required arguments that a request does not contain.

use serde::Serialize;

use super::facts::Facts;
use super::index::Index;
use super::parameter::{Parameter, Wants};
use super::text::split_name;

/// A missing argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The parameter's name.
    pub name: String,
    /// Its description in the schema.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// The missing arguments of a call. Empty if the request has a value for each required argument.
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

/// A request of this many words describes its task.
const WORDING_WORDS_MIN: usize = 4;

/// Opposite directions. A request that names one does not name the other.
const ENDS: [&str; 8] =
    ["origin", "destination", "from", "to", "departure", "arrival", "start", "end"];

/// The facts used for earlier parameters: a number is the argument of one parameter, not of two.
#[derive(Default)]
struct Used {
    numbers: usize,
    ends: usize,
}

/// This many commas make a list.
const LIST_COMMAS_MIN: usize = 2;

fn has(parameter: &Parameter, facts: &Facts, request: &str, used: &mut Used) -> bool {
    // One of a few is chosen by the caller, who sees them.
    if parameter.kind == "boolean" || parameter.has_choices {
        return true;
    }
    let said = facts.substance || facts.names > 0;
    match parameter.wants() {
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

fn is_end(name: &str) -> bool {
    split_name(name).to_lowercase().split_whitespace().any(|word| ENDS.contains(&word))
}
