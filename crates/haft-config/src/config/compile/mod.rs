//! Compiles the raw configuration to the model. Defaults live here, once. Every problem is
//! reported.

mod agent;
mod call_limits;
mod gateway;
mod limits;
mod local;
mod log;
mod merge;
mod metadata;
mod rules;
mod sandbox;
mod select;
mod server;
mod service;
mod shared;
mod tool;
mod tool_overrides;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::broken::MisconfiguredServer;
use super::choices::{NameCollision, OnLimit, RuntimeViolation, UnresolvedEnv};
use super::dialect::Layer;
use super::lock_file::LockFile;
use super::model::{Config, ConfigFile, Defaults, LeftOut, LocalTool, Origin, Setting, ToolEntry};
use super::place::{At, Problems};
use super::quantity::Count;
use super::raw::RawDefaults;
use super::sandbox::SandboxConfig;
use super::{Dialect, Place};

pub(super) use merge::{Merged, ServerSource, merge};

/// Folder of what Haft remembers, beside the configuration.
const STATE_DIR: &str = ".haft";

/// Default number of concurrent calls over all tools.
const CONCURRENT_MAX: u32 = 100;
/// The same in files of the toolbox format.
const TOOLBOX_CONCURRENT_MAX: u32 = 10;

/// Builds the configuration; collects problems and omits invalid parts. `has_builtin` is true if
/// the built-in tools are available without any mention in a file.
pub(super) fn compile(
    merged: Merged,
    files: Vec<ConfigFile>,
    base: &Path,
    has_builtin: &Setting<bool>,
    misconfigured: Vec<MisconfiguredServer>,
    problems: &mut Problems,
) -> Config {
    let Merged { config, servers, local, variables } = merged;
    let defaults = defaults(config.defaults.map(|at| at.value), &files, base, problems);
    let sandbox = &defaults.sandbox;
    let servers: Vec<_> = servers
        .into_iter()
        .filter_map(|server| server::compile(server, sandbox, problems))
        .collect();
    let tools = config.tools.map(|tools| tools.value).unwrap_or_default();
    let names: Vec<&str> = servers
        .iter()
        .map(|server| server.name.as_str())
        .chain(misconfigured.iter().map(|server| server.name.as_str()))
        .collect();
    let tools = tool::compile(tools, &names, problems);
    let local: Vec<_> =
        local.into_iter().filter_map(|tool| local::compile(tool, sandbox, problems)).collect();
    warn_if_unlisted(&files, &tools, &local, problems);
    let has_shared = config.shared.is_some();
    let shared::Registry { dir: registry_dir, store: registry_store } =
        shared::registry(config.registry, base, has_shared, problems);
    let state_dir = path(config.state_dir, base, STATE_DIR);
    let profiles = gateway::profiles(config.profiles, &names, problems);
    let known = rules::Known {
        servers: &names,
        profiles: profiles.iter().map(|profile| profile.name.as_str()).collect(),
    };
    let policy = service::policy(config.policy.map(|at| at.value), &known, problems);
    let limits = limits::limits(config.limits.map(|at| at.value), problems);
    let builtin = agent::builtin(config.builtin, has_builtin, sandbox, base, problems);
    let config = Config {
        files,
        defaults,
        servers,
        tools,
        local,
        registry_dir,
        registry_store,
        shared: shared::shared(config.shared, base, problems),
        log: log::log(config.log.map(|at| at.value), base, has_shared, problems),
        api: service::api(
            config.api.map(|at| at.value),
            base,
            &state_dir.value,
            has_shared,
            problems,
        ),
        policy,
        select: select::select(config.select.map(|at| at.value), problems),
        telemetry: service::telemetry(config.telemetry.map(|at| at.value), problems),
        gateway: gateway::gateway(config.gateway.map(|at| at.value), problems),
        profiles,
        builtin: Box::new(builtin),
        inbox: agent::inbox(config.inbox.map(|at| at.value), problems),
        agent: Box::new(agent::agent(
            config.agent.map(|at| at.value),
            limits.nodes_max(),
            base,
            problems,
        )),
        limits,
        state_dir,
        lock: LockFile::default(),
        variables,
        misconfigured,
        warnings: Vec::new(),
        left_out: LeftOut::default(),
    };
    sandbox::refuse_own_files(&config, problems);
    shared::check(&config, problems);
    config
}

