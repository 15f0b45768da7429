//! The built-in tools as configured.

use std::sync::Arc;
use std::time::Duration;

use super::snapshot::Snapshot;
use super::{Parts, Runtime};
use crate::backend::builtin::code::{CodeSettings, CodeTool};
use crate::backend::builtin::human::HumanInput;
use crate::backend::builtin::output::ReadOutput;
use crate::backend::builtin::search::SearchTool;
use crate::backend::sandbox::ToolSandbox;
use crate::call::InlineTool;
use crate::config::Config;
use crate::config::agent::CodeExecutionConfig;
use crate::config::choices::Approval;
use crate::config::model::{Origin, Setting, ToolSettings};
use crate::record::RecordSource;
use crate::tool::Tool;

const CODE_TIMEOUT: Duration = Duration::from_mins(1);
/// Above the default of `request_timeout`, whose error is more specific.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(30);
const READ_TIMEOUT: Duration = Duration::from_secs(30);
const INSTANCES_MAX: u32 = 4;
/// Maximum number of open questions of the tool. Equal to the capacity of the inbox, which also
/// limits each caller.
const QUESTIONS_MAX: u32 = 1000;
/// Extra time for the call beyond the timeout of its question, so that the inbox reports the
/// expiry.
const INBOX_FIRST: Duration = Duration::from_secs(10);

/// A built-in tool and its default settings.
pub(super) struct Builtin {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) settings: ToolSettings,
}

/// Returns the built-in tools of a configuration. A tool with unchanged settings is reused with its
/// state. A user's tool of the same name replaces a built-in one.
pub(super) fn builtins(config: &Config, parts: &Parts, old: Option<&Snapshot>) -> Vec<Builtin> {
    if old.is_none() && is_withheld(config, parts) {
        tracing::info!(
            "`code_execution` is left out of what is served; to have it, write `builtin: {{code_execution: {{}}}}`"
        );
    }
    let same = old.filter(|old| {
        let python = &config.defaults.python.value;
        old.config().builtin == config.builtin
            && old.config().gateway.output_bytes_max.value == config.gateway.output_bytes_max.value
            && old.config().defaults.output_bytes_max.value
                == config.defaults.output_bytes_max.value
            && old.config().defaults.python.value == *python
    });
    let is_own = |name: &str| {
        config.local.iter().any(|tool| tool.definition.name == name)
            || parts.functions.iter().any(|tool| tool.definition().name == name)
    };
    let mut builtins = made(config, parts);
    builtins.retain(|builtin| !is_own(&builtin.tool.definition().name));
    for builtin in &mut builtins {
        let name = builtin.tool.definition().name;
        let before = same.and_then(|old| old.toolbox.resolve(&name));
        if let Some(before) = before.filter(|before| before.kind == RecordSource::Builtin) {
            builtin.tool = Arc::clone(&before.backend);
        }
    }
    builtins
}

/// Creates the tools. They start no process before the first call.
fn made(config: &Config, parts: &Parts) -> Vec<Builtin> {
    let tools = [
        code_execution(config, parts),
        web_search(config),
        human_input(config, parts),
        read_output(config, parts),
    ];
    tools.into_iter().flatten().collect()
}

fn code_execution(config: &Config, parts: &Parts) -> Option<Builtin> {
    let CodeExecutionConfig { enabled, sandbox, network: _ } = &config.builtin.code_execution;
    if !enabled.value || is_withheld(config, parts) {
        return None;
    }
    let settings = CodeSettings {
        python: config.defaults.python.value.expose().to_owned(),
        sandbox: ToolSandbox::new(&sandbox.value, &parts.sandbox_context(config)),
    };
    let tool = CodeTool::new(&settings, parts.warm.scope());
    // A file that mentions the tool, for example to set its sandbox, enables it.
    let is_configured = enabled.origin != Origin::Default;
    let asks = parts.asks_before_code && !is_configured;
    let settings = ToolSettings {
        approval: asks.then(|| Setting::default(Approval::Ask)),
        ..several_at_once(CODE_TIMEOUT)
    };
    Some(Builtin { tool: Arc::new(tool), settings })
}

/// Callers over a network may execute code only if a file enables it.
fn is_withheld(config: &Config, parts: &Parts) -> bool {
    let enabled = &config.builtin.code_execution.enabled;
    parts.is_served && enabled.value && enabled.origin == Origin::Default
}

fn web_search(config: &Config) -> Option<Builtin> {
    let search = &config.builtin.web_search;
    let tool = search.enabled.value.then(|| SearchTool::new(search))?;
    Some(Builtin { tool: Arc::new(tool), settings: several_at_once(SEARCH_TIMEOUT) })
}

/// Default settings of a built-in tool.
fn several_at_once(timeout: Duration) -> ToolSettings {
    ToolSettings {
        max_instances: Some(Setting::default(INSTANCES_MAX)),
        timeout: Some(Setting::default(timeout)),
        parallel_capable: Some(Setting::default(true)),
        ..ToolSettings::default()
    }
}

/// Offered where results are cut for clients.
fn read_output(config: &Config, parts: &Parts) -> Option<Builtin> {
    let bytes_max = config.gateway.output_bytes_max.value?;
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let bytes_max = bytes_max.min(config.defaults.output_bytes_max.value as usize);
    let tool = ReadOutput::new(parts.outputs.clone(), bytes_max);
    let settings = several_at_once(READ_TIMEOUT);
    Some(Builtin { tool: Arc::new(tool), settings })
}

impl Runtime {
    /// The tool `read_output`, for callers that bring it along with their calls.
    pub fn read_output_tool(&self) -> InlineTool {
        let bytes_max = self.config().defaults.output_bytes_max.value as usize;
        InlineTool::new(Arc::new(ReadOutput::new(self.inner.parts.outputs.clone(), bytes_max)))
    }
}

fn human_input(config: &Config, parts: &Parts) -> Option<Builtin> {
    let is_enabled = config.builtin.request_human_input.value;
    is_enabled.then(|| Builtin {
        tool: Arc::new(HumanInput::new(parts.inbox.clone())),
        settings: ToolSettings {
            max_instances: Some(Setting::default(QUESTIONS_MAX)),
            // The inbox reports the expiry itself, so its timeout must come first.
            ..several_at_once(config.inbox.timeout.value.saturating_add(INBOX_FIRST))
        },
    })
}
