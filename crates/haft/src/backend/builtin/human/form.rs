//! Converts a question to an MCP elicitation form, and the filled form to an answer.
//!
//! Forms are flat objects of strings, numbers, booleans and choices. Other schemas become one
//! field, and the question describes the expected answer.

use serde_json::{Value, json};

use crate::human_input::InboxItem;

/// The single field of a generated form.
const FIELD: &str = "answer";
/// Keywords that a form schema may have besides its fields.
const FORM_WORDS: [&str; 7] =
    ["$schema", "type", "title", "description", "properties", "required", "additionalProperties"];
/// The types of form fields.
const FIELD_TYPES: [&str; 4] = ["string", "number", "integer", "boolean"];
/// Keywords that a field may not have, because the value would not be flat.
const NOT_FLAT: [&str; 12] = [
    "$ref",
    "allOf",
    "anyOf",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "patternProperties",
    "prefixItems",
    "properties",
    "then",
];

/// A question in the form for a client.
pub(super) struct Form {
    message: String,
    schema: Value,
    reading: Reading,
}

/// The location of the answer in the client's response.
enum Reading {
    /// The whole object.
    Whole,
    /// The single field.
    Field,
    /// The single field: a string, or JSON if a string does not match.
    TextOrJson,
}

impl Form {
    pub(super) fn of(item: &InboxItem) -> Self {
        let message = item.question.clone();
        if !item.options.is_empty() {
            let mut options: Vec<&str> = Vec::new();
            for option in &item.options {
                // Duplicate choices would make the schema invalid.
                if !options.contains(&option.as_str()) {
                    options.push(option);
                }
            }
            let field = json!({ "type": "string", "title": "Answer", "enum": options });
            return Self { message, schema: one(&field), reading: Reading::Field };
        }
        match &item.schema {
            None => {
                let field = json!({ "type": "string", "title": "Answer" });
                Self { message, schema: one(&field), reading: Reading::Field }
            }
            Some(schema) if is_form(schema) => {
                Self { message, schema: schema.clone(), reading: Reading::Whole }
            }
            Some(schema) if is_field(schema) => {
                Self { message, schema: one(schema), reading: Reading::Field }
            }
            Some(schema) => {
                let message =
                    format!("{message}\n\nThe answer has to fit this JSON Schema: {schema}");
                let field = json!({ "type": "string", "title": "Answer, as JSON" });
                Self { message, schema: one(&field), reading: Reading::TextOrJson }
            }
        }
    }

    /// The parameters of `elicitation/create`. `problem` is the error of the last answer.
    pub(super) fn params(&self, problem: Option<&str>) -> Value {
        let message = match problem {
            Some(problem) => format!("{problem}\n\n{}", self.message),
            None => self.message.clone(),
        };
        json!({ "message": message, "requestedSchema": self.schema })
    }

    /// The possible readings of a response; the first valid one counts.
    pub(super) fn read(&self, content: Value) -> Vec<Value> {
        let field = |mut content: Value| content.get_mut(FIELD).map(Value::take);
        match self.reading {
            Reading::Whole => vec![content],
            Reading::Field => field(content).into_iter().collect(),
            Reading::TextOrJson => {
                let Some(given) = field(content) else { return Vec::new() };
                let json = given.as_str().and_then(|text| serde_json::from_str(text).ok());
                std::iter::once(given).chain(json).collect()
            }
        }
    }
}

/// Creates a form with one field.
fn one(field: &Value) -> Value {
    json!({ "type": "object", "properties": { FIELD: field }, "required": [FIELD] })
}

/// Returns true if clients can show the schema as a form.
fn is_form(schema: &Value) -> bool {
    let Some(words) = schema.as_object() else { return false };
    let fields = schema["properties"].as_object();
    schema["type"] == "object"
        && words.keys().all(|word| FORM_WORDS.contains(&word.as_str()))
        && words.get("additionalProperties").is_none_or(Value::is_boolean)
        && fields.is_some_and(|fields| !fields.is_empty() && fields.values().all(is_field))
}

/// Returns true if the schema fits one field.
fn is_field(schema: &Value) -> bool {
    let kind = schema["type"].as_str();
    kind.is_some_and(|kind| FIELD_TYPES.contains(&kind))
        && NOT_FLAT.iter().all(|word| schema.get(word).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_flat_objects_are_forms() {
        let flat = |field: Value| json!({ "type": "object", "properties": { "a": field } });
        let is = |schema: &Value| is_form(schema);
        assert!(is(&flat(json!({ "type": "string", "format": "email" }))));
        assert!(is(&flat(json!({ "type": "string", "enum": ["x"] }))));
        assert!(is(&flat(json!({ "type": "integer", "minimum": 1 }))));
        for other in [
            json!(true),
            json!({ "type": "object" }),
            json!({ "type": "object", "properties": {} }),
            json!({ "type": ["object", "null"], "properties": { "a": { "type": "string" } } }),
            json!({ "$ref": "#/$defs/a", "type": "object" }),
            flat(json!({ "type": "array", "items": { "type": "string" } })),
            flat(json!({ "type": "object", "properties": {} })),
            flat(json!({ "type": ["string", "null"] })),
            flat(json!({ "type": "string", "anyOf": [{ "minLength": 1 }] })),
            flat(json!({})),
        ] {
            assert!(!is(&other), "{other}");
        }
    }
}
