//! Facts in a request that can be arguments: numbers, dates, names, addresses, strings.

use std::collections::HashSet;

use super::text;

/// The facts of a request.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one thing that was found or not")]
pub(super) struct Facts {
    /// The number of numbers, in digits or words.
    pub(super) numbers: usize,
    /// A date, a weekday, a time of day.
    pub(super) date: bool,
    pub(super) email: bool,
    pub(super) url: bool,
    /// A path or the name of a file.
    pub(super) path: bool,
    pub(super) quoted: bool,
    /// The number of names with a capital letter; "New York" is one.
    pub(super) names: usize,
    /// `#channel`, `@user`, `snake_case`, an id: not a plain word.
    pub(super) mark: bool,
    /// "in Oslo", "for oslo": how many words after a preposition may be a place.
    pub(super) places: usize,
    pub(super) language: bool,
    pub(super) currency: bool,
    /// True if the request contains more than words that every request to this tool has.
    pub(super) substance: bool,
}

#[rustfmt::skip]
const DATES: [&str; 47] = [
    "today", "tomorrow", "tonight", "yesterday", "now", "noon", "midnight", "morning", "afternoon", "evening", "am", "pm",
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "weekend", "week", "month", "year",
    "january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december",
    "daily", "weekly", "monthly", "hour", "hours", "minutes", "days", "o'clock", "christmas", "easter", "moment",
    "current", "currently",
];
#[rustfmt::skip]
const NUMBERS: [&str; 30] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "fifteen", "twenty",
    "thirty", "forty", "fifty", "hundred", "thousand", "million", "dozen", "half", "both",
    "first", "second", "third", "once", "twice", "single", "couple",
];
#[rustfmt::skip]
const LANGUAGES: [&str; 32] = [
    "english", "german", "french", "spanish", "italian", "portuguese", "dutch", "swedish", "norwegian", "danish", "finnish",
    "polish", "czech", "russian", "ukrainian", "greek", "turkish", "arabic", "hebrew", "hindi", "bengali", "urdu", "chinese",
    "mandarin", "japanese", "korean", "vietnamese", "thai", "indonesian", "latin", "hungarian", "romanian",
];
#[rustfmt::skip]
const CURRENCIES: [&str; 30] = [
    "dollar", "dollars", "euro", "euros", "pound", "pounds", "yen", "yuan", "franc", "francs", "rupee", "rupees", "peso",
    "pesos", "krona", "kronor", "bitcoin", "usd", "eur", "gbp", "jpy", "chf", "cny", "inr", "cad", "aud", "sek", "nok", "won",
    "real",
];
/// Words that refer to earlier parts of the conversation.
#[rustfmt::skip]
const POINTERS: [&str; 34] = [
    "it", "this", "that", "these", "those", "him", "her", "them", "they", "he", "she", "there", "here", "something",
    "someone", "somebody", "anything", "everything", "thing", "things", "stuff", "one", "another", "other", "some", "any",
    "everyone", "everybody", "down", "over", "again", "now", "okay", "quickly",
];
/// Words before something that both sides know already: "the file", "my trip".
const DEFINITE: [&str; 9] = ["the", "that", "this", "my", "our", "his", "her", "their", "these"];
#[rustfmt::skip]
const PREPOSITIONS: [&str; 14] = [
    "in", "at", "to", "for", "from", "near", "into", "of", "on", "with", "about", "by", "around", "and",
];
const PLACE_PREPOSITIONS: [&str; 7] = ["in", "at", "for", "near", "from", "around", "to"];
/// Verbs of any request.
#[rustfmt::skip]
const VERBS: [&str; 33] = [
    "send", "open", "show", "make", "set", "put", "run", "write", "change", "create", "find", "search", "call", "take", "use",
    "do", "go", "look", "check", "try", "start", "book", "post", "file", "save", "read", "convert", "translate", "generate",
    "add", "update", "close", "schedule",
];

impl Facts {
    /// `is_own` returns true if a stem is one of the tool's own words; `stem` creates one.
    pub(super) fn new(request: &str, is_own: impl Fn(&str) -> bool) -> Self {
        let mut facts = Self { quoted: has_quotes(request), ..Self::default() };
        let raw: Vec<&str> = request.split_whitespace().collect();
        let words: Vec<String> = raw.iter().map(|word| plain(word)).collect();
        let mut begins_sentence = true;
        let mut was_name = false;
        for (at, word) in words.iter().enumerate() {
            let is_name = facts.shape(raw[at], word, begins_sentence) && !is_own(word);
            facts.names += usize::from(is_name && !was_name);
            was_name = is_name && !raw[at].ends_with(',');
            facts.word(word);
            let before = at.checked_sub(1).map_or("", |before| words[before].as_str());
            let after = words.get(at + 1).map_or("", String::as_str);
            let ends = raw[at].ends_with(['.', ',', '!', '?', ';']) || after.is_empty();
            let says = says_something(word) && !is_own(word);
            // "the file" and "my trip" are known to the asker, "the sales file" is specific.
            let is_definite = DEFINITE.contains(&before) && (ends || PREPOSITIONS.contains(&after));
            facts.substance |= says && !is_definite;
            let is_place = PLACE_PREPOSITIONS.contains(&before) && says && !is_definite;
            let is_number = word.starts_with(|char: char| char.is_ascii_digit());
            facts.places += usize::from(is_place && !is_number && !DATES.contains(&word.as_str()));
            begins_sentence = raw[at].ends_with(['.', '!', '?', ':']);
        }
        facts.substance |=
            facts.quoted || facts.numbers > 0 || facts.mark || facts.path || facts.url;
        facts
    }

