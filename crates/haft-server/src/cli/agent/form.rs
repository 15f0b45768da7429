//! A form: what a schema asks for, an object field by field or a single value.

use std::fmt::Write as _;

use haft_config::schema::Schema;
use haft_text::{printable, printable_block, printable_json};
use serde_json::{Map, Value};

/// More fields than a person fills in one by one.
const FIELDS_MAX: usize = 50;

/// The fields of a question.
#[derive(Debug, PartialEq)]
pub(super) struct Form {
    pub(super) fields: Vec<Field>,
    shape: Shape,
}

/// The structure that the fields form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Object,
    /// The only field is the answer itself.
    Value,
}

/// One value of a form.
#[derive(Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    title: Option<String>,
    description: Option<String>,
    kind: FieldKind,
    default: Option<Value>,
    is_required: bool,
    schema: Value,
}

#[derive(Debug, PartialEq)]
enum FieldKind {
    Text,
    Number,
    Integer,
    Boolean,
    OneOf(Vec<Choice>),
    SomeOf(Vec<Choice>),
}

#[derive(Debug, PartialEq)]
struct Choice {
    value: Value,
    title: String,
}

/// The result of reading one line for a field.
#[derive(Debug, PartialEq)]
pub(super) enum Entered {
    Value(Value),
    LeftOut,
    /// Nothing, where there has to be something.
    Refused,
    /// It does not fit: what is expected.
    Wrong(&'static str),
    /// It is of the right kind and does not fit all the same: why.
    Unfit(String),
}

impl Form {
    /// The form of a schema; none where it asks for anything but a plain value or an object of them.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        if schema.get("properties").is_none() {
            let answer = Field::of("your answer", schema, true)?;
            return Some(Self { fields: vec![answer], shape: Shape::Value });
        }
        let properties = schema["properties"].as_object()?;
        if schema["type"] != "object" || !(1..=FIELDS_MAX).contains(&properties.len()) {
            return None;
        }
        let is_required = |name: &str| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name))
        };
        let fields =
            properties.iter().map(|(name, schema)| Field::of(name, schema, is_required(name)));
        Some(Self { fields: fields.collect::<Option<_>>()?, shape: Shape::Object })
    }

    /// The hint before the form; empty if the form needs none.
    pub(super) fn how(&self) -> &'static str {
        match self.shape {
            Shape::Object => "field by field; Ctrl-D refuses",
            Shape::Value => "",
        }
    }

    /// The answer, once every field has been asked for.
    pub(super) fn answer(&self, mut filled: Map<String, Value>) -> Value {
        match (self.shape, self.fields.first()) {
            (Shape::Value, Some(only)) => filled.remove(&only.name).unwrap_or_default(),
            (Shape::Value | Shape::Object, _) => Value::Object(filled),
        }
    }
}

impl Field {
    fn of(name: &str, schema: &Value, is_required: bool) -> Option<Self> {
        Some(Self {
            name: name.to_owned(),
            title: schema["title"].as_str().map(ToOwned::to_owned),
            description: schema["description"].as_str().map(ToOwned::to_owned),
            kind: FieldKind::of(schema)?,
            default: schema.get("default").cloned(),
            is_required,
            schema: schema.clone(),
        })
    }

    /// The explanation before a field's prompt; empty if its name is enough.
    pub(super) fn explained(&self) -> String {
        let mut text = String::new();
        if let Some(description) = &self.description {
            let _ = writeln!(text, "  {}", printable_block(description));
        }
        if let FieldKind::OneOf(choices) | FieldKind::SomeOf(choices) = &self.kind {
            for (at, choice) in choices.iter().enumerate() {
                let _ = writeln!(text, "  {}. {}", at + 1, printable(&choice.title));
            }
        }
        text.truncate(text.trim_end().len());
        text
    }

