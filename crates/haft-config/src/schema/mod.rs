//! JSON Schema 2020-12, compiled once per tool: offline, with a regex engine that is linear in time.

mod bounded;
mod budget;
mod recursion;
mod shared;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of violations reported for one value; the caller needs the first ones.
const VIOLATIONS_MAX: usize = 20;
/// Largest schema that is compiled.
const SCHEMA_BYTES_MAX: usize = 1024 * 1024;

/// Longest list of allowed values that a message repeats.
const OPTIONS_CHARS_MAX: usize = 300;
/// Largest automaton of one pattern: a larger one is linear in the text but slow per character.
const PATTERN_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Limit for all patterns of a schema together, in size and in number.
const ALL_PATTERNS_BYTES_MAX: usize = 64 * 1024 * 1024;
const PATTERNS_MAX: usize = 256;

pub use bounded::CHECK_TIME_MAX;
pub use budget::{SERVER_PATTERNS_MAX, SERVER_SCHEMAS_BYTES_MAX, SchemaBudget};

/// One place where a value differs from its schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// JSON pointer to the place; the empty string is the whole value.
    pub pointer: String,
    /// The problem at that place.
    pub problem: String,
}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    /// Maximum nesting depth of a value, if the schema is recursive.
    depth_max: Option<usize>,
    has_patterns: bool,
    /// Number of subschemas, each of which may visit every part of a value.
    parts: usize,
}

impl Schema {
    /// Compiles a schema. Rejects references to other documents and fetches nothing.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        Self::compile_within(schema, PATTERN_BYTES_MAX)
    }

    /// Like [`compile`](Self::compile), with a limit for the automaton of each pattern.
    fn compile_within(schema: &Value, pattern_bytes_max: usize) -> Result<Self, String> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err("it is not an object".into());
        }
        let bytes = schema.to_string().len();
        if bytes > SCHEMA_BYTES_MAX {
            return Err(format!("it has {bytes} bytes, more than {SCHEMA_BYTES_MAX}"));
        }
        if let Some(reference) = remote_reference(schema) {
            return Err(format!("a `$ref` leads to another document: `{reference}`"));
        }
        if recursion::explodes(schema) {
            return Err("its references lead to more parts than can be checked".to_owned());
        }
        let patterns = patterns(schema);
        if patterns > PATTERNS_MAX {
            return Err(format!("it has {patterns} patterns, more than {PATTERNS_MAX}"));
        }
        let pattern_bytes = pattern_bytes_max.min(ALL_PATTERNS_BYTES_MAX / patterns.max(1));
        jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(PatternOptions::regex().size_limit(pattern_bytes))
            .offline()
            .build(schema)
            .map(|validator| Self {
                validator,
                depth_max: recursion::depth_max(schema),
                has_patterns: patterns > 0,
                parts: parts(schema),
            })
            .map_err(|error| match (error.kind(), error.instance_path().as_str()) {
                (ValidationErrorKind::Referencing(_), _) => {
                    format!("a `$ref` cannot be resolved: {error}")
                }
                (ValidationErrorKind::Format { format }, path) if format == "regex" => format!(
                    "at `{path}`: `{}` is not a regular expression without look-around and \
                     back-references, the kind that takes linear time",
                    error.instance().as_str().unwrap_or_default()
                ),
                (_, "") => error.to_string(),
                (_, path) => format!("at `{path}`: {error}"),
            })
    }

    /// Returns every difference between a value and the schema.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let violations = self.validator.iter_errors(value).take(VIOLATIONS_MAX);
        Err(violations.map(|error| violation(&error)).collect())
    }

    /// Returns true if a check of `bytes` of text may take very long.
    fn is_hard(&self, bytes: usize) -> bool {
        self.depth_max.is_some() || (self.has_patterns && bytes > bounded::PATTERN_BYTES_MAX)
    }

    /// Returns true if a check may take long only because of the size.
    fn is_large(&self, bytes: usize) -> bool {
        self.parts.saturating_mul(bytes) > bounded::WORK_MAX
    }

    fn check_depth(&self, value: &Value) -> Result<(), Vec<Violation>> {
        match self.depth_max {
            Some(depth_max) if recursion::depth(value) > depth_max => Err(vec![Violation {
                pointer: String::new(),
                problem: format!(
                    "it is nested deeper than {depth_max} levels, the most that a schema which \
                     refers to itself this often is checked for"
                ),
            }]),
            _ => Ok(()),
        }
    }
}

fn violation(error: &ValidationError<'_>) -> Violation {
    Violation { pointer: error.instance_path().to_string(), problem: problem(error) }
}

/// Describes the common violations in plain words. Never quotes the value, which may be a secret.
fn problem(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("`{}` is missing", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let names: Vec<_> = unexpected.iter().map(|name| format!("`{name}`")).collect();
            format!("{} is not expected", names.join(", "))
        }
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(kind) => kind.to_string(),
                TypeKind::Multiple(kinds) => {
                    kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or ")
                }
            };
            format!("expected {expected}, found {}", kind_of(error.instance()))
        }
        ValidationErrorKind::Enum { options } => {
            let options = options.to_string();
            let shown: String = options.chars().take(OPTIONS_CHARS_MAX).collect();
            let more = if shown.len() < options.len() { " ..." } else { "" };
            format!("expected one of {shown}{more}")
        }
        ValidationErrorKind::FalseSchema => "nothing is allowed here".to_owned(),
        ValidationErrorKind::Constant { expected_value } => format!("expected {expected_value}"),
        _ => error.masked_with("the value").to_string(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Keywords whose values are data and not schemas.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// Counts the patterns that apply to strings.
fn patterns(schema: &Value) -> usize {
    match schema {
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !DATA.contains(&key.as_str()))
            .map(|(key, value)| match (key.as_str(), value) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(named)) => {
                    named.len() + named.values().map(patterns).sum::<usize>()
                }
                (_, value) => patterns(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(patterns).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Counts the subschemas that visit a value; annotations do not.
fn parts(schema: &Value) -> usize {
    match schema {
        Value::Object(map) => {
            let describes =
                |key: &str| DATA.contains(&key) || matches!(key, "title" | "description");
            let looks = map.iter().filter(|(key, _)| !describes(key));
            looks.map(|(_, value)| 1 + parts(value)).sum()
        }
        Value::Array(items) => items.iter().map(parts).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The first `$ref` or `$dynamicRef` that leaves the document.
fn remote_reference(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(map) => map.iter().find_map(|(key, value)| match (key.as_str(), value) {
            ("$ref" | "$dynamicRef", Value::String(target)) if leaves(target) => {
                Some(target.as_str())
            }
            (key, _) if DATA.contains(&key) => None,
            (_, value) => remote_reference(value),
        }),
        Value::Array(items) => items.iter().find_map(remote_reference),
        _ => None,
    }
}

/// The dialect's own metaschema ships with the validator.
fn leaves(target: &str) -> bool {
    let is_metaschema = target.starts_with("https://json-schema.org/")
        || target.starts_with("http://json-schema.org/");
    (target.contains("://") && !is_metaschema)
        || target.starts_with("//")
        || target.starts_with("file:")
}
