//! `haft shared migrate|status|import|export|approvals`: the database that replicas share.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use haft::Config;
use haft::config::choices::StoreKind;
use haft::config::shared::SharedConfig;
use haft::config::{RegistryFiles, RegistryTexts, SERVERS_FILE, TOOLS_FILE, read_registry};
use haft::live::{Documents, RegistryStore as _, StoreError, Stored};
use haft_postgres::{Database, DatabaseStatus, Migrations, Replica, Settings};
use serde_json::{Value, json};

use super::serve::shared::failure;
use super::shared_approvals::ApprovalsCommand;
use super::{
    EXIT_CONFIG, EXIT_CONNECT, EXIT_RUNTIME, Failure, Global, block_on, load, print_json,
    shared_approvals, shared_keys,
};
use crate::shared;
use crate::stderr::say;
use crate::terminal::{self, Paint};

/// Age of a heartbeat from which on a replica counts as dead.
const DEAD_AFTER: Duration = Duration::from_secs(10);
/// The revision of a registry that was never changed.
const FIRST_REVISION: &str = "0-";

#[derive(Debug, Subcommand)]
pub(super) enum SharedCommand {
    /// Create or change the tables in the database; run it before an upgrade with `migrate: manual`
    Migrate,
    /// Show the database, its registry and the replicas that use it
    Status,
    /// Copy the registry's files and the keys into the database
    #[command(after_help = "\
Copies tools.json and mcp.json of `registry.dir`, and the keys of `api.keys_file` that the database does not have. Scripts stay in the folder, which every replica needs.
A registry in the database that was changed already is not replaced without --replace; its history keeps it.")]
    Import(ImportArgs),
    /// Write the registry in the database into files
    Export(ExportArgs),
    /// List or remove the answers `always` that hold at every replica
    Approvals {
        #[command(subcommand)]
        command: Option<ApprovalsCommand>,
    },
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Folder with tools.json and mcp.json [default: `registry.dir`]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Replace a registry that was changed already
    #[arg(long)]
    replace: bool,
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Folder for tools.json and mcp.json, which must not be there yet
    #[arg(long, value_name = "FOLDER")]
    dir: PathBuf,
}

