//! The parameters of a request, put together as text: what is JSON already stays as it is.

use std::fmt::Write as _;

use serde_json::value::RawValue;

use crate::wire::push_quoted;

/// Fields of a JSON object, without its braces.
#[derive(Debug, Clone, Default)]
pub(super) struct Params(String);

impl Params {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// No fields yet, and room for `bytes` bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(String::with_capacity(bytes))
    }

    /// The fields of an object.
    pub(super) fn from_object(object: &RawValue) -> Self {
        let text = object.get().trim();
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        Self(inner.unwrap_or_default().trim().to_owned())
    }

    /// Adds a field that is JSON text.
    pub(super) fn raw(mut self, key: &str, json: &str) -> Self {
        self.0.reserve(key.len() + json.len() + 4);
        self.push_key(key);
        self.0.push_str(json);
        self
    }

    /// Adds a field that is a string.
    pub(super) fn text(mut self, key: &str, text: &str) -> Self {
        self.push_key(key);
        push_quoted(&mut self.0, text);
        self
    }

    /// About how many bytes the whole object has.
    pub(super) fn bytes(&self, meta: &str) -> usize {
        self.0.len() + meta.len() + 64
    }

    /// Appends the whole object. `meta` holds the fields of `_meta` that every request carries.
    pub(super) fn push_json(&self, json: &mut String, meta: &str, progress_token: Option<u64>) {
        json.push('{');
        json.push_str(&self.0);
        if !meta.is_empty() || progress_token.is_some() {
            json.push_str(if self.0.is_empty() { r#""_meta":{"# } else { r#","_meta":{"# });
            json.push_str(meta);
            if let Some(token) = progress_token {
                let comma = if meta.is_empty() { "" } else { "," };
                // Writing to a string cannot fail.
                let _ = write!(json, r#"{comma}"progressToken":{token}"#);
            }
            json.push('}');
        }
        json.push('}');
    }

    /// The whole object.
    pub(super) fn json(&self, meta: &str, progress_token: Option<u64>) -> String {
        let mut json = String::with_capacity(self.bytes(meta));
        self.push_json(&mut json, meta, progress_token);
        json
    }

    fn push_key(&mut self, key: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        // Keys are names of the protocol, which need no escapes.
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_put_together() {
        let params = Params::new().text("name", "a\"b").raw("arguments", r#"{"b":1,"a":2}"#);
        assert_eq!(params.json("", None), r#"{"name":"a\"b","arguments":{"b":1,"a":2}}"#);
        assert_eq!(Params::new().json("", None), "{}");
        assert_eq!(Params::new().json("", Some(7)), r#"{"_meta":{"progressToken":7}}"#);
        assert_eq!(
            params.json(r#""v":"1""#, Some(7)),
            r#"{"name":"a\"b","arguments":{"b":1,"a":2},"_meta":{"v":"1","progressToken":7}}"#
        );
        let object: Box<RawValue> = serde_json::from_str(r#"{ "uri": "a" }"#).unwrap();
        assert_eq!(Params::from_object(&object).json("", None), r#"{"uri": "a"}"#);
    }
}
