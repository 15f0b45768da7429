//! The decision of a rule, as the log keeps it.

use haft_config::config::Place;
use haft_config::config::rules::{CallFacts, Rule, RuleEffect, RuleMatch};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Longest recorded value, in bytes of its JSON.
const VALUE_BYTES_MAX: usize = 200;

/// The decision on a call: the rule, its place and the values it looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PolicyDecision {
    /// The rule's name, or its position such as `rules[2]`; `labels` for the flow of a session.
    pub rule: String,
    /// The file that has the rule.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// The decision. A rule that could not be evaluated denies.
    pub effect: RuleEffect,
    /// The reason that the rule gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason why its condition could not be evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The values that the rule looked at, such as `args.path`; long ones are cut.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
}

impl PolicyDecision {
    pub(super) fn of(
        rule: &Rule,
        effect: RuleEffect,
        problem: Option<String>,
        values: Map<String, Value>,
    ) -> Self {
        let Place { file, line, .. } = &rule.place;
        Self {
            rule: rule.name.clone(),
            file: file.to_string(),
            line: *line,
            effect,
            reason: rule.reason.clone(),
            problem,
            values,
        }
    }

    /// The file and the line of the rule.
    pub fn place(&self) -> String {
        let Self { file, line, .. } = self;
        if *line > 0 { format!("{file}:{line}") } else { file.clone() }
    }
}

/// The values that a rule looks at.
pub(super) fn values(matches: &RuleMatch, call: &CallFacts<'_>, own: &Value) -> Map<String, Value> {
    let RuleMatch { key, scope, profile, session, server, tool, annotations, when } = matches;
    let mut values = Map::new();
    let mut add = |name: &str, is_used: bool, value: Value| {
        if is_used {
            values.insert(name.to_owned(), shortened(value));
        }
    };
    add("caller.key", key.is_some(), json!(call.key));
    add("caller.scope", scope.is_some(), json!(call.scope));
    add("caller.profile", profile.is_some(), json!(call.profile));
    add("caller.session", session.is_some(), json!(call.session));
    add("tool.server", server.is_some(), json!(call.server_name()));
    add("tool.name", tool.is_some(), json!(call.tool));
    let hints = json!({
        "readOnlyHint": call.annotations.read_only,
        "destructiveHint": call.annotations.destructive,
        "idempotentHint": call.annotations.idempotent,
        "openWorldHint": call.annotations.open_world,
    });
    add("tool.annotations", !annotations.is_empty(), hints.clone());
    let Some(when) = when else { return values };
    let variables = json!({
        "tool": {"name": call.tool, "server": call.server_name(), "annotations": hints},
        "caller": {
            "name": call.caller, "key": call.key, "scope": call.scope, "profile": call.profile,
            "session": call.session,
        },
    });
    for path in when.expression.paths() {
        let variable = if path.root() == "args" { Some(own) } else { variables.get(path.root()) };
        // A missing value is a value that the rule looked at, too.
        let value = variable.and_then(|variable| path.find(variable)).cloned();
        add(&path.to_string(), true, value.unwrap_or(Value::Null));
    }
    values
}

/// A value, or the beginning of its JSON.
fn shortened(value: Value) -> Value {
    let is_short = match &value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => text.len() <= VALUE_BYTES_MAX,
        Value::Array(_) | Value::Object(_) => false,
    };
    if is_short {
        return value;
    }
    let text = match value {
        Value::String(text) => text,
        other => {
            let text = other.to_string();
            if text.len() <= VALUE_BYTES_MAX {
                return other;
            }
            text
        }
    };
    let kept = text.floor_char_boundary(VALUE_BYTES_MAX);
    Value::String(format!("{}… ({} bytes)", &text[..kept], text.len()))
}
