//! Builds a snapshot from a configuration: connect, register, and refuse to start on violations.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::builtin::{Builtin, builtins};
use super::choice::Choice;
use super::definition_lock;
use super::local::Script;
use super::local_setup;
use super::masked::MaskedDefinitions;
use super::server_pool::ServerPool;
use super::snapshot::{Locals, Snapshot, SnapshotParts};
use super::{Parts, Purpose};
use crate::call::Toolbox;
use crate::config::Config;
use crate::config::bytes::FreeSpace;
use crate::config::choices::{LogShip, LogSync, NameCollision, OnLogFailure};
use crate::config::model::{CompiledSchemas, LocalProgram, LocalTool};
use crate::policy::{Gate, Policy};
use crate::record::{
    Durability, ExecutionLog, KeepFree, LogError, LogFailurePolicy, LogOptions, RecordSource,
    SpoolOptions,
};
use crate::registry::ActiveTool;
use crate::registry::{
    Discovered, KnownTools, Level, LocalDiscovery, LocalRegistrations, Record, RegisteredTool,
    Registration, ToolSource, register_again,
};
use crate::tool::Tool;
use tokio::task::spawn_blocking;

/// Reasons why a toolbox does not start. The old one, if present, keeps running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Required servers are unreachable.
    #[error("{}", failed.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join("\n\n"))]
    Connect {
        /// The servers, in the order of the configuration.
        failed: Vec<ConnectFailed>,
    },
    /// A tool is unconfigured where an entry is required, or names collide where they must not.
    #[error("{}", texts.join("\n\n"))]
    Strict {
        /// One text for each tool.
        texts: Vec<String>,
    },
    /// The caller cancelled the start.
    #[error("the start was cancelled")]
    Cancelled,
    /// The execution log cannot be written.
    #[error("{}", .0.problem())]
    Log(#[from] LogError),
}

/// An unreachable server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectFailed {
    /// The server.
    pub server: String,
    /// The whole message, cause included.
    pub text: String,
}

impl StartError {
    /// The remedy, if the message has none.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Connect { failed } => {
                let names: Vec<String> =
                    failed.iter().map(|it| format!("`{}`", it.server)).collect();
                let it = if names.len() == 1 { "it" } else { "them" };
                Some(format!(
                    "set `on_connect_failure: skip` for {} to start without {it}",
                    names.join(" and ")
                ))
            }
            Self::Strict { .. } | Self::Cancelled => None,
            Self::Log(error) => Some(error.remedy()),
        }
    }
}

/// The backend of each local tool, by the tool's own name.
type Backends = HashMap<String, (Arc<dyn Tool>, RecordSource)>;

pub(super) async fn build(
    mut config: Config,
    parts: &Parts,
    old: Option<&Arc<Snapshot>>,
) -> Result<Snapshot, StartError> {
    let log = match parts.purpose {
        Purpose::Call => Some(open_log(&config, parts, old)?),
        Purpose::DryRun | Purpose::Inspect => None,
    };
    let nothing = ServerPool::default();
    let before = old.map_or(&nothing, |old| &old.server_pool);
    let server_pool = ServerPool::new(&config, parts, Some(before));
    let known = load_known(&config);
    if let Err(error) = server_pool.connect(parts, &config, known.as_ref()).await {
        server_pool.retire(before).await;
        return Err(error);
    }
    let has_python =
        config.local.iter().any(|tool| matches!(tool.program, LocalProgram::Python { .. }));
    if parts.purpose == Purpose::Call && old.is_none() && has_python {
        parts.warm.prepare(config.defaults.python.value.expose());
    }
    local_setup::prepare(&mut config, parts).await;
    let lists = server_pool.with_current_lists(&config, old.map(|old| &**old));
    let snapshot = assemble(Arc::new(config), parts, log, lists, known.as_ref(), old).await;
    if parts.purpose == Purpose::Inspect {
        return Ok(snapshot);
    }
    for record in &snapshot.said {
        record.emit();
    }
    if !snapshot.violations.is_empty() {
        server_pool.retire(before).await;
        return Err(StartError::Strict { texts: snapshot.violations });
    }
    remember(&snapshot, parts, known.as_ref()).await;
    Ok(snapshot)
}

