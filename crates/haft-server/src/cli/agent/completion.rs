//! Tab completion at the prompt of a chat.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

/// Gives the words that can stand where `word` is, which begins at a byte of `line`.
pub(in crate::cli) type Complete = dyn Fn(&str, usize, &str) -> Vec<String> + Send;

/// Completes the word before the cursor.
pub(in crate::cli) struct Completion {
    complete: Box<Complete>,
    is_active: bool,
}

impl Completion {
    pub(super) fn new(complete: Box<Complete>) -> Self {
        Self { complete, is_active: true }
    }

    pub(super) fn set_active(&mut self, is_active: bool) {
        self.is_active = is_active;
    }
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..position];
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        if !self.is_active {
            return Ok((start, Vec::new()));
        }
        let word = &before[start..];
        let mut words = (self.complete)(line, start, word);
        words.retain(|candidate| candidate.starts_with(word));
        words.sort();
        words.dedup();
        Ok((start, words))
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}

impl Validator for Completion {}

impl Helper for Completion {}
