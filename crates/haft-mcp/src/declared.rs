//! A peer's description of itself, as far as it is kept. It stays in memory as long as the session or connection, so
//! every part of it is bounded.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The longest description of one capability. Beyond it, the capability counts as declared without details.
const CAPABILITY_BYTES_MAX: usize = 1024;
/// The longest name or version of a peer.
const NAME_BYTES_MAX: usize = 256;

/// Returns the capabilities of these names, or nothing if `declared` is not an object.
pub(crate) fn capabilities(declared: &RawValue, names: &[&str]) -> Option<Value> {
    let declared: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(declared.get()).ok()?;
    let kept = names.iter().filter_map(|name| {
        let value = declared.get(*name)?;
        Some(((*name).to_owned(), bounded(value)))
    });
    Some(Value::Object(kept.collect::<Map<_, _>>()))
}

/// Returns the extensions of these names among the capabilities, or nothing if none is declared.
pub(crate) fn extensions(declared: &RawValue, names: &[&str]) -> Option<Value> {
    let declared: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(declared.get()).ok()?;
    let extensions = capabilities(declared.get("extensions")?, names)?;
    extensions.as_object().is_some_and(|it| !it.is_empty()).then_some(extensions)
}

fn bounded(capability: &RawValue) -> Value {
    let text = capability.get();
    let whole = (text.len() <= CAPABILITY_BYTES_MAX).then(|| serde_json::from_str(text).ok());
    whole.flatten().unwrap_or_else(|| Value::Object(Map::new()))
}

/// Returns a name that a peer gives itself, cut to the length that is kept.
pub(crate) fn name(name: &str) -> String {
    cut(name, NAME_BYTES_MAX)
}

/// Returns the beginning of a string.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn only_what_is_named_is_kept() {
        let declared = raw(r#"{"roots": {"listChanged": true}, "experimental": {"a": [1]}}"#);
        let kept = capabilities(&declared, &["sampling", "roots"]);
        assert_eq!(kept, Some(json!({"roots": {"listChanged": true}})));
        assert_eq!(capabilities(&raw("[{}]"), &["roots"]), None);
        assert_eq!(capabilities(&raw("7"), &["roots"]), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let large = format!(r#"{{"sampling": {{"x": [{}0]}}, "roots": {{}}}}"#, "0,".repeat(1000));
        let kept = capabilities(&raw(&large), &["sampling", "roots"]);
        assert_eq!(kept, Some(json!({"sampling": {}, "roots": {}})));
        assert_eq!(name(&"\u{e4}".repeat(1000)).len(), NAME_BYTES_MAX);
    }
}