    pub(super) fn prompt(&self) -> String {
        let label = self.title.as_deref().unwrap_or(&self.name);
        let wanted = match &self.kind {
            FieldKind::Text => "text",
            FieldKind::Number => "number",
            FieldKind::Integer => "whole number",
            FieldKind::Boolean => "yes or no",
            FieldKind::OneOf(_) => "one of these",
            FieldKind::SomeOf(_) => "some of these, with commas between",
        };
        let empty = match &self.default {
            Some(Value::String(text)) => format!("empty for {}", printable(text)),
            Some(value) => format!("empty for {}", printable_json(&value.to_string())),
            None if self.is_required => "required, empty to refuse".to_owned(),
            None => "empty to leave it out".to_owned(),
        };
        format!("{} ({wanted}; {empty}): ", printable(label))
    }

    /// Reads a line.
    pub(super) fn read(&self, line: &str) -> Entered {
        let line = line.trim();
        if line.is_empty() {
            return match &self.default {
                Some(default) => Entered::Value(default.clone()),
                None if self.is_required => Entered::Refused,
                None => Entered::LeftOut,
            };
        }
        let value = match &self.kind {
            FieldKind::Text => Ok(Value::from(line)),
            FieldKind::Number => number(line, Value::is_number).ok_or("a number"),
            FieldKind::Integer => {
                number(line, |it| it.is_i64() || it.is_u64()).ok_or("a whole number")
            }
            FieldKind::Boolean => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Value::Bool(true)),
                "n" | "no" | "false" => Ok(Value::Bool(false)),
                _ => Err("yes or no"),
            },
            FieldKind::OneOf(choices) => chosen(choices, line).ok_or("one of these, or its number"),
            FieldKind::SomeOf(choices) => {
                let each = line.split(',').map(|name| chosen(choices, name.trim()));
                each.collect::<Option<Value>>().ok_or("some of these, or their numbers")
            }
        };
        match value {
            Ok(value) => self.fit(value),
            Err(expected) => Entered::Wrong(expected),
        }
    }

    /// Valid values go into the form; otherwise the person gets the error while the field is still shown.
    fn fit(&self, value: Value) -> Entered {
        // Where it stands alone a schema may lack what it refers to; the whole answer is checked in any case.
        let Ok(schema) = Schema::compile(&self.schema) else { return Entered::Value(value) };
        match schema.check(&value) {
            Ok(()) => Entered::Value(value),
            Err(violations) => {
                let problems: Vec<String> = violations.into_iter().map(|it| it.problem).collect();
                Entered::Unfit(problems.join("; "))
            }
        }
    }
}

impl FieldKind {
    fn of(schema: &Value) -> Option<Self> {
        if let Some(choices) = Choice::all(schema) {
            return Some(Self::OneOf(choices));
        }
        match schema["type"].as_str()? {
            "array" => Choice::all(&schema["items"]).map(Self::SomeOf),
            "string" => Some(Self::Text),
            "number" => Some(Self::Number),
            "integer" => Some(Self::Integer),
            "boolean" => Some(Self::Boolean),
            _ => None,
        }
    }
}

impl Choice {
    /// The choices of a schema, in whatever way it has them.
    fn all(schema: &Value) -> Option<Vec<Self>> {
        if let Some(values) = schema["enum"].as_array() {
            let names = &schema["enumNames"];
            let choices = values.iter().enumerate();
            return Some(choices.map(|(at, it)| Self::new(it, names[at].as_str())).collect());
        }
        let values = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array())?;
        values.iter().map(|it| Some(Self::new(it.get("const")?, it["title"].as_str()))).collect()
    }

    fn new(value: &Value, title: Option<&str>) -> Self {
        let own = || value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        Self { value: value.clone(), title: title.map_or_else(own, ToOwned::to_owned) }
    }
}

fn number(line: &str, fits: impl Fn(&Value) -> bool) -> Option<Value> {
    serde_json::from_str(line).ok().filter(fits)
}

