//! The canonical form of a definition: JSON without spaces, the keys of every object sorted by their bytes.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of the canonical form of a value, as `sha256:` and hexadecimal digits.
///
/// ```
/// let one = haft_config::lock::hash(&serde_json::json!({"a": 1, "b": [2]}));
/// assert_eq!(one, haft_config::lock::hash(&serde_json::json!({"b": [2], "a": 1})));
/// assert!(one.starts_with("sha256:") && one.len() == 7 + 64);
/// ```
pub fn hash(value: &Value) -> String {
    format!("sha256:{}", haft_text::hex(&Sha256::digest(canonical(value))))
}

fn canonical(value: &Value) -> String {
    sorted(value).to_string()
}

/// The same value with the keys of every object sorted.
pub(super) fn sorted(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> =
                fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(Map::from_iter(fields))
        }
    }
}
