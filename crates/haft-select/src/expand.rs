//! Expands a request with implied words: `names.csv` is a file, "google it" is a web search.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::text::{Word, Words};
use super::values;

const SAYINGS: &str = include_str!("../assets/synonyms.txt");
/// Maximum number of words of a phrase.
const WORDS_MAX: usize = 5;

/// From the stems of a phrase to its meanings. A phrase may have several lines.
type Synonyms = HashMap<String, Vec<&'static str>>;

const LETTERS: usize = 26;
/// One for each first letter, made when a request first has a word with it: stemming all sayings takes milliseconds.
static SYNONYMS: [OnceLock<Synonyms>; LETTERS] = [const { OnceLock::new() }; LETTERS];

/// The sayings that begin like a word. Stems keep the first letter.
fn synonyms(word: &str) -> Option<&'static Synonyms> {
    let first = *word.as_bytes().first()?;
    let letter = usize::from(first.checked_sub(b'a')?);
    Some(SYNONYMS.get(letter)?.get_or_init(|| read(first)))
}

fn read(first: u8) -> Synonyms {
    let words = Words::new();
    let lines = SAYINGS.lines().filter(|line| !line.starts_with('#'));
    let mut synonyms = Synonyms::new();
    for (sayings, meaning) in lines.filter_map(|line| line.split_once(": ")) {
        for saying in sayings.split(", ").filter(|saying| saying.as_bytes().first() == Some(&first))
        {
            synonyms.entry(stems(&words.of(saying))).or_default().push(meaning);
        }
    }
    synonyms
}

/// Returns words that tool descriptions use for the content of a request, separated by spaces.
/// `words` are those of the request, in order.
pub(super) fn expand(request: &str, words: &[Word]) -> String {
    let mut found: Vec<&str> = Vec::new();
    for word in request.split_whitespace() {
        found.extend(shape(word.trim_matches(['"', '\'', ',', ';', '!', '?', '(', ')', ':', '`'])));
    }
    if has_arithmetic(request) {
        found.push("calculate math expression");
    }
    for (begin, word) in words.iter().enumerate() {
        let Some(synonyms) = synonyms(&word.stem) else { continue };
        for end in begin + 1..=words.len().min(begin + WORDS_MAX) {
            found.extend(synonyms.get(&stems(&words[begin..end])).into_iter().flatten());
        }
    }
    let mut expanded: Vec<&str> = Vec::new();
    for word in found.iter().flat_map(|it| it.split(' ')) {
        if !expanded.contains(&word) && !words.iter().any(|it| it.text == word) {
            expanded.push(word);
        }
    }
    expanded.join(" ")
}

/// Sayings are compared by their stems, so that "deployed" is "deploy".
fn stems(words: &[Word]) -> String {
    let stems: Vec<&str> = words.iter().map(|word| word.stem.as_str()).collect();
    stems.join(" ")
}

/// Returns true if numbers stand on both sides of an operator: `12 * (3 + 4)`.
fn has_arithmetic(request: &str) -> bool {
    let signs = request.match_indices(['+', '*', '^', '×', '÷']);
    let skipped = |char: char| char.is_whitespace() || matches!(char, '(' | ')');
    let is_digit = |char: char| char.is_ascii_digit();
    { signs }.any(|(at, sign)| {
        let before = request[..at].trim_end_matches(skipped);
        let after = request[at + sign.len()..].trim_start_matches(skipped);
        before.ends_with(is_digit) && after.starts_with(is_digit)
    })
}

/// The meaning of a word's shape.
fn shape(word: &str) -> Option<&'static str> {
    if word.starts_with("http://") || word.starts_with("https://") || word.starts_with("www.") {
        return Some("url web page");
    }
    if word.contains('@') {
        let is_address =
            word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
        return Some(if is_address { "email address" } else { "message user" });
    }
    if word.len() > 1 && word.starts_with('#') {
        return word[1..].starts_with(char::is_alphabetic).then_some("channel message");
    }
    if word.starts_with(['$', '€', '£']) {
        return Some("price money");
    }
    if values::is_path(word) && word.starts_with(['/', '.', '~']) {
        let last = word.rsplit('/').next().unwrap_or(word);
        return Some(if last.contains('.') { "file contents" } else { "directory" });
    }
    if values::is_time(word) {
        return Some("time");
    }
    if let Some(kind) =
        word.trim_end_matches('.').rsplit_once('.').and_then(|(_, ending)| file_kind(ending))
    {
        return Some(kind);
    }
    let is_path = word.matches('/').count() > 1 || word.starts_with("./") || word.starts_with("~/");
    if is_path && word.contains(char::is_alphabetic) {
        return Some("file path");
    }
    let is_code =
        word.ends_with("()") || (word.contains('_') && word.contains(char::is_alphabetic));
    is_code.then_some("code function")
}

fn file_kind(ending: &str) -> Option<&'static str> {
    Some(match ending.to_ascii_lowercase().as_str() {
        "txt" | "log" | "ini" | "conf" | "toml" | "yaml" | "yml" | "xml" | "env" | "lock" => {
            "file text"
        }
        "json" => "file json",
        "md" => "file markdown",
        "csv" | "tsv" | "xls" | "xlsx" | "ods" | "parquet" => "file data table spreadsheet",
        "pdf" => "pdf file document",
        "doc" | "docx" | "odt" => "file word document",
        "ppt" | "pptx" => "presentation slides file",
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "svg" | "bmp" | "tiff" => "image picture file",
        "mp3" | "wav" | "flac" | "ogg" | "m4a" => "audio file",
        "mp4" | "mov" | "avi" | "mkv" | "webm" => "video file",
        "zip" | "tar" | "gz" | "7z" => "archive file",
        "py" | "rs" | "js" | "ts" | "go" | "java" | "c" | "cpp" | "h" | "rb" | "sh" | "tsx"
        | "jsx" => "code file",
        "sql" | "db" | "sqlite" => "database sql file",
        "html" | "htm" | "css" => "html file web page",
        _ => return None,
    })
}
