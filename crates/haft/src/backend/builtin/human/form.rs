//! A question as a form that MCP clients can show, and the way back from what was filled in.
//!
//! Their forms are flat: an object whose fields are texts, numbers, truth values and choices. What does not fit
//! into that is asked for as one field, with what the answer must look like in the question.

use serde_json::{Value, json};

use crate::inbox::Item;

/// The one field of a form that is not the asker's own.
const FIELD: &str = "answer";
/// What the schema of such a form may say beside its fields.
const FORM_WORDS: [&str; 7] =
    ["$schema", "type", "title", "description", "properties", "required", "additionalProperties"];
/// What kinds of fields there are.
const FIELD_TYPES: [&str; 4] = ["string", "number", "integer", "boolean"];
/// What a field may not say: it would be more than one value of one kind.
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

/// How a question is put to a client.
pub(super) struct Form {
    message: String,
    schema: Value,
    reading: Reading,
}

/// Where the answer is in what the client sends.
enum Reading {
    /// It is all of it.
    Whole,
    /// It is the one field.
    Field,
    /// It is the one field: a text, or JSON where a text does not fit.
    TextOrJson,
}

impl Form {
    pub(super) fn of(item: &Item) -> Self {
        let message = item.question.clone();
        if !item.options.is_empty() {
            let mut options: Vec<&str> = Vec::new();
            for option in &item.options {
                // The same choice twice is no choice, and no schema either.
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

    /// The parameters of `elicitation/create`. `problem` is what was wrong with the last answer.
    pub(super) fn params(&self, problem: Option<&str>) -> Value {
        let message = match problem {
            Some(problem) => format!("{problem}\n\n{}", self.message),
            None => self.message.clone(),
        };
        json!({ "message": message, "requestedSchema": self.schema })
    }

    /// What was answered: several where it can be read in several ways, of which the first that fits is meant.
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

/// A form of one field.
fn one(field: &Value) -> Value {
    json!({ "type": "object", "properties": { FIELD: field }, "required": [FIELD] })
}

/// Whether clients can show a schema as the form it is.
fn is_form(schema: &Value) -> bool {
    let Some(words) = schema.as_object() else { return false };
    let fields = schema["properties"].as_object();
    schema["type"] == "object"
        && words.keys().all(|word| FORM_WORDS.contains(&word.as_str()))
        && words.get("additionalProperties").is_none_or(Value::is_boolean)
        && fields.is_some_and(|fields| !fields.is_empty() && fields.values().all(is_field))
}

/// Whether it is that of one field.
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
