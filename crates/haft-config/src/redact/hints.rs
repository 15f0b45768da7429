//! Finds out fast whether a JSON text might hold a secret. Nearly all hold none, and those are
//! neither parsed nor copied.

use aho_corasick::{AhoCorasick, Input, MatchKind};
use memchr::memmem;
use regex::Regex;

use super::patterns;

/// A shorter part of a secret is found too often to be a hint.
const PLAIN_BYTES_MIN: usize = 4;

/// The literals that every secret or token has, in one automaton.
pub(super) struct Hints {
    literals: AhoCorasick,
    /// The meaning of each literal.
    kinds: Vec<Kind>,
    /// A JSON writer may spell any character as `\u0061`, so a text with such escapes is examined
    /// whatever it contains.
    escape: memmem::Finder<'static>,
    /// The secrets that have no plain part.
    others: Option<Regex>,
}

/// The meaning of a literal that was found.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A beginning of a token, or a part of a known secret.
    Token,
    /// `://`. Only an address with a password is a secret.
    Address,
    /// The end of `bearer`, in one of its spellings. Eight spellings are searched for instead of 64.
    Bearer,
}

impl Hints {
    /// Hints of these secrets and of `tokens`; with `is_wide` also of addresses and bearer tokens.
    pub(super) fn new(secrets: &[String], tokens: &[&str], is_wide: bool) -> Self {
        let mut literals: Vec<String> = tokens.iter().map(ToString::to_string).collect();
        let mut others = Vec::new();
        for secret in secrets {
            match plain_part(secret) {
                Some(part) => literals.push(part.to_owned()),
                None => others.push(secret.clone()),
            }
        }
        let mut kinds = vec![Kind::Token; literals.len()];
        if is_wide {
            literals.push("://".to_owned());
            kinds.push(Kind::Address);
            let bearer = ["rer", "Rer", "rEr", "reR", "REr", "ReR", "rER", "RER"];
            literals.extend(bearer.map(String::from));
            kinds.extend([Kind::Bearer; 8]);
        }
        let literals = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(literals)
            .expect("the number of literals depends on the configuration's secrets alone");
        let escape = memmem::Finder::new(r"\u");
        Self { literals, kinds, escape, others: patterns::known_in_json(&others) }
    }

    /// Returns true if `json` has any of them.
    pub(super) fn any(&self, json: &str) -> bool {
        self.escape.find(json.as_bytes()).is_some()
            || self.any_literal(json)
            || self.others.as_ref().is_some_and(|others| others.is_match(json))
    }

    fn any_literal(&self, json: &str) -> bool {
        let bytes = json.as_bytes();
        let mut at = 0;
        while let Some(found) = self.literals.find(Input::new(bytes).range(at..)) {
            let is_hint = match self.kinds[found.pattern().as_usize()] {
                Kind::Token => true,
                Kind::Address => {
                    let end = memchr::memchr2(b'/', b'@', &bytes[found.end()..]);
                    end.is_some_and(|end| bytes[found.end() + end] == b'@')
                }
                Kind::Bearer => found
                    .start()
                    .checked_sub(3)
                    .is_some_and(|start| bytes[start..found.start()].eq_ignore_ascii_case(b"bea")),
            };
            if is_hint {
                return true;
            }
            // Another literal may begin inside this one.
            at = found.start() + 1;
        }
        false
    }
}

/// The longest part of a secret that JSON spells in one way only, if it is long enough.
fn plain_part(secret: &str) -> Option<&str> {
    let parts = secret.split(|c: char| c.is_control() || matches!(c, '"' | '\\' | '/'));
    parts.max_by_key(|part| part.len()).filter(|part| part.len() >= PLAIN_BYTES_MIN)
}
