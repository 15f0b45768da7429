//! Splits strings into words: names split, lower case, no accents, stems.

use rust_stemmers::{Algorithm, Stemmer};

/// Words without information about the request.
#[rustfmt::skip]
const STOP_WORDS: [&str; 92] = [
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "does", "for", "from", "get", "give", "had", "has", "have", "help", "here", "how", "i", "if", "in", "into",
    "is", "it", "its", "just", "know", "let", "like", "may", "me", "might", "mine", "must", "my", "need", "no", "not", "of",
    "on", "or", "our", "out", "please", "s", "shall", "should", "so", "some", "t", "tell", "than", "that", "the", "then",
    "there", "these", "this", "those", "to", "up", "us", "want", "was", "we", "were", "what", "when", "where", "which",
    "who", "whom", "why", "will", "with", "would", "you", "your", "yours", "m",
];

/// Returns true if a word (lower case, not stemmed) carries no information about the request.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(&word)
}

/// The words and single symbols of a string, unmodified. `_` and white space separate.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|char: char| char.is_whitespace() || char == '_');
        let first = rest.chars().next()?;
        let end = if is_word_char(first) {
            rest.find(|char| !is_word_char(char)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(end);
        rest = after;
        Some(token)
    })
}

/// Characters of Chinese and similar scripts are separate words.
fn is_word_char(char: char) -> bool {
    char.is_alphanumeric() && !is_ideograph(char)
}

fn is_ideograph(char: char) -> bool {
    matches!(char, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

/// Small letters without accents, into `folded`.
pub(super) fn fold(text: &str, folded: &mut String) {
    folded.clear();
    for char in text.chars().flat_map(char::to_lowercase) {
        match char {
            'à'..='å' | 'ā' | 'ă' | 'ą' => folded.push('a'),
            'ç' | 'ć' | 'č' => folded.push('c'),
            'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' => folded.push('e'),
            'ì'..='ï' | 'ī' | 'į' => folded.push('i'),
            'ñ' | 'ń' | 'ň' => folded.push('n'),
            'ò'..='ö' | 'ō' | 'ő' => folded.push('o'),
            'ù'..='ü' | 'ū' | 'ů' | 'ű' => folded.push('u'),
            'ý' | 'ÿ' => folded.push('y'),
            'ś' | 'š' | 'ş' => folded.push('s'),
            'ź' | 'ż' | 'ž' => folded.push('z'),
            'ğ' => folded.push('g'),
            'ř' => folded.push('r'),
            '\u{300}'..='\u{36f}' => {}
            other => folded.push(other),
        }
    }
}

/// A name as words: `getStockPrice`, `get_stock-price` and `get.stock.price` are `get Stock Price`.
pub(super) fn split_name(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut words = String::with_capacity(name.len() + 8);
    for (at, &char) in chars.iter().enumerate() {
        if matches!(char, '_' | '-' | '.' | '/' | ':') {
            words.push(' ');
            continue;
        }
        let before = at.checked_sub(1).map_or(' ', |before| chars[before]);
        let after = chars.get(at + 1).copied().unwrap_or(' ');
        let begins = char.is_uppercase()
            && (before.is_lowercase()
                || before.is_numeric()
                || (before.is_uppercase() && after.is_lowercase()));
        if begins {
            words.push(' ');
        }
        words.push(char);
    }
    words
}

/// Words of a string, with their stems.
pub(super) struct Words {
    stemmer: Stemmer,
}

/// A word of a string.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    /// Small letters.
    pub(super) text: String,
    /// The stem, for comparison.
    pub(super) stem: String,
    /// Its weight.
    pub(super) weight: f32,
}

impl Words {
    pub(super) fn new() -> Self {
        Self { stemmer: Stemmer::create(Algorithm::English) }
    }

    /// The words of a string, without symbols.
    pub(super) fn of(&self, text: &str) -> Vec<Word> {
        let split = split_name(text);
        let words = tokens(&split).filter(|token| token.chars().any(char::is_alphanumeric));
        words
            .map(|token| {
                let mut text = String::new();
                fold(token, &mut text);
                let stem = self.stemmer.stem(&text).into_owned();
                Word { text, stem, weight: 1.0 }
            })
            .collect()
    }
}