pub(super) fn run(global: &Global, command: &SharedCommand) -> anyhow::Result<ExitCode> {
    let config = load::load_without_registry(global)?;
    let Some(settings) = config.shared.as_deref() else {
        let remedy = "add `shared: {url: \"${DATABASE_URL}\"}` to haft.yaml";
        return Err(Failure::new(EXIT_CONFIG, "no shared database is configured", remedy).into());
    };
    match command {
        SharedCommand::Migrate => block_on(migrate(global, settings))?,
        SharedCommand::Status => block_on(status(global, &config, settings))?,
        SharedCommand::Import(args) => block_on(import(global, &config, settings, args))?,
        SharedCommand::Export(args) => block_on(export(global, &config, settings, args))?,
        SharedCommand::Approvals { command } => {
            block_on(shared_approvals::run(global, settings, command.as_ref()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn migrate(global: &Global, settings: &SharedConfig) -> anyhow::Result<()> {
    let Migrations { before, now } =
        Database::migrate(&shared::settings(settings)).await.map_err(|error| failure(&error))?;
    if global.json {
        return print_json(&json!({"before": before, "version": now}));
    }
    if before == now {
        terminal::line(&format!("the tables are at version {now} already"));
    } else {
        terminal::line(&format!("migrated the tables from version {before} to {now}"));
    }
    Ok(())
}

/// Opens the database for a command, which never changes its tables.
pub(super) async fn open(settings: &SharedConfig) -> anyhow::Result<Database> {
    let settings = Settings { migrates: false, ..shared::settings(settings) };
    Ok(Database::open(settings).await.map_err(|error| failure(&error))?)
}

async fn status(global: &Global, config: &Config, settings: &SharedConfig) -> anyhow::Result<()> {
    let status = open(settings).await?.status().await.map_err(|error| failure(&error))?;
    let own = shared::config_digest(config);
    if global.json {
        return print_json(&status_json(settings, &status));
    }
    let DatabaseStatus { server_version, schema_version, revision, keys, calls, replicas, .. } =
        &status;
    for (what, text) in [
        ("database", format!("{}, PostgreSQL {server_version}", settings.url.value.shown())),
        ("tables", format!("version {schema_version}")),
        ("registry", format!("revision {revision}")),
        ("keys", keys.to_string()),
        ("log", format!("about {calls} entries")),
    ] {
        let paint = Paint::stdout(global.color);
        terminal::line(&format!("{} {text}", paint.dim(&format!("{what:<10}"))));
    }
    if replicas.is_empty() {
        terminal::line("no replica is running");
        return Ok(());
    }
    let row = |replica: &Replica| {
        let drift = if replica.config == own { "" } else { " (differs)" };
        let is_dead = replica.age >= DEAD_AFTER;
        let seen =
            format!("{}s ago{}", replica.age.as_secs(), if is_dead { " (dead)" } else { "" });
        let revision = replica.revision.clone().unwrap_or_else(|| "-".to_owned());
        let problem = replica.problem.clone().unwrap_or_else(|| "-".to_owned());
        let config = format!("{}{drift}", replica.config);
        let number = replica.number.to_string();
        let (address, version) = (replica.address.clone(), replica.version.clone());
        vec![number, address, seen, version, revision, config, problem]
    };
    let rows: Vec<Vec<String>> = replicas.iter().map(row).collect();
    let head = ["REPLICA", "ADDRESS", "SEEN", "VERSION", "REVISION", "CONFIG", "PROBLEM"];
    terminal::table(Paint::stdout(global.color), &head, &rows);
    Ok(())
}

fn status_json(settings: &SharedConfig, status: &DatabaseStatus) -> Value {
    let replicas = status.replicas.iter().map(|replica| {
        json!({
            "number": replica.number, "id": replica.id.to_string(), "address": replica.address,
            "version": replica.version, "revision": replica.revision, "config": replica.config,
            "problem": replica.problem, "age_secs": replica.age.as_secs(),
            "alive": replica.age < DEAD_AFTER,
        })
    });
    json!({
        "url": settings.url.value.shown(), "server_version": status.server_version,
        "schema_version": status.schema_version, "works_from": status.works_from,
        "revision": status.revision, "keys": status.keys, "calls": status.calls,
        "replicas": replicas.collect::<Vec<_>>(),
    })
}

async fn import(
    global: &Global,
    config: &Config,
    settings: &SharedConfig,
    args: &ImportArgs,
) -> anyhow::Result<()> {
    let dir = scripts_dir(config)?;
    let from = args.dir.clone().unwrap_or_else(|| dir.clone());
    let RegistryFiles { tools, servers, .. } = read_registry(&from);
    let text = |name: &str, text: Result<String, String>| {
        text.map_err(|cause| {
            let problem = format!("`{}` cannot be read: {cause}", from.join(name).display());
            Failure::new(EXIT_CONFIG, problem, "name the folder of the files with `--dir`")
        })
    };
    let new = Documents { tools: text(TOOLS_FILE, tools)?, servers: text(SERVERS_FILE, servers)? };
    check(global, dir, &new)?;
    let database = open(settings).await?;
    shared_keys::import(config, database.clone()).await?;
    let registry = database.registry("haft shared import");
    let Stored { documents: old, revision } =
        registry.load().await.map_err(|error| store_failure(&error))?;
    if old == new {
        terminal::line(&format!("the database has this registry already, at revision {revision}"));
        return Ok(());
    }
    if !revision.as_str().starts_with(FIRST_REVISION) && !args.replace {
        let problem =
            format!("the registry in the database was changed already: it is at {revision}");
        let remedy =
            "compare it with `haft shared export --dir FOLDER`, then repeat with `--replace`";
        return Err(Failure::new(EXIT_CONFIG, problem, remedy).into());
    }
    let imported = registry.commit(&revision, &new).await.map_err(|error| store_failure(&error))?;
    if global.json {
        return print_json(&json!({"revision": imported.as_str(), "before": revision.as_str()}));
    }
    terminal::line(&format!("imported `{}` as revision {imported}", from.display()));
    say!("every replica needs the scripts of local tools in its `registry.dir`");
    Ok(())
}

/// Checks that the configuration is valid with the documents, as a replica would load them.
fn check(global: &Global, dir: &Path, new: &Documents) -> anyhow::Result<()> {
    let texts = RegistryTexts {
        dir: dir.to_owned(),
        tools: new.tools.clone(),
        servers: new.servers.clone(),
    };
    load::check_with_registry(global, texts)
}

async fn export(
    global: &Global,
    config: &Config,
    settings: &SharedConfig,
    args: &ExportArgs,
) -> anyhow::Result<()> {
    scripts_dir(config)?;
    let registry = open(settings).await?.registry("haft shared export");
    let Stored { documents, revision } =
        registry.load().await.map_err(|error| store_failure(&error))?;
    let paths = [(TOOLS_FILE, &documents.tools), (SERVERS_FILE, &documents.servers)]
        .map(|(name, text)| (args.dir.join(name), text));
    if let Some((there, _)) = paths.iter().find(|(path, _)| path.exists()) {
        let problem = format!("`{}` is there already", there.display());
        return Err(Failure::new(EXIT_CONFIG, problem, "name another folder with `--dir`").into());
    }
    let unwritten = |path: &Path, error: &std::io::Error| {
        let problem = format!("cannot write `{}`: {error}", path.display());
        Failure::new(EXIT_RUNTIME, problem, "name a folder that you may write to")
    };
    std::fs::create_dir_all(&args.dir).map_err(|error| unwritten(&args.dir, &error))?;
    for (path, text) in &paths {
        // Private, because entries may hold secrets.
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| unwritten(path, &error))?;
    }
    if global.json {
        return print_json(&json!({"revision": revision.as_str(), "dir": args.dir}));
    }
    terminal::line(&format!("wrote revision {revision} to `{}`", args.dir.display()));
    Ok(())
}

/// The folder of the scripts of a shared registry.
fn scripts_dir(config: &Config) -> anyhow::Result<&PathBuf> {
    let dir = config.registry_dir.as_ref();
    let dir = dir.filter(|_| config.registry_store.value == StoreKind::Shared);
    dir.map(|dir| &dir.value).ok_or_else(|| {
        let remedy = "write `registry: {store: shared, dir: ./tools}`";
        Failure::new(EXIT_CONFIG, "the registry is not in the database", remedy).into()
    })
}

fn store_failure(error: &StoreError) -> Failure {
    let code = match error {
        StoreError::Unavailable { .. } | StoreError::Unknown { .. } => EXIT_CONNECT,
        StoreError::Conflict | StoreError::Read { .. } | StoreError::Write { .. } => EXIT_RUNTIME,
    };
    Failure::new(code, error.to_string(), error.remedy())
}