    /// Interprets the spelling of a word. Returns true if it is part of a name.
    fn shape(&mut self, raw: &str, word: &str, begins_sentence: bool) -> bool {
        let raw = raw.trim_matches(|char: char| {
            matches!(char, '"' | '\'' | ',' | '!' | '?' | '(' | ')' | ';')
        });
        let raw = raw.trim_end_matches(['.', ':']);
        let digits = raw.split(|char: char| !char.is_ascii_digit() && char != '.');
        let digits = digits.filter(|it| it.contains(|char: char| char.is_ascii_digit()));
        // "two-bedroom" contains a number too.
        let said = word.split('-').filter(|it| NUMBERS.contains(it));
        self.numbers += digits.count() + said.count();
        let is_email =
            raw.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
        self.email |= is_email;
        let has_ending = raw.rsplit_once('.').is_some_and(|(stem, ending)| {
            !stem.is_empty()
                && (1..=5).contains(&ending.len())
                && ending.chars().all(char::is_alphanumeric)
                && ending.contains(char::is_alphabetic)
        });
        self.url |= raw.contains("://") || raw.starts_with("www.") || (has_ending && !is_email);
        self.path |= (has_ending && !is_email) || raw.contains('/') || raw.starts_with(['~', '.']);
        let is_camel =
            raw.chars().zip(raw.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
        self.mark |= (raw.len() > 1 && raw.starts_with(['#', '@']))
            || raw.contains('_')
            || is_camel
            || is_email;
        let is_capital =
            raw.starts_with(char::is_uppercase) && !raw.starts_with("I'") && raw != "I";
        let is_upper = raw.len() > 1
            && raw.contains(char::is_uppercase)
            && raw.chars().all(|char| char.is_uppercase() || char.is_ascii_digit());
        let is_name = is_upper || (is_capital && !begins_sentence);
        let has_time = raw.contains(':') && raw.starts_with(|char: char| char.is_ascii_digit());
        let is_ordinal = raw.starts_with(|char: char| char.is_ascii_digit())
            && (raw.ends_with("th") || raw.ends_with("pm") || raw.ends_with("am"));
        let is_dashed =
            raw.matches('-').count() == 2 && raw.starts_with(|char: char| char.is_ascii_digit());
        self.date |= has_time || is_ordinal || is_dashed;
        self.currency |= raw.starts_with(['$', '€', '£', '¥']);
        is_name && !DATES.contains(&word) && !LANGUAGES.contains(&word)
    }

    fn word(&mut self, word: &str) {
        self.date |= DATES.contains(&word);
        self.language |= LANGUAGES.contains(&word);
        self.currency |= CURRENCIES.contains(&word);
    }

    /// Anything that names one particular thing.
    pub(super) fn particular(&self) -> bool {
        self.numbers + self.names > 0
            || self.email
            || self.url
            || self.path
            || self.quoted
            || self.mark
    }
}

fn has_quotes(request: &str) -> bool {
    let quotes = request.matches(['"', '“', '”', '`']).count();
    // An apostrophe stands inside a word, quotes before one and behind one.
    let opens = |word: &str| word.starts_with(['\'', '‘']);
    let closes =
        |word: &str| word.trim_end_matches(['.', ',', '?', '!', ';', ')']).ends_with(['\'', '’']);
    let single = request.split_whitespace().any(opens) && request.split_whitespace().any(closes);
    let payload = request.split_once(": ").is_some_and(|(_, rest)| !rest.trim().is_empty());
    quotes >= 2 || single || payload
}

fn plain(word: &str) -> String {
    let mut folded = String::new();
    text::fold(word, &mut folded);
    let word = folded.trim_matches(|char: char| !char.is_alphanumeric());
    word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word).to_owned()
}

fn says_something(word: &str) -> bool {
    static SILENT: std::sync::LazyLock<HashSet<&'static str>> = std::sync::LazyLock::new(|| {
        POINTERS.iter().chain(&VERBS).chain(&DEFINITE).chain(&PREPOSITIONS).copied().collect()
    });
    !word.is_empty()
        && !text::is_stop_word(word)
        && !SILENT.contains(word)
        && !DATES.contains(&word)
}