/// By its own name first: a choice may be called by the number of another.
fn chosen(choices: &[Choice], line: &str) -> Option<Value> {
    let is_named = |it: &&Choice| it.value.as_str() == Some(line) || it.title == line;
    let numbered = || choices.get(line.parse::<usize>().ok()?.checked_sub(1)?);
    let choice = choices.iter().find(is_named).or_else(numbered);
    choice.map(|choice| choice.value.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(schema: &Value, required: &[&str]) -> Field {
        let form = json!({"type": "object", "properties": {"it": schema}, "required": required});
        Form::of(&form).unwrap().fields.remove(0)
    }

    #[test]
    fn lines_become_values_of_the_requested_type() {
        let one = |schema: Value, line: &str| field(&schema, &[]).read(line);
        let value = Entered::Value;
        assert_eq!(one(json!({"type": "string"}), " 12 "), value(json!("12")));
        assert_eq!(one(json!({"type": "number"}), "1.5"), value(json!(1.5)));
        assert_eq!(one(json!({"type": "number"}), "much"), Entered::Wrong("a number"));
        assert_eq!(one(json!({"type": "integer"}), "12"), value(json!(12)));
        assert_eq!(one(json!({"type": "integer"}), "1.5"), Entered::Wrong("a whole number"));
        assert_eq!(one(json!({"type": "boolean"}), "Yes"), value(json!(true)));
        assert_eq!(one(json!({"type": "boolean"}), "maybe"), Entered::Wrong("yes or no"));
        let sizes = json!({"type": "string", "enum": ["2", "s"], "enumNames": ["Two", "Small"]});
        assert_eq!(one(sizes.clone(), "2"), value(json!("2")));
        assert_eq!(one(sizes.clone(), "1"), value(json!("2")));
        assert_eq!(one(sizes, "Small"), value(json!("s")));
        let titled = json!({"oneOf": [{"const": 1, "title": "One"}, {"const": 2}]});
        assert_eq!(one(titled.clone(), "2"), value(json!(2)));
        assert!(matches!(one(titled, "3"), Entered::Wrong(_)));
        let adult = json!({"type": "integer", "minimum": 18});
        let unfit = "the value is less than the minimum of 18".to_owned();
        assert_eq!(one(adult, "12"), Entered::Unfit(unfit));
        let colours = json!({"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["red", "blue", "green"]}});
        assert_eq!(one(colours.clone(), "red, 3"), value(json!(["red", "green"])));
        assert!(matches!(one(colours.clone(), "red, pink"), Entered::Wrong(_)));
        assert!(matches!(one(colours, "1, 2, 3"), Entered::Unfit(_)));
        let titled = json!({"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}]}});
        assert_eq!(one(titled, "Red"), value(json!(["r"])));
    }

    #[test]
    fn a_plain_value_is_requested_as_such() {
        let form = Form::of(&json!({"type": "integer", "maximum": 9})).unwrap();
        assert_eq!(
            form.fields[0].prompt(),
            "your answer (whole number; required, empty to refuse): "
        );
        assert_eq!(form.fields[0].read("7"), Entered::Value(json!(7)));
        let filled = Map::from_iter([(form.fields[0].name.clone(), json!(7))]);
        assert_eq!((form.how(), form.answer(filled)), ("", json!(7)));
    }

    #[test]
    fn an_empty_line_is_the_default_or_nothing() {
        let text = json!({"type": "string"});
        let known = json!({"type": "string", "default": "Ada"});
        assert_eq!(field(&text, &[]).read(" "), Entered::LeftOut);
        assert_eq!(field(&text, &["it"]).read(""), Entered::Refused);
        assert_eq!(field(&known, &["it"]).read(""), Entered::Value(json!("Ada")));
        assert_eq!(field(&known, &["it"]).prompt(), "it (text; empty for Ada): ");
    }

    #[test]
    fn an_unsupported_form_stays_json() {
        for schema in [
            json!({"type": "object"}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "object", "properties": {}}),
            json!({"type": "object", "properties": {"a": {"type": "object"}}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array"}}}),
            json!({"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}]}}}),
        ] {
            assert_eq!(Form::of(&schema), None, "{schema}");
        }
    }
}
