//! Arguments as text and as a parsed value, from one parse: the policy checks exactly what the tool
//! receives.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use haft_bounds::effort;
use haft_bounds::json::{Budget, NODES_MAX};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Number, Value};

/// Deepest nesting of arguments.
pub const DEPTH_MAX: usize = 64;
/// Maximum size of arguments.
pub const ARGUMENTS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The arguments of a call: one JSON object.
#[derive(Debug, Clone)]
pub struct Arguments {
    raw: Arc<RawValue>,
    value: Value,
}

/// Arguments as they came. Those that are JSON already are not read again to find that out.
#[derive(Debug, Clone)]
pub(crate) enum ArgumentText {
    /// A part of a message that was read.
    Json(Arc<RawValue>),
    /// Anything else, which may not be JSON.
    Text(String),
}

impl ArgumentText {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Json(json) => json.get(),
            Self::Text(text) => text,
        }
    }

    /// The arguments as JSON, for the log: a string where they are not JSON.
    pub(crate) fn as_json(&self) -> Cow<'_, RawValue> {
        let text = match self {
            Self::Json(json) => return Cow::Borrowed(json),
            Self::Text(text) => text,
        };
        let trimmed = text.trim();
        match serde_json::from_str(if trimmed.is_empty() { "{}" } else { trimmed }) {
            Ok(json) => Cow::Borrowed(json),
            Err(_) => to_raw_value(text).map_or(Cow::Borrowed(RawValue::NULL), Cow::Owned),
        }
    }
}

impl Arguments {
    /// Parses a JSON object within the default limit. Rejects repeated keys, because two parsers
    /// may pick different ones.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_within(text, NODES_MAX)
    }

    /// Parses a JSON object with at most `nodes_max` values and keys.
    pub fn parse_within(text: &str, nodes_max: usize) -> Result<Self, String> {
        let text = if text.trim().is_empty() { "{}" } else { text.trim() };
        let value = read(text, nodes_max)?;
        let raw = RawValue::from_string(text.to_owned()).map_err(|error| error.to_string())?;
        Ok(Self { raw: raw.into(), value })
    }

    /// Reads the arguments of a call, as [`parse_within`](Self::parse_within) does.
    pub(crate) fn of_call(text: &ArgumentText, nodes_max: usize) -> Result<Self, String> {
        match text {
            ArgumentText::Json(json) => {
                let value = read(json.get(), nodes_max)?;
                Ok(Self { raw: Arc::clone(json), value })
            }
            ArgumentText::Text(text) => Self::parse_within(text, nodes_max),
        }
    }

    /// Returns these arguments after others: `text` is their JSON without braces, `values` the same parsed.
    /// Neither may have a name of these arguments.
    pub(crate) fn with(&self, text: &str, values: &Map<String, Value>) -> Self {
        let own = self.raw.get().trim();
        let inner = own.strip_prefix('{').and_then(|own| own.strip_suffix('}')).unwrap_or_default();
        let separator = if inner.trim().is_empty() { "" } else { "," };
        let joined = format!("{{{text}{separator}{inner}}}");
        let mut all = values.clone();
        if let Value::Object(own) = &self.value {
            all.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        let value = Value::Object(all);
        let raw = RawValue::from_string(joined).or_else(|_| to_raw_value(&value));
        let raw = raw.map_or_else(|_| Arc::clone(&self.raw), Arc::from);
        Self { raw, value }
    }

    /// The text as it came: key order and large numbers are the caller's.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// The parsed value.
    pub fn value(&self) -> &Value {
        &self.value
    }
}

/// Reads a JSON object.
fn read(text: &str, nodes_max: usize) -> Result<Value, String> {
    if text.len() > ARGUMENTS_BYTES_MAX {
        return Err(format!("they have more than {ARGUMENTS_BYTES_MAX} bytes"));
    }
    let budget = Budget::nodes(nodes_max);
    budget.check(text.as_bytes()).map_err(|excess| format!("they have {excess}"))?;
    effort::parsing(text.as_bytes());
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict { depth: 0 }.deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    if !value.is_object() {
        return Err("they are not a JSON object".into());
    }
    Ok(value)
}

/// Any JSON value without repeated keys, at most [`DEPTH_MAX`] deep.
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth > DEPTH_MAX {
            return Err(de::Error::custom(format!("nested deeper than {DEPTH_MAX} levels")));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self { depth: self.depth + 1 })? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(Self { depth: self.depth + 1 })?;
            if map.contains_key(&key) {
                return Err(de::Error::custom(format!("the key `{key}` is there twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_their_text() {
        let text = r#"{"b": 123456789012345678901234567890, "a": 1.10}"#;
        let arguments = Arguments::parse(text).unwrap();
        assert_eq!(arguments.raw().get(), text);
        assert_eq!(arguments.value()["a"], 1.1);
        assert_eq!(Arguments::parse("  ").unwrap().raw().get(), "{}");
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for (text, problem) in [
            (r#"{"a": 1, "a": 2}"#, "the key `a` is there twice"),
            (r#"{"x": {"a": 1, "\u0061": 2}}"#, "the key `a` is there twice"),
            ("[1]", "not a JSON object"),
            ("{", "EOF"),
            ("{} {}", "trailing"),
            ("{\"a\": NaN}", "expected"),
        ] {
            let error = Arguments::parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
        let wide = format!("{{\"a\":[{}0]}}", "0,".repeat(NODES_MAX));
        let problem = "they have more than 100000 values and keys";
        assert_eq!(Arguments::parse(&wide).unwrap_err(), problem);
        assert!(Arguments::parse_within(&wide, 2 * NODES_MAX).is_ok());
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(80), "]".repeat(80));
        assert!(Arguments::parse(&deep).unwrap_err().contains("deeper than 64"));
    }
}
