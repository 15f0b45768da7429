//! The operation: the verb of a request against the verb of a tool. Tools of one server work on the same things and
//! differ in what they do with them.

use super::text::{self, split_name};
use super::values::{Chunk, Value};

/// A set of operations. Empty if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Operations(u16);

const LIST: u16 = 1;
const SEARCH: u16 = 1 << 1;
const READ: u16 = 1 << 2;
const CREATE: u16 = 1 << 3;
const UPDATE: u16 = 1 << 4;
const DELETE: u16 = 1 << 5;
const SEND: u16 = 1 << 6;
const RUN: u16 = 1 << 7;
const MOVE: u16 = 1 << 8;
const CONVERT: u16 = 1 << 9;
/// Read-only operations.
const LOOK: u16 = LIST | SEARCH | READ;
/// Modifying operations.
const CHANGE: u16 = CREATE | UPDATE | DELETE | SEND | MOVE;

/// Verbs and their operations.
#[rustfmt::skip]
const VERBS: [(u16, &[&str]); 20] = [
    (LIST, &["list", "enumerate", "ls"]),
    (SEARCH, &["search", "find", "lookup", "locate", "discover", "grep", "browse"]),
    (READ, &["get", "read", "show", "fetch", "view", "open", "retrieve", "display", "describe", "check", "load", "inspect",
             "print", "see", "status", "cat", "return", "peek", "diff", "count", "summarize", "compare", "analyze"]),
    (CREATE, &["create", "add", "new", "make", "insert", "append", "register", "generate", "build", "draft", "compose",
               "start", "begin", "schedule", "book", "reserve", "arrange", "plan", "stage", "commit"]),
    (CREATE | UPDATE, &["write", "save", "store", "record", "log", "note", "remember", "enter"]),
    (CREATE | UPDATE | MOVE, &["put"]),
    (UPDATE, &["update", "edit", "change", "modify", "adjust", "replace", "correct", "fix", "amend", "alter", "patch"]),
    (UPDATE, &["set", "toggle", "enable", "disable", "switch", "turn", "checkout"]),
    (UPDATE, &["merge", "combine", "join", "unify"]),
    (UPDATE | MOVE, &["move", "rename", "transfer", "relocate"]),
    (UPDATE | MOVE, &["shift", "reschedule", "postpone", "push"]),
    (DELETE, &["delete", "remove", "drop", "clear", "erase", "trash", "discard", "purge", "wipe", "forget", "scrap", "undo"]),
    (DELETE, &["cancel", "reset", "revert", "unstage"]),
    (SEND, &["send", "reply", "forward", "notify", "respond", "email", "mail", "text", "message", "answer", "inform", "invite"]),
    (SEND, &["ask", "request", "prompt"]),
    (SEND | CREATE, &["share", "post", "publish"]),
    (SEND | UPDATE, &["accept", "decline"]),
    (RUN, &["run", "execute", "trigger", "invoke", "simulate", "launch"]),
    (CONVERT, &["convert", "translate", "transform", "calculate", "compute", "sum"]),
    (CONVERT, &["compress", "decode", "encode"]),
];
/// Verbs that are nouns in the names of tools: `git_log` logs nothing.
#[rustfmt::skip]
const NOUNS: [&str; 12] = [
    "log", "note", "record", "text", "message", "mail", "email", "post", "book", "plan", "request", "answer",
];
/// Words that begin a question, or a request to be shown something.
#[rustfmt::skip]
const QUESTION: [&str; 30] = [
    "what", "whats", "which", "who", "whos", "whose", "when", "where", "wheres", "how", "why", "is", "are", "was", "were", "do",
    "does", "did", "has", "have", "any", "anything", "anyone", "there", "give", "tell", "current", "latest", "last", "am",
];
/// Words that may stand before the verb.
#[rustfmt::skip]
const POLITE: [&str; 25] = [
    "please", "could", "can", "would", "you", "i", "want", "need", "to", "d", "like", "hey", "hi", "ok", "okay", "us", "just",
    "now", "oops", "so", "and", "also", "pls", "quickly", "then",
];
/// Words before a noun: "the commit".
#[rustfmt::skip]
const BEFORE_NOUNS: [&str; 24] = [
    "the", "a", "an", "my", "our", "this", "that", "of", "in", "on", "for", "with", "new", "no", "your", "his", "her", "their",
    "at", "from", "next", "last", "by", "these",
];
const NEGATIONS: [&str; 6] = ["don", "dont", "not", "without", "never", "t"];
/// A question with one of them is about several things.
const OPEN: [&str; 6] = ["any", "anything", "all", "everything", "anyone", "someone"];
/// Behind a value they begin a statement of how it should be.
const STATES: [&str; 10] =
    ["is", "are", "was", "has", "have", "should", "must", "needs", "will", "moved"];
/// A shorter word with an `s` at its end is not taken for a plural.
const PLURAL_CHARS_MIN: usize = 4;

/// The operations of a tool: of the first verb in its name, or else of the verb that its description begins with.
pub(super) fn of_tool(name: &str, description: &str) -> Operations {
    let name = split_name(name).to_lowercase();
    // Names have verbs in their plain form: `git_diff_staged` stages nothing.
    let verbs = name.split_whitespace().filter(|word| !NOUNS.contains(word));
    let named = verbs.map(exact).find(|bits| *bits != 0).unwrap_or_default();
    let mut words = description.split(|char: char| !char.is_alphanumeric());
    let first = words.find(|word| !word.is_empty()).unwrap_or_default().to_lowercase();
    Operations(if named == 0 { of_verb(&first) } else { named })
}