/// Builds a changed toolbox beside the old one. Its new servers are not connected: nothing starts
/// before the change is durable.
pub(super) async fn rebuild(
    config: Config,
    parts: &Parts,
    old: &Arc<Snapshot>,
) -> Result<Snapshot, LogError> {
    let log = match parts.purpose {
        Purpose::Call => Some(open_log(&config, parts, Some(old))?),
        Purpose::DryRun | Purpose::Inspect => None,
    };
    let server_pool = ServerPool::new(&config, parts, Some(&old.server_pool));
    let server_pool = server_pool.with_current_lists(&config, Some(old));
    Ok(assemble(Arc::new(config), parts, log, server_pool, Some(&old.known), Some(old)).await)
}

/// Logs the registration records that the old snapshot did not have.
pub(super) fn log_new_records(old: &Snapshot, new: &Snapshot) {
    let said: HashSet<&Record> = old.said.iter().collect();
    for record in new.said.iter().filter(|record| !said.contains(record)) {
        record.emit();
    }
}

/// Rebuilds the toolbox with the current lists of its servers. An unconfigured tool is refused; the
/// rest stays available.
pub(super) async fn refresh(parts: &Parts, old: &Arc<Snapshot>) -> Snapshot {
    relock(Arc::clone(old.config()), parts, old).await
}

/// The same with a configuration that differs in its lock file only.
pub(super) async fn relock(config: Arc<Config>, parts: &Parts, old: &Arc<Snapshot>) -> Snapshot {
    let server_pool = old.server_pool.with_current_lists(&config, Some(old));
    let log = old.toolbox.log.clone();
    let snapshot = assemble(config, parts, log, server_pool, Some(&old.known), Some(old)).await;
    log_new_records(old, &snapshot);
    remember(&snapshot, parts, Some(&old.known)).await;
    snapshot
}

/// Registers the tools of all sources.
async fn assemble(
    config: Arc<Config>,
    parts: &Parts,
    log: Option<ExecutionLog>,
    server_pool: ServerPool,
    known: Option<&KnownTools>,
    old: Option<&Arc<Snapshot>>,
) -> Snapshot {
    let builtins = builtins(&config, parts, old.map(|old| &**old));
    let mut masked = MaskedDefinitions::of(config.described_secrets());
    let found = discover(&config, parts, &builtins, &server_pool, (&mut masked, old));
    let Registration { mut tools, mut records, violations, known, locals: registrations } =
        register_aside(&config, found, known.cloned(), old).await;
    records.extend(config.local.iter().filter_map(|tool| unprepared(tool)));
    definition_lock::mark_blocked(&mut tools, &server_pool);
    records.extend(definition_lock::records(&config, &server_pool));
    let backends = backends(&config, parts, builtins, &tools, old);
    let offered = offer(tools, &backends, &server_pool, old, |tool| {
        Toolbox::limit_calls(tool, &config, &parts.limits);
    });
    let toolbox =
        gate(old.map(|old| &old.toolbox.policy.toolbox), config.defaults.max_concurrent.value);
    let policy = Policy::new(&config.defaults, toolbox);
    let choice = Choice::new(&config, old.map(|old| &old.choice));
    let parts = SnapshotParts {
        config,
        policy,
        log,
        server_pool,
        said: records,
        violations,
        known,
        choice,
        locals: Locals { masked, registrations },
    };
    Snapshot::new(offered, parts)
}

