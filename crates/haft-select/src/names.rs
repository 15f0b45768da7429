//! Requests that name a tool: exactly, or but for a slip.

use super::text;

/// The certainty that a request names a tool, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
    /// The request is the name, with a slip in it.
    Nearly,
    /// The request has the name in it.
    Inside,
    /// The request is the name.
    Exactly,
}

/// A request of more words than this is a sentence.
const NAME_WORDS_MAX: usize = 4;
/// Shorter names are too near to other words.
const NEAR_CHARS_MIN: usize = 5;
/// Longer ones are not compared: the time grows with the square of the length.
const NEAR_CHARS_MAX: usize = 128;
/// One slip for this many letters.
const CHARS_PER_SLIP: usize = 6;

/// The tools that a request names, given the [`key`]s of their names.
pub(super) fn named(keys: &[String], request: &str) -> Vec<(usize, Named)> {
    let whole = key(request);
    if whole.is_empty() {
        return Vec::new();
    }
    let is_short = request.split_whitespace().count() <= NAME_WORDS_MAX;
    let inside: Vec<String> =
        request.split_whitespace().filter(|word| is_identifier(word)).map(key).collect();
    let naming = |name: &str| {
        if *name == whole {
            Some(Named::Exactly)
        } else if inside.iter().any(|word| word == name) {
            Some(Named::Inside)
        } else {
            (is_short && is_near(name, &whole)).then_some(Named::Nearly)
        }
    };
    let keys = keys.iter().enumerate();
    let mut named: Vec<(usize, Named)> =
        keys.filter_map(|(tool, name)| Some((tool, naming(name)?))).collect();
    // A slip is only guessed at where no name fits.
    if named.iter().any(|(_, naming)| *naming > Named::Nearly) {
        named.retain(|(_, naming)| *naming > Named::Nearly);
    }
    named
}

/// A name without what separates its words.
pub(super) fn key(name: &str) -> String {
    let mut folded = String::new();
    text::fold(name, &mut folded);
    folded.retain(char::is_alphanumeric);
    folded
}

/// Words that only a program writes: `get_weather`, `getWeather`, `files.read`.
fn is_identifier(word: &str) -> bool {
    let word = word.trim_matches(|char: char| !char.is_alphanumeric());
    let inner = word.contains(['_', '-', '.', '/', ':']);
    let camel =
        word.chars().zip(word.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    inner || camel
}

fn is_near(name: &str, request: &str) -> bool {
    let (longer, shorter) = (name.len().max(request.len()), name.len().min(request.len()));
    let slips_max = longer / CHARS_PER_SLIP;
    shorter >= NEAR_CHARS_MIN
        && longer <= NEAR_CHARS_MAX
        && longer - shorter <= slips_max
        && strsim::osa_distance(name, request) <= slips_max
}
