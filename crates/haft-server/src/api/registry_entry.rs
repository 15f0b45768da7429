//! An entry of the registry as an editor needs it.

use haft::record::Redactor;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::serve::Caller;

/// Returns the entry for an admin. An entry with a literal secret is left out: shown, it would leak; masked, an
/// editor would write the mask back.
pub(super) fn for_editor(entry: &RawValue, caller: &Caller) -> Option<Value> {
    if !caller.is_admin() {
        return None;
    }
    let entry: Value = serde_json::from_str(entry.get()).ok()?;
    let redactor = Redactor::new([]);
    (!has_literal_secret(&redactor, "value", &entry)).then_some(entry)
}

fn has_literal_secret(redactor: &Redactor, key: &str, value: &Value) -> bool {
    match value {
        // A reference such as `${TOKEN}` is not the secret itself.
        Value::String(text) if text.contains("${") => false,
        Value::String(text) => {
            let (key, value) = match text.split_once('=') {
                Some((option, value)) if option.starts_with('-') => {
                    (option.trim_start_matches('-'), value)
                }
                _ => (key, text.as_str()),
            };
            let pair = serde_json::json!({ key: value }).to_string();
            redactor.json(&pair) != pair
        }
        Value::Array(items) => items.iter().enumerate().any(|(at, item)| {
            // The word after an option is its value: `--token abc`.
            let before = at.checked_sub(1).and_then(|at| items[at].as_str());
            let option =
                before.filter(|it| it.starts_with('-')).map(|it| it.trim_start_matches('-'));
            has_literal_secret(redactor, option.unwrap_or(key), item)
        }),
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| has_literal_secret(redactor, key, value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
