//! Keeps secrets out of the log: first the values that the configuration knows to be secret, then
//! what looks like a secret. What can match nowhere is neither parsed nor copied.

mod json;
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
    /// Finds whatever could make a JSON text change, in one pass over its bytes.
    suspicion: Regex,
    /// The known secrets, if there are any.
    known: Option<Regex>,
    /// Token shapes in text.
    shapes: Regex,
    /// Keys whose value is a secret.
    secret_key: Regex,
    /// Keys that end like one and are none.
    harmless_key: Regex,
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
            suspicion: patterns::suspicion(&secrets),
            known: patterns::known(&secrets),
            shapes: patterns::shapes(),
            secret_key: patterns::secret_key(),
            harmless_key: patterns::harmless_key(),
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
        if self.0.suspicion.is_match(json) {
            json::redact(self, json)
        } else {
            Cow::Borrowed(json)
        }
    }

    /// Whether the value under `key` is a secret by its name alone.
    fn is_secret_key(&self, key: &str) -> bool {
        self.0.secret_key.is_match(key) && !self.0.harmless_key.is_match(key)
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
