//! Explicit settings of tools.

use std::time::Duration;

use super::{call_limits, count, explicit, metadata, span, tool_overrides};
use crate::config::call_limits::LimitSettings;
use crate::config::choices::{Approval, OnLimit};
use crate::config::model::{Setting, ToolEntry, ToolSettings};
use crate::config::place::{At, Problems};
use crate::config::quantity::{Count, Span};
use crate::config::raw::RawTool;
use haft_text::nearest;

pub(super) fn compile(
    raw: Vec<RawTool>,
    servers: &[&str],
    problems: &mut Problems,
) -> Vec<ToolEntry> {
    raw.into_iter().filter_map(|tool| entry(tool, servers, problems)).collect()
}

fn entry(raw: RawTool, servers: &[&str], problems: &mut Problems) -> Option<ToolEntry> {
    let name = raw.name.filter(|name| !name.value.is_empty());
    if name.is_none() && !raw.broken.contains(&"name") {
        problems.error(&raw.place, "an entry of `tools` has no `name`", "add `name: ...`");
    }
    if let Some(mcp) = &raw.mcp {
        let known = || servers.iter().copied();
        if !known().any(|server| server == mcp.value) {
            let remedy = nearest(&mcp.value, known()).map_or_else(
                || "name a server of `servers`, or delete `mcp`".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            problems.error(&mcp.place, format!("no server is named `{}`", mcp.value), remedy);
        }
    }
    let overrides = tool_overrides::compile(
        raw.rename,
        raw.description,
        raw.hide_arguments,
        raw.fixed_arguments,
        problems,
    );
    let limits = call_limits::compile(raw.rate, raw.burst, raw.quota, problems);
    Some(ToolEntry {
        name: name?.value,
        mcp: raw.mcp.map(|mcp| mcp.value),
        mode: raw.mode.map(|mode| explicit(mode, |mode| mode)),
        settings: ToolSettings {
            examples: raw.examples.map(|at| explicit(at, |examples| examples)),
            limits,
            ..settings(
                raw.max_instances,
                raw.timeout,
                raw.parallel_capable,
                raw.approval,
                raw.on_limit,
            )
        },
        metadata: metadata::compile(raw.title, raw.annotations, raw.icons, problems),
        overrides,
        labels: raw.labels.map(|labels| labels.value),
        place: raw.place,
    })
}

/// The settings that are present, each with its place.
pub(super) fn settings(
    max_instances: Option<At<Count>>,
    timeout: Option<At<Span>>,
    parallel_capable: Option<At<bool>>,
    approval: Option<At<Approval>>,
    on_limit: Option<At<OnLimit>>,
) -> ToolSettings {
    fn set<T>(at: Option<At<T>>) -> Option<Setting<T>> {
        at.map(|at| explicit(at, |value| value))
    }
    let timeout: Option<At<Duration>> = timeout.map(span);
    ToolSettings {
        max_instances: set(max_instances.map(count)),
        timeout: set(timeout),
        parallel_capable: set(parallel_capable),
        approval: set(approval),
        on_limit: set(on_limit),
        limits: LimitSettings::default(),
        examples: None,
    }
}
