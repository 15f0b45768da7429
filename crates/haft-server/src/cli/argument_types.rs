//! The types that a JSON Schema gives an argument, and words of the command line as values of them.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// Nested references and alternatives that are followed.
const DEPTH_MAX: usize = 8;

/// The types of one argument. None are known if the schema does not restrict them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Types {
    names: Vec<String>,
    /// The types of a list's items.
    items: Option<Box<Types>>,
}

impl Types {
    /// The types of an argument of a tool.
    pub(super) fn of_property(schema: Option<&Value>, key: &str) -> Self {
        let mut types = Self::default();
        if let Some(schema) = schema {
            types.add(schema, &schema["properties"][key], DEPTH_MAX);
        }
        types
    }

    fn add(&mut self, root: &Value, schema: &Value, depth: usize) {
        if depth == 0 {
            return;
        }
        let pointer = schema["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
        if let Some(target) = pointer.and_then(|pointer| root.pointer(pointer)) {
            self.add(root, target, depth - 1);
        }
        match &schema["type"] {
            Value::String(name) => self.name(name),
            Value::Array(names) => {
                names.iter().filter_map(Value::as_str).for_each(|name| self.name(name));
            }
            _ => {}
        }
        if schema["type"].is_null() {
            let values = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
            values.for_each(|value| self.name(type_of(value)));
        }
        for key in ["anyOf", "oneOf"] {
            for part in schema[key].as_array().into_iter().flatten() {
                self.add(root, part, depth - 1);
            }
        }
        if schema["items"].is_object() {
            let items = self.items.get_or_insert_default();
            items.add(root, &schema["items"], depth - 1);
        }
    }

    fn name(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Returns true if the argument is a list, and not a string or a list.
    pub(super) fn is_list(&self) -> bool {
        self.has("array") && !self.has("string")
    }

    /// The values of one word: one, or the items of a list. A word that does not fit becomes what it would be without
    /// a schema; the tool's check reports it.
    pub(super) fn values(&self, word: &str) -> serde_json::Result<Vec<Box<RawValue>>> {
        if !self.is_list() {
            return Ok(vec![self.value(word)?]);
        }
        let json = serde_json::from_str::<Vec<Box<RawValue>>>(word);
        if let Ok(items) = json {
            return Ok(items);
        }
        if word.is_empty() {
            return Ok(Vec::new());
        }
        let items = self.items.as_deref().cloned().unwrap_or_default();
        word.split(',').map(|item| items.value(item.trim())).collect()
    }

    /// The JSON of an argument's values.
    pub(super) fn join(&self, values: &[Box<RawValue>]) -> String {
        match values {
            // `key:=[1, 2]` is the list itself.
            [only] if !self.is_list() || only.get().trim_start().starts_with('[') => {
                only.get().to_owned()
            }
            values => {
                let texts: Vec<&str> = values.iter().map(|value| value.get()).collect();
                format!("[{}]", texts.join(","))
            }
        }
    }

    fn value(&self, word: &str) -> serde_json::Result<Box<RawValue>> {
        let json = serde_json::from_str::<Box<RawValue>>(word).ok();
        match json.filter(|json| self.names.is_empty() || self.takes(json.get())) {
            Some(json) => Ok(json),
            None if self.names.is_empty() || self.has("string") => to_raw_value(word),
            None => serde_json::from_str(word).or_else(|_| to_raw_value(word)),
        }
    }

    /// Returns true if a word is meant as JSON and not as a string.
    fn takes(&self, json: &str) -> bool {
        let kind = serde_json::from_str(json).map_or("string", |value: Value| type_of(&value));
        match kind {
            // Quotes belong to the string where only a string fits.
            "string" => !self.has("string"),
            "integer" => self.has("integer") || self.has("number"),
            kind => self.has(kind),
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `key=value` words for the required arguments of a schema.
pub(super) fn example_words(schema: &Value) -> Vec<String> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words = required.map(|key| {
        let property = &schema["properties"][key];
        let given = [&property["examples"][0], &property["default"], &property["enum"][0]];
        let types = Types::of_property(Some(schema), key);
        let value = given.into_iter().find(|value| !value.is_null()).cloned();
        let value = value.unwrap_or_else(|| types.sample());
        match value {
            Value::String(text) if is_plain(&text) => format!("{key}={text}"),
            Value::String(text) => format!("{key}='{}'", text.replace('\'', "'\\''")),
            Value::Array(_) if types.is_list() => {
                let items = types.items.as_deref().cloned().unwrap_or_default().sample();
                let item = items.as_str().map_or_else(|| items.to_string(), ToOwned::to_owned);
                format!("{key}={item},{item}")
            }
            value @ (Value::Array(_) | Value::Object(_)) => format!("{key}:='{value}'"),
            value => format!("{key}={value}"),
        }
    });
    words.collect()
}

impl Types {
    fn sample(&self) -> Value {
        match self.names.first().map(String::as_str) {
            Some("integer") => json!(1),
            Some("number") => json!(1.5),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({"key": "value"}),
            _ => json!("text"),
        }
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_alphanumeric() || "._-/:@+".contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(schema: &Value, word: &str) -> String {
        let schema = json!({"properties": {"it": schema}, "$defs": {"Name": {"type": "string"}}});
        let types = Types::of_property(Some(&schema), "it");
        types.join(&types.values(word).unwrap())
    }

    #[test]
    fn a_word_becomes_a_value_of_the_schemas_type() {
        let text = || json!({"type": "string"});
        assert_eq!(one(&text(), "123"), r#""123""#);
        assert_eq!(one(&text(), "true"), r#""true""#);
        assert_eq!(one(&json!({"$ref": "#/$defs/Name"}), "123"), r#""123""#);
        assert_eq!(one(&json!({"anyOf": [text(), {"type": "null"}]}), "12"), r#""12""#);
        assert_eq!(one(&json!({"anyOf": [text(), {"type": "null"}]}), "null"), "null");
        assert_eq!(one(&json!({"type": ["string", "integer"]}), "12"), "12");
        assert_eq!(one(&json!({"type": "integer"}), "3"), "3");
        assert_eq!(one(&json!({"type": "integer"}), "three"), r#""three""#);
        assert_eq!(one(&json!({"type": "number"}), "12345678901234567890"), "12345678901234567890");
        assert_eq!(one(&json!({"enum": ["1", "2"]}), "1"), r#""1""#);
        assert_eq!(one(&json!({}), "123"), "123");
        assert_eq!(one(&json!({}), "Seoul"), r#""Seoul""#);
    }

    #[test]
    fn lists_take_words_with_commas_and_json() {
        let texts = || json!({"type": "array", "items": {"type": "string"}});
        assert_eq!(one(&texts(), "a,b"), r#"["a","b"]"#);
        assert_eq!(one(&texts(), "1, 2"), r#"["1","2"]"#);
        assert_eq!(one(&texts(), r#"["a", "b,c"]"#), r#"["a","b,c"]"#);
        assert_eq!(one(&texts(), ""), "[]");
        assert_eq!(one(&json!({"type": "array", "items": {"type": "integer"}}), "1,2"), "[1,2]");
    }

    #[test]
    fn an_example_has_every_required_argument() {
        let schema = json!({
            "properties": {
                "city": {"type": "string", "examples": ["New York"]}, "days": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}}, "more": {"type": "string"},
            },
            "required": ["city", "days", "tags"],
        });
        assert_eq!(example_words(&schema), ["city='New York'", "days=1", "tags=text,text"]);
    }
}
