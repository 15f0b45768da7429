//! Keeps secrets out of the log: first the values that the configuration knows to be secret, then
//! what looks like a secret. What can match nowhere is neither parsed nor copied.

mod hints;
mod json;
mod keys;
mod patterns;

#[cfg(test)]
mod tests;

pub use json::string_len;
pub(crate) use keys::is_secret_name;

use std::borrow::Cow;
use std::sync::Arc;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use hints::Hints;

/// A secret shorter than this is not searched for: `8080` or `admin` would black out half the log.
pub const SECRET_CHARS_MIN: usize = 6;

/// Replaces a secret.
pub const MASK: &str = "***";

/// Replaces secrets by [`MASK`]. Cheap to clone.
#[derive(Clone)]
pub struct Redactor(Arc<Rules>);

struct Rules {
    /// True if the value of a key such as `password` is masked regardless of its content.
    by_key: bool,
    /// Finds JSON that needs a closer look.
    hints: Hints,
    /// The known secrets in text, if there are any.
    known: Option<Regex>,
    /// Token shapes in text.
    shapes: Regex,
}

impl Redactor {
    /// Takes the secret values of the configuration. Those with fewer than [`SECRET_CHARS_MIN`]
    /// characters are left out.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let secrets = usable(secrets);
        Self(Arc::new(Rules {
            by_key: true,
            hints: Hints::new(&secrets, &patterns::TOKEN_HINTS, true),
            known: patterns::known(&secrets),
            shapes: patterns::shapes(),
        }))
    }

    /// Masks nothing but these secrets and Haft's own keys: for descriptions of servers and tools,
    /// where `Bearer TOKEN` or `postgres://user:password@host` is an example.
    pub fn of_known(secrets: impl IntoIterator<Item = String>) -> Self {
        let secrets = usable(secrets);
        Self(Arc::new(Rules {
            by_key: false,
            hints: Hints::new(&secrets, &patterns::OWN_KEY_HINTS, false),
            known: patterns::known(&secrets),
            shapes: patterns::own_keys(),
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

    /// Redacts a string in place.
    pub fn mask(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }

    /// Redacts every string of a value in place. Keys stay.
    pub fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_value(item)),
            Value::Object(fields) => self.mask_fields(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The same for the values of an object.
    pub fn mask_fields(&self, fields: &mut Map<String, Value>) {
        fields.values_mut().for_each(|value| self.mask_value(value));
    }

    /// Redacts a JSON text. The answer has the same structure and order; only strings change.
    pub fn json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        if self.is_suspicious(json) { json::redact(self, json) } else { Cow::Borrowed(json) }
    }

    /// Returns true if redaction might change `json`, or a part of it that begins and ends between values.
    pub fn is_suspicious(&self, json: &str) -> bool {
        self.0.hints.any(json) || self.0.by_key && keys::any_secret(json)
    }
}

/// The secrets that are long enough. The longest come first: one that begins with another is replaced as a
/// whole.
fn usable(secrets: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut secrets: Vec<String> =
        secrets.into_iter().filter(|secret| secret.chars().count() >= SECRET_CHARS_MIN).collect();
    secrets.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    secrets.dedup();
    secrets
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Redactor(***)")
    }
}

/// Masks strings that look like a secret of a well-known service, and returns those secrets.
pub(crate) fn mask_shapes(text: &str) -> (Cow<'_, str>, Vec<String>) {
    let mut secrets = Vec::new();
    let masked = patterns::shapes().replace_all(text, |found: &Captures<'_>| {
        let around = |name| found.name(name).map_or(0, |part| part.len());
        let whole = &found[0];
        let secret = around("scheme") + around("user")..whole.len() - around("at");
        secrets.push(whole[secret].to_owned());
        mask_shape(found)
    });
    (masked, secrets)
}

/// Keeps the harmless part of a match: `Bearer `, and the user and host of a URL.
fn mask_shape(found: &Captures<'_>) -> String {
    let group = |name| found.name(name).map_or("", |part| part.as_str());
    format!("{}{}{MASK}{}", group("scheme"), group("user"), group("at"))
}
