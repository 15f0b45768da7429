//! Changes that a file makes to a tool without changing its server: its name, its description, and the
//! arguments that callers neither see nor pass.

use serde_json::{Map, Value};

use super::model::Setting;
use super::node::{Node, NodeValue};
use super::read::{FromNode, Reader};
use super::secret::Masked;
use crate::redact::{MASK, is_secret_name, mask_shapes};

/// The overrides of one tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOverrides {
    /// The name it is offered under.
    pub rename: Option<Setting<String>>,
    /// The description for callers.
    pub description: Option<Setting<String>>,
    /// Arguments that callers neither see nor pass.
    pub hide_arguments: Option<Setting<Vec<String>>>,
    /// Arguments that Haft passes, by name. Callers neither see nor pass them.
    pub fixed_arguments: Vec<(String, Setting<FixedValue>)>,
}

impl ToolOverrides {
    /// Returns true if the file overrides nothing.
    pub fn is_empty(&self) -> bool {
        let Self { rename, description, hide_arguments, fixed_arguments } = self;
        rename.is_none()
            && description.is_none()
            && hide_arguments.is_none()
            && fixed_arguments.is_empty()
    }

    /// The arguments that callers neither see nor pass.
    pub fn hidden(&self) -> impl Iterator<Item = &str> {
        let hidden = self.hide_arguments.iter().flat_map(|names| &names.value);
        hidden.chain(self.fixed_arguments.iter().map(|(name, _)| name)).map(String::as_str)
    }

    /// The fixed arguments as they may be shown.
    pub fn shown_arguments(&self) -> Value {
        let shown = self.fixed_arguments.iter();
        shown.map(|(name, it)| (name.clone(), it.value.shown().clone())).collect()
    }

    /// The secrets among the fixed arguments.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &String> {
        self.fixed_arguments.iter().flat_map(|(_, it)| &it.value.secrets)
    }
}

/// The value of a fixed argument, with its masked form.
#[derive(Clone, PartialEq)]
pub struct FixedValue {
    value: Value,
    shown: Value,
    secrets: Vec<String>,
}

impl FixedValue {
    /// The value that the tool receives.
    pub fn expose(&self) -> &Value {
        &self.value
    }

    /// The value to show.
    pub fn shown(&self) -> &Value {
        &self.shown
    }

    /// Masks the whole value of an argument whose name marks it as a secret.
    #[must_use]
    pub(super) fn named(mut self, name: &str) -> Self {
        if is_secret_name(name)
            && let Value::String(text) = &self.value
        {
            self.secrets.push(text.clone());
            if !self.shown.as_str().is_some_and(|shown| shown.contains("${")) {
                self.shown = Value::String(MASK.to_owned());
            }
        }
        self
    }
}

impl std::fmt::Debug for FixedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.shown)
    }
}

impl FromNode for FixedValue {
    fn read(node: &Node, _: &mut Reader<'_>) -> Option<Self> {
        let mut secrets = Vec::new();
        let shown = shown(node, &mut secrets);
        Some(Self { value: node.to_json(), shown, secrets })
    }
    fn schema() -> Value {
        serde_json::json!({})
    }
}

/// The displayed form of a value; the parts that it hides go to `secrets`.
fn shown(node: &Node, secrets: &mut Vec<String>) -> Value {
    match &node.value {
        NodeValue::Text(text) if text.shown.is_some() => {
            let masked = Masked::from(text.clone());
            secrets.extend(masked.hidden());
            Value::String(masked.shown().to_owned())
        }
        NodeValue::Text(text) => {
            let (shown, literals) = mask_shapes(&text.text);
            secrets.extend(literals);
            Value::String(shown.into_owned())
        }
        NodeValue::List(items) => items.iter().map(|item| shown(item, secrets)).collect(),
        NodeValue::Map(entries) => {
            let entries = entries.iter();
            let shown = entries.map(|it| (it.key.clone(), shown(&it.value, secrets)));
            Value::Object(shown.collect::<Map<_, _>>())
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => node.to_json(),
    }
}
