//! Arguments that a file hides from callers or fixes for them.

use std::borrow::Cow;

use haft_config::schema::{Schema, Violation};
use serde_json::{Map, Value};

use crate::config::tool_overrides::ToolOverrides;
use crate::json::Arguments;

/// Keywords of a schema whose schemas are about the same arguments.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SINGLE: [&str; 3] = ["if", "then", "else"];

/// The arguments of a tool that callers neither see nor pass.
#[derive(Clone, Default, PartialEq)]
pub struct ArgumentOverrides {
    hidden: Vec<String>,
    fixed: Map<String, Value>,
    /// The fixed arguments as JSON without braces.
    fixed_text: String,
}

impl ArgumentOverrides {
    pub(super) fn new(overrides: &ToolOverrides) -> Self {
        let hidden = overrides.hidden().map(ToOwned::to_owned).collect();
        let fixed: Map<String, Value> = overrides
            .fixed_arguments
            .iter()
            .map(|(name, value)| (name.clone(), value.value.expose().clone()))
            .collect();
        let text = Value::Object(fixed.clone()).to_string();
        let fixed_text = text[1..text.len() - 1].to_owned();
        Self { hidden, fixed, fixed_text }
    }

    /// Returns true if callers see and pass every argument.
    pub fn is_empty(&self) -> bool {
        self.hidden.is_empty()
    }

    /// Returns what the tool receives: the caller's arguments, and the fixed ones. The caller's text stays
    /// unmodified.
    pub(crate) fn complete<'a>(
        &self,
        arguments: &'a Arguments,
    ) -> Result<Cow<'a, Arguments>, Vec<Violation>> {
        if self.is_empty() {
            return Ok(Cow::Borrowed(arguments));
        }
        let passed = |name: &&String| arguments.value().get(name.as_str()).is_some();
        let violations: Vec<Violation> =
            self.hidden.iter().filter(passed).map(|name| no_such_argument(name)).collect();
        if !violations.is_empty() {
            return Err(violations);
        }
        Ok(match &self.fixed_text {
            text if text.is_empty() => Cow::Borrowed(arguments),
            text => Cow::Owned(arguments.with(text, &self.fixed)),
        })
    }

    /// Removes the hidden arguments from a schema.
    pub(super) fn hide(&self, schema: &Value) -> Value {
        let Value::Object(keywords) = schema else { return schema.clone() };
        let is_hidden = |name: &str| self.hidden.iter().any(|hidden| hidden == name);
        let mut shown = keywords.clone();
        if let Some(Value::Object(properties)) = shown.get_mut("properties") {
            properties.retain(|name, _| !is_hidden(name));
        }
        if let Some(Value::Array(required)) = shown.get_mut("required") {
            required.retain(|name| !name.as_str().is_some_and(is_hidden));
        }
        for keyword in LISTS {
            if let Some(Value::Array(schemas)) = shown.get_mut(keyword) {
                for schema in schemas {
                    *schema = self.hide(schema);
                }
            }
        }
        for keyword in SINGLE {
            if let Some(schema) = shown.get_mut(keyword) {
                *schema = self.hide(schema);
            }
        }
        Value::Object(shown)
    }

    /// Returns the reason why no call could match the tool's own schema: a hidden argument is required and
    /// has no fixed value, or a fixed value has another form.
    pub(super) fn conflict(&self, schema: &Value) -> Option<String> {
        let required = schema.get("required").and_then(Value::as_array);
        let is_missing = |name: &&String| {
            let is_required = required.is_some_and(|all| all.iter().any(|it| it == *name));
            is_required && !self.fixed.contains_key(*name)
        };
        if let Some(name) = self.hidden.iter().find(is_missing) {
            return Some(format!(
                "the argument `{name}` is hidden and required; give it a value in `fixed_arguments`"
            ));
        }
        let properties = schema.get("properties");
        self.fixed.iter().find_map(|(name, value)| {
            let own = properties.and_then(|all| all.get(name))?;
            // References lead to definitions beside the properties; the call itself checks those.
            let violations = Schema::shared(own).ok()?.check(value).err()?;
            let problem = violations.first().map(|it| it.problem.clone()).unwrap_or_default();
            Some(format!("the fixed argument `{name}` does not match the input schema: {problem}"))
        })
    }

    /// Returns the hidden arguments that a schema does not mention.
    pub(super) fn unknown<'a>(&'a self, schema: &Value) -> Vec<&'a str> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Vec::new();
        };
        let unknown = self.hidden.iter().filter(|name| !properties.contains_key(name.as_str()));
        unknown.map(String::as_str).collect()
    }
}

/// The values may be secrets.
impl std::fmt::Debug for ArgumentOverrides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArgumentOverrides").field("hidden", &self.hidden).finish_non_exhaustive()
    }
}

/// The same text for a hidden argument and for one that does not exist.
fn no_such_argument(name: &str) -> Violation {
    let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    Violation { pointer, problem: "the tool has no such argument".to_owned() }
}
