//! The settings a tool runs with: explicit before default before built-in, field by field.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::call_limits::LimitSettings;
use crate::config::choices::{Approval, OnLimit};
use crate::config::model::{Defaults, Origin, ServerConfig, Setting, ToolSettings};
use haft_text::human;

/// Default number of concurrent calls of one tool.
const MAX_INSTANCES: u32 = 5;

/// The effective settings of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    /// Maximum number of concurrent calls.
    pub max_instances: Setting<u32>,
    /// Time limit of one call.
    pub timeout: Setting<Duration>,
    /// True if calls may run at the same time.
    pub parallel_capable: Setting<bool>,
    /// The approval that a call needs.
    pub approval: Setting<Approval>,
    /// The reaction of a call to a reached limit.
    pub on_limit: Setting<OnLimit>,
    /// The limits of its calls.
    pub limits: LimitSettings,
    /// Requests the tool is meant for.
    pub examples: Vec<String>,
    /// The origin of the settings: the tool's entry, the server's default, or both.
    pub origin: SettingsOrigin,
}

/// The origin of a tool's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingsOrigin {
    /// The tool's own entry.
    Explicit,
    /// The default of its server, or the built-in defaults.
    Default,
    /// The tool's entry merged with its server's default.
    Merged,
}

/// Values for fields that neither the tool's entry nor the server's default sets.
#[derive(Debug, PartialEq)]
pub(super) struct Fallback {
    timeout: Setting<Duration>,
    is_parallel: bool,
    on_limit: Setting<OnLimit>,
}

impl Fallback {
    pub(super) fn local(defaults: &Defaults) -> Self {
        Self {
            timeout: defaults.tool_timeout.clone(),
            is_parallel: false,
            on_limit: defaults.on_limit.clone(),
        }
    }

    /// Returns the fallback for a tool without a limit on concurrent calls.
    pub(super) fn parallel(defaults: &Defaults) -> Self {
        Self { is_parallel: true, ..Self::local(defaults) }
    }

    pub(super) fn mcp(server: &ServerConfig, defaults: &Defaults) -> Self {
        Self {
            timeout: server.request_timeout.clone(),
            is_parallel: true,
            on_limit: defaults.on_limit.clone(),
        }
    }
}

/// Returns the server's default with the server as the origin of each value.
pub(super) fn server_default(server: &ServerConfig) -> ToolSettings {
    fn of<T: Clone>(setting: Option<&Setting<T>>, server: &str) -> Option<Setting<T>> {
        setting.cloned().map(|setting| match setting.origin {
            Origin::Explicit(place) => Setting {
                value: setting.value,
                origin: Origin::ServerDefault(server.to_owned(), place),
            },
            origin => Setting { value: setting.value, origin },
        })
    }
    let (settings, name) = (&server.default_tool_config, server.name.as_str());
    ToolSettings {
        max_instances: of(settings.max_instances.as_ref(), name),
        timeout: of(settings.timeout.as_ref(), name),
        parallel_capable: of(settings.parallel_capable.as_ref(), name),
        approval: of(settings.approval.as_ref(), name),
        on_limit: of(settings.on_limit.as_ref(), name),
        limits: LimitSettings {
            rate: of(settings.limits.rate.as_ref(), name),
            burst: of(settings.limits.burst.as_ref(), name),
            quota: of(settings.limits.quota.as_ref(), name),
        },
        // Examples belong to one tool.
        examples: None,
    }
}

pub(super) fn effective(
    explicit: Option<&ToolSettings>,
    default: Option<&ToolSettings>,
    fallback: Fallback,
    origin: SettingsOrigin,
) -> Effective {
    let empty = ToolSettings::default();
    let (explicit, default) = (explicit.unwrap_or(&empty), default.unwrap_or(&empty));
    let max_instances = either(explicit.max_instances.as_ref(), default.max_instances.as_ref());
    let parallel_capable =
        either(explicit.parallel_capable.as_ref(), default.parallel_capable.as_ref())
            .unwrap_or_else(|| implied_parallel(max_instances.as_ref(), fallback.is_parallel));
    let max_instances = if parallel_capable.value {
        max_instances.unwrap_or_else(|| Setting::default(MAX_INSTANCES))
    } else {
        Setting { value: 1, origin: Origin::Implied("parallel_capable: false") }
    };
    Effective {
        max_instances,
        timeout: either(explicit.timeout.as_ref(), default.timeout.as_ref())
            .unwrap_or(fallback.timeout),
        parallel_capable,
        approval: either(explicit.approval.as_ref(), default.approval.as_ref())
            .unwrap_or_else(|| Setting::default(Approval::Auto)),
        on_limit: either(explicit.on_limit.as_ref(), default.on_limit.as_ref())
            .unwrap_or(fallback.on_limit),
        limits: limits(&explicit.limits, &default.limits),
        examples: examples(default, explicit),
        origin,
    }
}

/// A burst belongs to the rate of its place.
fn limits(explicit: &LimitSettings, default: &LimitSettings) -> LimitSettings {
    let LimitSettings { rate, burst, quota } =
        if explicit.rate.is_some() { explicit } else { default }.clone();
    LimitSettings { rate, burst, quota: either(explicit.quota.as_ref(), quota.as_ref()) }
}

/// Examples accumulate: an entry does not hide the examples of another place.
fn examples(first: &ToolSettings, then: &ToolSettings) -> Vec<String> {
    let all = first.examples.iter().chain(&then.examples);
    let mut examples: Vec<String> = Vec::new();
    for example in all.flat_map(|examples| &examples.value) {
        if !examples.contains(example) {
            examples.push(example.clone());
        }
    }
    examples
}

fn either<T: Clone>(explicit: Option<&T>, default: Option<&T>) -> Option<T> {
    explicit.or(default).cloned()
}

/// Local tools run one at a time unless the entry allows more.
fn implied_parallel(max_instances: Option<&Setting<u32>>, is_parallel: bool) -> Setting<bool> {
    match max_instances {
        Some(instances) if !is_parallel && instances.value > 1 => {
            Setting { value: true, origin: Origin::Implied("max_instances above 1") }
        }
        _ => Setting::default(is_parallel),
    }
}

/// Formats the fields that are set, as `{max_instances: 20, timeout: 60s}`.
pub(super) fn details(settings: &ToolSettings) -> String {
    let mut parts = Vec::new();
    parts.extend(settings.max_instances.as_ref().map(|it| format!("max_instances: {}", it.value)));
    parts.extend(settings.timeout.as_ref().map(|it| format!("timeout: {}", human(it.value))));
    let parallel = settings.parallel_capable.as_ref();
    parts.extend(parallel.map(|it| format!("parallel_capable: {}", it.value)));
    parts.extend(settings.approval.as_ref().map(|it| format!("approval: {}", it.value)));
    parts.extend(settings.on_limit.as_ref().map(|it| format!("on_limit: {}", it.value)));
    format!("{{{}}}", parts.join(", "))
}

impl Effective {
    /// Formats the settings, as `{max_instances: 20, timeout: 60s}`.
    pub(super) fn details(&self) -> String {
        format!(
            "{{max_instances: {}, timeout: {}}}",
            self.max_instances.value,
            human(self.timeout.value)
        )
    }
}
