//! A tool as shown to programs and people.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::call_limits::LimitSettings;
use crate::config::model::{Origin, Setting};
use crate::config::sandbox::SandboxConfig;
use crate::config::tool_overrides::ToolOverrides;
use crate::record::RecordSource;
use crate::registry::ActiveTool;
use crate::registry::{BlockedDefinition, Effective, SettingsOrigin, ToolSource};
use crate::words::{Word, origin_word, setting_word};
use haft_config::tool_metadata::{Icon, ToolAnnotations};
use haft_text::human;

/// A tool, its settings and the origin of each.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolInfo {
    /// The name under which it is called.
    pub name: String,
    /// The name at its source, if different.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_name: Option<String>,
    /// The reason why the name may mislead: invisible or lookalike characters, or similarity to
    /// another tool's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_warning: Option<String>,
    /// A display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for models and people.
    pub description: String,
    /// Hints about its behaviour, as MCP defines them. A server's hints are unverified claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Its icons, as MCP defines them. A server's icons are not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// The origin of the tool: `source`, and for an MCP tool `mcp_name` and `mcp_mode`.
    #[serde(flatten)]
    pub source: ToolSource,
    /// The kind of its backend: `local`, `mcp`, `builtin` or `function`.
    pub kind: RecordSource,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured output.
    pub output_schema: Option<Value>,
    /// The origin of its settings: `explicit`, `default` or `merged`.
    pub config_origin: SettingsOrigin,
    /// The settings it runs with.
    pub config: Vec<EffectiveValue>,
    /// True if only user interfaces call it; models do not see it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub app_only: bool,
    /// True if an earlier run saw the tool, and its server is not connected yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Set if the server's definition is not the one that the lock file approves. Calls are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<BlockedDefinition>,
    /// The program of a script or command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Value>,
}

/// One setting and its origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EffectiveValue {
    /// The setting.
    #[serde(deserialize_with = "setting_word")]
    pub key: Word,
    /// Its value.
    pub value: Value,
    /// `explicit` or `default`.
    #[serde(deserialize_with = "origin_word")]
    pub origin: Word,
    /// The file and line, the variable, or the default that set it.
    pub from: String,
}

impl ToolInfo {
    pub(super) fn new(tool: &ActiveTool, program: Option<Value>, cached: bool) -> Self {
        let registered = &tool.registered;
        let definition = &registered.definition;
        let effective = &registered.effective;
        let mut config = settings(effective);
        if let Some(overrides) = &registered.overrides {
            config.extend(overridden(overrides));
        }
        Self {
            name: registered.name.clone(),
            original_name: (definition.name != registered.name).then(|| definition.name.clone()),
            name_warning: registered.name_warning.clone(),
            title: definition.title.clone(),
            description: definition.description.clone(),
            annotations: definition.annotations.clone(),
            icons: definition.icons.clone(),
            source: registered.source.clone(),
            kind: tool.kind,
            input_schema: definition.input_schema.clone(),
            output_schema: definition.output_schema.clone(),
            config_origin: effective.origin,
            config,
            app_only: tool.backend.is_app_only(),
            cached,
            blocked: registered.blocked.clone(),
            program,
        }
    }

    /// Adds the sandbox of its program.
    pub(super) fn inside(mut self, sandbox: &Setting<SandboxConfig>) -> Self {
        self.config.push(value("sandbox", sandbox.value.shown(), sandbox));
        self
    }

    /// The value of one setting.
    pub fn setting(&self, key: &str) -> Option<&Value> {
        self.config.iter().find(|setting| setting.key == key).map(|setting| &setting.value)
    }
}

fn settings(effective: &Effective) -> Vec<EffectiveValue> {
    let Effective { max_instances, timeout, parallel_capable, approval, on_limit, limits, .. } =
        effective;
    let mut values = vec![
        value("max_instances", json!(max_instances.value), max_instances),
        value("timeout", json!(human(timeout.value)), timeout),
        value("parallel_capable", json!(parallel_capable.value), parallel_capable),
        value("approval", json!(approval.value), approval),
        value("on_limit", json!(on_limit.value), on_limit),
    ];
    let LimitSettings { rate, burst, quota } = limits;
    values.extend(rate.as_ref().map(|it| value("rate", json!(it.value.to_string()), it)));
    values.extend(burst.as_ref().map(|it| value("burst", json!(it.value), it)));
    values.extend(quota.as_ref().map(|it| value("quota", json!(it.value.to_string()), it)));
    values
}

fn overridden(overrides: &ToolOverrides) -> Vec<EffectiveValue> {
    let ToolOverrides { rename, description, hide_arguments, fixed_arguments } = overrides;
    let text =
        |key, it: &Option<Setting<String>>| it.as_ref().map(|it| value(key, json!(it.value), it));
    let hidden = hide_arguments.as_ref().map(|it| value("hide_arguments", json!(it.value), it));
    // Their origin is shown together: the first one's.
    let fixed = fixed_arguments
        .first()
        .map(|(_, first)| value("fixed_arguments", overrides.shown_arguments(), first));
    [text("rename", rename), text("description", description), hidden, fixed]
        .into_iter()
        .flatten()
        .collect()
}

fn value<T>(key: &'static str, value: Value, setting: &Setting<T>) -> EffectiveValue {
    let origin: &Origin = &setting.origin;
    EffectiveValue { key, value, origin: origin.word(), from: origin.to_string() }
}