/// Registers on a blocking thread: a server may have a thousand schemas, each of which takes time
/// to compile.
async fn register_aside(
    config: &Arc<Config>,
    found: Discovered,
    known: Option<KnownTools>,
    old: Option<&Arc<Snapshot>>,
) -> Registration {
    let (config, old) = (Arc::clone(config), old.map(Arc::clone));
    let work = spawn_blocking(move || {
        let nothing = LocalRegistrations::default();
        let before = old.as_ref().map_or(&nothing, |old| &old.locals.registrations);
        register_again(&config, &found, known.as_ref(), before)
    });
    match work.await {
        Ok(registration) => registration,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that shuts down cancels it, and that drops this future as well.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Saves the known tools of the servers for the next run, if they changed.
pub(super) async fn remember(snapshot: &Snapshot, parts: &Parts, before: Option<&KnownTools>) {
    let known = &snapshot.known;
    if parts.purpose == Purpose::Call && !known.is_empty() && before != Some(known) {
        save_known(snapshot.config(), known).await;
    }
}

/// Keeps the log open across a change of configuration that does not affect it.
fn open_log(
    config: &Config,
    parts: &Parts,
    old: Option<&Arc<Snapshot>>,
) -> Result<ExecutionLog, LogError> {
    let options = LogOptions {
        dir: config.log.dir.value.clone(),
        retain_days: config.log.retain_days.value,
        max_bytes: config.log.max_bytes.value,
        keep_free: match config.log.keep_free.value {
            FreeSpace::Auto => KeepFree::Auto,
            FreeSpace::Bytes(bytes) => KeepFree::Bytes(bytes),
            FreeSpace::Percent(percent) => KeepFree::Percent(percent),
        },
        on_failure: match config.log.on_failure.value {
            OnLogFailure::Refuse => LogFailurePolicy::Refuse,
            OnLogFailure::Degrade => LogFailurePolicy::Degrade,
        },
        durability: match config.log.sync.value {
            LogSync::Os => Durability::Os,
            LogSync::Disk => Durability::Disk,
        },
        spool: match config.log.ship.value {
            LogShip::None => None,
            LogShip::Shared => Some(SpoolOptions {
                bytes_max: config.log.spool_max.value,
                shipped: parts.shipped.clone(),
            }),
        },
    };
    let secrets = config.secrets();
    let log = old.and_then(|old| Some((old.toolbox.log.as_ref()?, old.config().secrets())));
    match log {
        Some((log, known)) if *log.options() == options && known == secrets => Ok(log.clone()),
        _ => {
            let log =
                ExecutionLog::open(options, parts.redactors.log(config), parts.clock.clone())?;
            Ok(log.charged_to(parts.memory.clone()))
        }
    }
}

fn discover(
    config: &Config,
    parts: &Parts,
    builtins: &[Builtin],
    server_pool: &ServerPool,
    (masked, old): (&mut MaskedDefinitions, Option<&Arc<Snapshot>>),
) -> Discovered {
    let builtins = builtins.iter().map(|builtin| LocalDiscovery {
        definition: Arc::new(builtin.tool.definition()),
        settings: Some(Arc::new(builtin.settings.clone())),
        schemas: CompiledSchemas::default(),
    });
    let functions = parts.functions.iter().map(|tool| LocalDiscovery {
        definition: Arc::new(tool.definition()),
        settings: tool.settings().map(Arc::new),
        schemas: CompiledSchemas::default(),
    });
    let redactor = parts.redactors.descriptions(config);
    let before = old.map(|old| &old.locals.masked);
    let prepared = config.local.iter().filter(|tool| tool.prepared.problem.is_none());
    let scripts = prepared.map(|tool| {
        let definition = masked.mask(&tool.definition, &redactor, before);
        // Masking may have changed a schema.
        let is_as_compiled = Arc::ptr_eq(&definition, &tool.definition);
        let schemas =
            if is_as_compiled { tool.schemas.clone() } else { CompiledSchemas::default() };
        LocalDiscovery { definition, settings: Some(Arc::clone(&tool.settings)), schemas }
    });
    Discovered {
        local: functions.chain(scripts).chain(builtins).collect(),
        servers: server_pool.discovered(),
    }
}

/// The log record about a tool that could not be prepared.
fn unprepared(tool: &LocalTool) -> Option<Record> {
    let problem = tool.prepared.problem.as_ref()?;
    let text = format!("Tool '{}' (local tool) is not registered: {problem}", tool.definition.name);
    Some(Record { level: Level::Error, text })
}

/// Creates the backend of each tool. A script with an unchanged entry keeps its warm workers.
fn backends(
    config: &Config,
    parts: &Parts,
    builtins: Vec<Builtin>,
    tools: &[Arc<RegisteredTool>],
    old: Option<&Arc<Snapshot>>,
) -> Backends {
    let mut backends: Backends = HashMap::new();
    for Builtin { tool, .. } in builtins {
        backends.insert(tool.definition().name, (tool, RecordSource::Builtin));
    }
    // Of two local tools with one name, the offered definition must run.
    let first_wins = config.defaults.on_name_collision.value == NameCollision::FirstWins;
    for tool in &parts.functions {
        let name = tool.definition().name;
        if !(first_wins && backends.contains_key(&name)) {
            backends.insert(name, (tool.clone(), RecordSource::Function));
        }
    }
    let python = config.defaults.python.value.expose();
    let context = parts.sandbox_context(config);
    // Indexed by name, because a registry may be large. Of two with one name, the first counts.
    let registered: HashMap<&str, &RegisteredTool> =
        tools.iter().rev().map(|tool| (tool.definition.name.as_str(), &**tool)).collect();
    let before = old.map(|old| old.config().local.iter().rev());
    let before: HashMap<&str, &Arc<LocalTool>> =
        before.into_iter().flatten().map(|tool| (tool.definition.name.as_str(), tool)).collect();
    for local in &config.local {
        let name = &local.definition.name;
        if first_wins && backends.contains_key(name) {
            continue;
        }
        let Some(registered) = registered.get(name.as_str()) else { continue };
        let instances = registered.effective.max_instances.value;
        let unchanged = old.filter(|old| {
            let same_program = before.get(name.as_str()).is_some_and(|before| {
                Arc::ptr_eq(before, local)
                    || before.program == local.program
                        && before.tools_dir == local.tools_dir
                        && before.background.value == local.background.value
                        && before.sandbox.value == local.sandbox.value
                        && before.env == local.env
                        && before.prepared == local.prepared
            });
            same_program && old.config().defaults.python.value.expose() == python
        });
        let kept = unchanged.and_then(|old| {
            let tool = old.toolbox.resolve(&registered.name)?;
            let same = tool.registered.effective.max_instances.value == instances;
            same.then(|| tool.backend.clone())
        });
        let backend = kept.unwrap_or_else(|| {
            Arc::new(Script::new(local, python, instances, &parts.warm, &context))
        });
        backends.insert(name.clone(), (backend, RecordSource::Local));
    }
    backends
}

fn offer(
    tools: Vec<Arc<RegisteredTool>>,
    local: &Backends,
    server_pool: &ServerPool,
    old: Option<&Arc<Snapshot>>,
    limit: impl Fn(&mut ActiveTool),
) -> Vec<Arc<ActiveTool>> {
    let app_only = server_pool.app_only();
    tools
        .into_iter()
        .filter_map(|registered| {
            let own_name = &registered.definition.name;
            // A server's tool may share the name of a local one, and must not run it.
            let (backend, kind) = match &registered.source {
                ToolSource::Local => local.get(own_name)?.clone(),
                ToolSource::Mcp { mcp_name, .. } => {
                    let backend =
                        server_pool.backend(mcp_name, &registered.definition, &app_only)?;
                    (backend, RecordSource::Mcp)
                }
            };
            let before = old.and_then(|old| old.toolbox.resolve(&registered.name));
            if let Some(before) =
                before.filter(|before| before.is_same(&registered, &backend, kind))
            {
                return Some(Arc::clone(before));
            }
            let gate =
                gate(before.map(|tool| &tool.gate), registered.effective.max_instances.value);
            let mut tool = ActiveTool::new(registered, backend, gate, kind);
            limit(&mut tool);
            Some(Arc::new(tool))
        })
        .collect()
}

/// Reuses the gate, so that running calls stay counted. The new limit applies once the snapshot is
/// published.
fn gate(old: Option<&Arc<Gate>>, limit: u32) -> Arc<Gate> {
    old.cloned().unwrap_or_else(|| Arc::new(Gate::new(limit)))
}

fn load_known(config: &Config) -> Option<KnownTools> {
    let dir = &config.state_dir.value;
    KnownTools::load(dir).unwrap_or_else(|error| {
        tracing::warn!(
            "what earlier runs saw of the servers cannot be read in `{}`: {error}",
            dir.display()
        );
        None
    })
}

async fn save_known(config: &Config, known: &KnownTools) {
    let (dir, known) = (config.state_dir.value.clone(), known.clone());
    let shown = dir.display().to_string();
    let saved = spawn_blocking(move || known.save(&dir)).await;
    if let Ok(Err(error)) = saved {
        tracing::warn!("what the servers have cannot be remembered in `{shown}`: {error}");
    }
}