/// The operations of a request: of its first verb, or of the kind of question it is.
pub(super) fn of_request(chunks: &[Chunk<'_>]) -> Operations {
    let words = plain_words(chunks);
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let follow = |first: &str, second: &str| words.windows(2).any(|it| it == [first, second]);
    // "C-7 is closed now" has its value first: a statement about it.
    let is_statement = chunks.first().is_some_and(|it| it.is_quoted || it.value.is_some());
    let asks = chunks.last().is_some_and(|it| it.text.ends_with('?'));
    let begin = words.iter().position(|it| !POLITE.contains(&it.as_str())).unwrap_or_default();
    let first = word(begin);
    if (has(&["take"]) && has(&["out", "off", "away"]))
        || follow("call", "off")
        || follow("get", "rid")
        || follow("throw", "away")
    {
        return Operations(DELETE);
    }
    if follow("set", "up") {
        return Operations(CREATE);
    }
    if matches!(first, "tell" | "let") && !matches!(word(begin + 1), "me" | "us") {
        return Operations(SEND);
    }
    let is_question = !is_statement && (QUESTION.contains(&first) || asks && begin == 0);
    let bits = if is_question { question(chunks, &words[begin..]) } else { first_verb(&words) };
    let is_wish = word(0) == "i" && matches!(word(1), "need" | "want");
    if is_wish && matches!(word(2), "a" | "an" | "another" | "new") && bits & CHANGE == 0 {
        return Operations(CREATE);
    }
    if (is_statement && !asks && STATES.contains(&first))
        || (bits == 0 && has(&["instead", "changed"]))
    {
        return Operations(UPDATE | MOVE);
    }
    Operations(bits)
}

/// Words in small letters, up to an apostrophe, without values and quotes.
fn plain_words(chunks: &[Chunk<'_>]) -> Vec<String> {
    let chunks = chunks.iter().filter(|it| !it.is_quoted && it.value.is_none());
    let word = |chunk: &Chunk<'_>| {
        let mut folded = String::new();
        text::fold(chunk.text, &mut folded);
        let word = folded.trim_matches(|char: char| !char.is_alphanumeric());
        word.split(['\'', '’']).next().unwrap_or(word).to_owned()
    };
    chunks.map(word).filter(|word| !word.is_empty()).collect()
}

fn question(chunks: &[Chunk<'_>], words: &[String]) -> u16 {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let is_plural = matches!(word(0), "what" | "which" | "whats")
        && word(1).len() >= PLURAL_CHARS_MIN
        && word(1).ends_with('s');
    if chunks.iter().any(|it| it.value == Some(Value::Id)) {
        READ
    } else if is_plural || words.iter().any(|it| OPEN.contains(&it.as_str())) {
        LIST | SEARCH
    } else {
        LOOK
    }
}

fn first_verb(words: &[String]) -> u16 {
    let mut before = "";
    for word in words {
        let is_verb = !BEFORE_NOUNS.contains(&before) && !NEGATIONS.contains(&before);
        let bits = if is_verb { of_verb(word) } else { 0 };
        if bits != 0 {
            return bits;
        }
        before = word;
    }
    0
}

fn exact(word: &str) -> u16 {
    let lines = VERBS.iter().filter(|(_, verbs)| verbs.contains(&word));
    lines.fold(0, |bits, line| bits | line.0)
}

/// Of a verb in any form: "creates", "created", "creating".
fn of_verb(word: &str) -> u16 {
    let plain = exact(word);
    if plain != 0 {
        return plain;
    }
    let endings = ["s", "es", "d", "ed", "ing"];
    let inflected = |ending: &str| {
        let stem = word.strip_suffix(ending)?;
        let with_e = if matches!(ending, "ed" | "ing") { exact(&format!("{stem}e")) } else { 0 };
        Some(exact(stem) | with_e).filter(|bits| *bits != 0)
    };
    endings.into_iter().find_map(inflected).unwrap_or_default()
}

/// The agreement between the operations of a request and of a tool: -1 to 1, and 0 if one is
/// unknown.
pub(super) fn agreement(request: Operations, tool: Operations) -> f32 {
    let (request, tool) = (request.0, tool.0);
    let looks = (request & LOOK != 0, tool & LOOK != 0);
    if request == 0 || tool == 0 {
        0.0
    } else if request == LOOK && looks.1 {
        0.5
    } else if request & tool != 0 {
        1.0
    } else {
        match looks {
            (true, true) => 0.2,
            (false, true) if request & CHANGE != 0 => -1.0,
            (true, false) if tool & CHANGE != 0 => -1.0,
            (false, false) => -0.5,
            (false, true) | (true, false) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::chunks;

    #[test]
    fn the_verb_of_a_request_is_told_from_its_nouns() {
        let of = |request| of_request(&chunks(request)).0;
        assert_eq!(of("please delete the note"), DELETE);
        assert_eq!(of("which opportunities are open?"), LIST | SEARCH);
        assert_eq!(of("what happened with C-1042?"), READ);
        assert_eq!(of("ev-3310 has to start at 16:00 instead"), UPDATE | MOVE);
        assert_eq!(of("I need a folder for the reports"), CREATE);
        assert_eq!(of("take everything out of staging"), DELETE);
        assert_eq!(of("tell Anna that I am late"), SEND);
        assert_eq!(of("good morning"), 0);
    }

    #[test]
    fn the_verb_of_a_tool_comes_from_its_name_or_its_description() {
        assert_eq!(of_tool("git_log", "Shows the commit logs").0, READ);
        assert_eq!(of_tool("git_diff_staged", "Shows changes").0, READ);
        assert_eq!(of_tool("git_reset", "Unstages all staged changes").0, DELETE);
        assert_eq!(of_tool("edit_file", "Make line-based edits").0, UPDATE);
        assert_eq!(of_tool("weather", "").0, 0);
    }
}
