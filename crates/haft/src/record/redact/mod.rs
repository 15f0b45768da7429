//! Keeps secrets out of the log: first the values that the configuration knows to be secret, then
//! what looks like a secret. What can match nowhere is neither parsed nor copied.

mod json;
mod keys;
mod patterns;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use regex::{Captures, Regex};

/// A secret shorter than this is not searched for: `8080` or `admin` would black out half the log.
pub const SECRET_CHARS_MIN: usize = 6;

/// What stands in a secret's place.
pub const MASK: &str = "***";

/// Replaces secrets by [`MASK`]. Cheap to clone.
#[derive(Clone)]
pub struct Redactor(Arc<Rules>);

struct Rules {
    /// Beginnings of token shapes in JSON, and escapes that could hide anything.
    hints: [Regex; 2],
    /// The known secrets in JSON, and in text, if there are any.
    known_in_json: Option<Regex>,
    known: Option<Regex>,
    /// Token shapes in text.
    shapes: Regex,
}

impl Redactor {
    /// Takes the secret values of the configuration. Those with fewer than [`SECRET_CHARS_MIN`]
    /// characters are left out.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets
            .into_iter()
            .filter(|secret| secret.chars().count() >= SECRET_CHARS_MIN)
            .collect();
        // The longest first: a secret that begins with another one is replaced as a whole.
        secrets.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self(Arc::new(Rules {
            hints: patterns::hints(),
            known_in_json: patterns::known_in_json(&secrets),
            known: patterns::known(&secrets),
            shapes: patterns::shapes(),
        }))
    }

    /// Redacts plain text, such as an error message.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = match &self.0.known {
            Some(known) => known.replace_all(text, MASK),
            None => Cow::Borrowed(text),
        };
        match self.0.shapes.replace_all(&text, mask_shape) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => Cow::Owned(redacted),
        }
    }

    /// Redacts a JSON text. The answer has the same structure and order; only strings change.
    pub fn json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        if self.is_suspicious(json) { json::redact(self, json) } else { Cow::Borrowed(json) }
    }

    /// Whether redaction might change `json`. Each of the looks is a fast scan; as one pattern they
    /// take ten times as long, because the engine then has to step byte by byte.
    fn is_suspicious(&self, json: &str) -> bool {
        self.0.known_in_json.as_ref().is_some_and(|known| known.is_match(json))
            || self.0.hints.iter().any(|hint| hint.is_match(json))
            || keys::any_secret(json)
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Redactor(***)")
    }
}

/// Keeps what is no secret about a shape: `Bearer `, and the user and host of a URL.
fn mask_shape(found: &Captures<'_>) -> String {
    let group = |name| found.name(name).map_or("", |part| part.as_str());
    format!("{}{}{MASK}{}", group("scheme"), group("user"), group("at"))
}
