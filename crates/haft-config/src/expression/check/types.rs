//! Sets of types, and the types that a JSON Schema allows.

use std::fmt;

use serde_json::Value;

/// Most references that are followed from one schema to another.
const REFERENCES_MAX: usize = 16;
/// Keywords that make the properties or the type depend on more than the schema itself.
const OPEN_KEYWORDS: [&str; 7] =
    ["allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "$dynamicRef"];

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const BOOL: Self = Self(1);
    pub(super) const NUMBER: Self = Self(2);
    pub(super) const STRING: Self = Self(4);
    pub(super) const LIST: Self = Self(8);
    pub(super) const MAP: Self = Self(16);
    pub(super) const NULL: Self = Self(32);
    pub(super) const ANY: Self = Self(63);

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The types that both have; any type if they have none in common, which was reported already.
    pub(super) fn and(self, other: Self) -> Self {
        if self.meets(other) { Self(self.0 & other.0) } else { Self::ANY }
    }

    /// Returns true if a value may be of both.
    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            (Self::BOOL, "true or false"),
            (Self::NUMBER, "a number"),
            (Self::STRING, "a string"),
            (Self::LIST, "a list"),
            (Self::MAP, "an object"),
            (Self::NULL, "null"),
        ];
        let words: Vec<&str> =
            words.iter().filter(|(types, _)| self.meets(*types)).map(|(_, word)| *word).collect();
        f.write_str(&words.join(" or "))
    }
}

/// The type of an expression, and the schema of its value if it is an argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct Typed<'e> {
    pub(super) types: Types,
    pub(super) schema: Option<&'e Value>,
    /// The types of the items of a list literal.
    pub(super) items: Option<Types>,
}

impl Typed<'_> {
    pub(super) const ANY: Self = Self { types: Types::ANY, schema: None, items: None };

    pub(super) fn of(types: Types) -> Self {
        Self { types, schema: None, items: None }
    }
}

/// A property of an object, by its schema.
pub(super) enum Property<'e> {
    /// The schema has it.
    Known { schema: &'e Value, is_required: bool },
    /// The schema does not say.
    Free,
    /// The schema has others.
    Unknown { known: Vec<&'e str> },
}

pub(super) fn property<'e>(root: Option<&'e Value>, schema: &'e Value, name: &str) -> Property<'e> {
    let Some(schema) = resolved(root, schema) else { return Property::Free };
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(found) = properties.and_then(|properties| properties.get(name)) {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)));
        return Property::Known { schema: found, is_required };
    }
    let is_open = OPEN_KEYWORDS.iter().any(|keyword| schema.get(keyword).is_some())
        || matches!(schema.get("additionalProperties"), Some(Value::Bool(true) | Value::Object(_)));
    match (properties, schema.get("additionalProperties")) {
        _ if is_open => Property::Free,
        // A schema without properties describes nothing.
        (None, None) => Property::Free,
        (properties, _) => {
            let known = properties.map(|it| it.keys().map(String::as_str).collect());
            Property::Unknown { known: known.unwrap_or_default() }
        }
    }
}

/// The items of a list.
pub(super) fn item<'e>(root: Option<&'e Value>, list: Typed<'e>) -> Typed<'e> {
    if let Some(types) = list.items {
        return Typed::of(types);
    }
    let schema = list.schema.and_then(|schema| resolved(root, schema));
    match schema.and_then(|schema| schema.get("items")) {
        Some(items) if list.types == Types::LIST => of_schema(root, items),
        Some(_) | None => Typed::ANY,
    }
}

pub(super) fn of_schema<'e>(root: Option<&'e Value>, schema: &'e Value) -> Typed<'e> {
    let Some(schema) = resolved(root, schema) else { return Typed::ANY };
    let types = match (schema.get("type"), schema.get("enum"), schema.get("const")) {
        (Some(Value::String(word)), _, _) => word_types(word),
        (Some(Value::Array(words)), _, _) => words
            .iter()
            .map(|word| word.as_str().map_or(Types::ANY, word_types))
            .reduce(Types::or)
            .unwrap_or(Types::ANY),
        (None, Some(Value::Array(values)), _) => {
            values.iter().map(value_types).reduce(Types::or).unwrap_or(Types::ANY)
        }
        (None, _, Some(value)) => value_types(value),
        _ => Types::ANY,
    };
    Typed { types, schema: Some(schema), items: None }
}

fn word_types(word: &str) -> Types {
    match word {
        "boolean" => Types::BOOL,
        "number" | "integer" => Types::NUMBER,
        "string" => Types::STRING,
        "array" => Types::LIST,
        "object" => Types::MAP,
        "null" => Types::NULL,
        _ => Types::ANY,
    }
}

fn value_types(value: &Value) -> Types {
    match value {
        Value::Null => Types::NULL,
        Value::Bool(_) => Types::BOOL,
        Value::Number(_) => Types::NUMBER,
        Value::String(_) => Types::STRING,
        Value::Array(_) => Types::LIST,
        Value::Object(_) => Types::MAP,
    }
}

/// Follows references inside the document; `None` if the schema is not known here.
fn resolved<'e>(root: Option<&'e Value>, schema: &'e Value) -> Option<&'e Value> {
    let mut schema = schema;
    for _ in 0..REFERENCES_MAX {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            return schema.is_object().then_some(schema);
        };
        schema = root?.pointer(reference.strip_prefix('#')?)?;
    }
    None
}
