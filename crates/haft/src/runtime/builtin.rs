//! The tools that Haft brings itself, as the configuration has them.

use std::sync::Arc;
use std::time::Duration;

use super::Parts;
use super::snapshot::Snapshot;
use crate::backend::builtin::human::HumanInput;
use crate::config::Config;
use crate::config::model::{Setting, ToolSettings};
use crate::record::Source as RecordSource;
use crate::tool::Tool;

/// How many questions of the tool may wait for people at once.
const QUESTIONS_MAX: u32 = 100;
/// How much longer a question's call may take than the question waits.
const INBOX_FIRST: Duration = Duration::from_secs(10);

/// A built-in tool and the settings it has where nobody sets others.
pub(super) struct Builtin {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) settings: ToolSettings,
}

/// The built-in tools of a configuration. One whose settings did not change stays what it is, with what
/// it remembers. A tool of one's own with the name of a built-in one takes its place.
pub(super) fn builtins(config: &Config, parts: &Parts, old: Option<&Snapshot>) -> Vec<Builtin> {
    let same = old.filter(|old| old.config.builtin == config.builtin);
    let is_own = |name: &str| {
        config.local.iter().any(|tool| tool.definition.name == name)
            || parts.functions.iter().any(|tool| tool.definition().name == name)
    };
    let mut builtins = made(config, parts);
    builtins.retain(|builtin| !is_own(&builtin.tool.definition().name));
    for builtin in &mut builtins {
        let name = builtin.tool.definition().name;
        let before = same.and_then(|old| old.resolve(&name).ok());
        if let Some(before) = before.filter(|before| before.kind == RecordSource::Builtin) {
            builtin.tool = Arc::clone(&before.backend);
        }
    }
    builtins
}

/// Makes the tools. Nothing is started before the first call.
fn made(config: &Config, parts: &Parts) -> Vec<Builtin> {
    let mut made = Vec::new();
    if config.builtin.request_human_input.value {
        made.push(human(config, parts));
    }
    made
}

fn human(config: &Config, parts: &Parts) -> Builtin {
    Builtin {
        tool: Arc::new(HumanInput::new(parts.inbox.clone())),
        settings: ToolSettings {
            parallel_capable: Some(Setting::default(true)),
            max_instances: Some(Setting::default(QUESTIONS_MAX)),
            // The inbox says itself that nobody answered, and comes first.
            timeout: Some(Setting::default(config.inbox.timeout.value.saturating_add(INBOX_FIRST))),
            ..ToolSettings::default()
        },
    }
}