fn defaults(
    raw: Option<RawDefaults>,
    files: &[ConfigFile],
    base: &Path,
    problems: &mut Problems,
) -> Defaults {
    let raw = raw.unwrap_or_else(|| RawDefaults::empty(Place::whole("")));
    Defaults {
        tool_timeout: pick(raw.tool_timeout.map(span), Duration::from_secs(30)),
        max_concurrent: pick_or(raw.max_concurrent.map(count), || max_concurrent(files)),
        on_limit: pick(raw.on_limit, OnLimit::Wait),
        queue_max: pick(raw.queue_max.map(count), 1000),
        queue_timeout: pick(raw.queue_timeout.map(span), Duration::from_mins(5)),
        on_name_collision: pick_or(raw.on_name_collision, || name_collision(files)),
        unresolved_env: pick(raw.unresolved_env, UnresolvedEnv::Error),
        on_runtime_violation: pick(raw.on_runtime_violation, RuntimeViolation::Refuse),
        python: pick(raw.python.map(|text| text.map(Into::into)), "python3".into()),
        output_bytes_max: pick(raw.output_bytes_max.map(count), 262_144),
        sandbox: Box::new(match raw.sandbox {
            Some(raw) => sandbox::compile(raw, base, problems),
            None => Setting::default(SandboxConfig::none()),
        }),
    }
}

/// Warns about local tools that the toolbox does not list. Its format requires every local tool to
/// be listed; an entry of `tools.json` is a configuration in itself, so the start continues.
fn warn_if_unlisted(
    files: &[ConfigFile],
    tools: &[ToolEntry],
    local: &[Arc<LocalTool>],
    problems: &mut Problems,
) {
    let Some(toolbox) = files.iter().find(|file| file.dialect == Dialect::Toolbox) else { return };
    let is_of_toolbox =
        |file: &str| files.iter().any(|it| it.dialect == Dialect::Toolbox && *it.name == *file);
    let of_toolbox = tools.iter().filter(|entry| is_of_toolbox(&entry.place.file));
    let listed: HashSet<&str> = of_toolbox.map(|entry| entry.name.as_str()).collect();
    for tool in local.iter().filter(|tool| !listed.contains(tool.definition.name.as_str())) {
        let name = &tool.definition.name;
        problems.warn(
            &tool.place,
            format!(
                "tool `{name}` of `{}` is not listed in `toolbox.tools` of `{}`",
                tool.place.file, toolbox.name
            ),
            format!("add `- name: {name}` to `toolbox.tools`, or delete the tool"),
        );
    }
}

/// The toolbox format states its own default.
fn max_concurrent(files: &[ConfigFile]) -> Setting<u32> {
    if files.iter().any(|file| file.dialect == Dialect::Toolbox) {
        let origin = Origin::Format(Dialect::Toolbox);
        return Setting { value: TOOLBOX_CONCURRENT_MAX, origin };
    }
    Setting::default(CONCURRENT_MAX)
}

/// The toolbox format lets the last tool of a name win. In every other format a tool is replaced
/// only if a file asks for it.
fn name_collision(files: &[ConfigFile]) -> Setting<NameCollision> {
    if files.iter().any(|file| file.dialect == Dialect::Toolbox) {
        let origin = Origin::Format(Dialect::Toolbox);
        return Setting { value: NameCollision::LastWins, origin };
    }
    Setting::default(NameCollision::Prefix)
}

fn path(raw: Option<At<super::node::Text>>, base: &Path, default: &str) -> Setting<PathBuf> {
    match raw {
        Some(at) => explicit(at, |dir| base.join(dir.text)),
        None => Setting::default(base.join(default)),
    }
}

fn explicit<T, U>(at: At<T>, change: impl FnOnce(T) -> U) -> Setting<U> {
    Setting { value: change(at.value), origin: Origin::Explicit(at.place) }
}

/// The written value, or the default.
fn pick<T>(raw: Option<At<T>>, default: T) -> Setting<T> {
    pick_or(raw, || Setting::default(default))
}

fn pick_or<T>(raw: Option<At<T>>, default: impl FnOnce() -> Setting<T>) -> Setting<T> {
    raw.map_or_else(default, |at| explicit(at, |value| value))
}

fn count(at: At<Count>) -> At<u32> {
    at.map(|Count(number)| number)
}

fn span(at: At<super::quantity::Span>) -> At<Duration> {
    at.map(|super::quantity::Span(duration)| duration)
}
