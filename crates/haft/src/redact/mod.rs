//! Keeps secrets out of the log: first the values that the configuration knows to be secret, then
//! what looks like a secret. What can match nowhere is neither parsed nor copied.

mod json;
mod keys;
mod patterns;

#[cfg(test)]
mod tests;

pub(crate) use json::string_len;
pub(crate) use keys::is_secret_name;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use regex::{Captures, Regex};
use serde_json::{Map, Value};

/// A secret shorter than this is not searched for: `8080` or `admin` would black out half the log.
pub const SECRET_CHARS_MIN: usize = 6;

/// What stands in a secret's place.
pub const MASK: &str = "***";

/// Replaces secrets by [`MASK`]. Cheap to clone.
#[derive(Clone)]
pub struct Redactor(Arc<Rules>);

struct Rules {
    /// Whether the value of a key such as `password` is masked whatever it is.
    by_key: bool,
    /// Beginnings of token shapes in JSON, and escapes that could hide anything.
    hints: Vec<Regex>,
    /// The known secrets in JSON, and in text, if there are any.
    known_in_json: Option<Regex>,
    known: Option<Regex>,
    /// Token shapes in text.
    shapes: Regex,
}

/// What is masked beside known secrets. See [`Rules`].
struct Unknown {
    by_key: bool,
    hints: Vec<Regex>,
    shapes: Regex,
}

impl Redactor {
    /// Takes the secret values of the configuration. Those with fewer than [`SECRET_CHARS_MIN`]
    /// characters are left out.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let hints = patterns::hints().into();
        Self::with(secrets, Unknown { by_key: true, hints, shapes: patterns::shapes() })
    }

    /// Masks nothing but these secrets and Haft's own keys: for descriptions of servers and tools,
    /// where `Bearer TOKEN` or `postgres://user:password@host` is an example.
    pub fn of_known(secrets: impl IntoIterator<Item = String>) -> Self {
        let hints = vec![patterns::own_key_hints()];
        Self::with(secrets, Unknown { by_key: false, hints, shapes: patterns::own_keys() })
    }

    fn with(secrets: impl IntoIterator<Item = String>, unknown: Unknown) -> Self {
        let Unknown { by_key, hints, shapes } = unknown;
        let mut secrets: Vec<String> = secrets
            .into_iter()
            .filter(|secret| secret.chars().count() >= SECRET_CHARS_MIN)
            .collect();
        // The longest first: a secret that begins with another one is replaced as a whole.
        secrets.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self(Arc::new(Rules {
            by_key,
            hints,
            known_in_json: patterns::known_in_json(&secrets),
            known: patterns::known(&secrets),
            shapes,
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

    /// Redacts a text in place.
    pub(crate) fn mask(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }

    /// Redacts every string of a value in place. Keys stay.
    pub(crate) fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_value(item)),
            Value::Object(fields) => self.mask_fields(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The same for the values of an object.
    pub(crate) fn mask_fields(&self, fields: &mut Map<String, Value>) {
        fields.values_mut().for_each(|value| self.mask_value(value));
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
            || self.0.by_key && keys::any_secret(json)
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Redactor(***)")
    }
}

/// A text without what looks like a secret of a well-known service, and those secrets.
pub(crate) fn mask_shapes(text: &str) -> (Cow<'_, str>, Vec<String>) {
    static SHAPES: LazyLock<Regex> = LazyLock::new(patterns::shapes);
    let mut secrets = Vec::new();
    let masked = SHAPES.replace_all(text, |found: &Captures<'_>| {
        let around = |name| found.name(name).map_or(0, |part| part.len());
        let whole = &found[0];
        let secret = around("scheme") + around("user")..whole.len() - around("at");
        secrets.push(whole[secret].to_owned());
        mask_shape(found)
    });
    (masked, secrets)
}

/// Keeps what is no secret about a shape: `Bearer `, and the user and host of a URL.
fn mask_shape(found: &Captures<'_>) -> String {
    let group = |name| found.name(name).map_or("", |part| part.as_str());
    format!("{}{}{MASK}{}", group("scheme"), group("user"), group("at"))
}
