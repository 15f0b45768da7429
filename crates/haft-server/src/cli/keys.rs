//! `haft keys create|list|revoke`: who may use the HTTP service.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::{EXIT_CONFIG, EXIT_RUNTIME, Failure, Global, configuration, load, print_json};
use crate::console::{self, Paint};
use crate::keys::{KeyError, KeyFile, Scope};

/// Where the keys lie when there is no configuration.
const FILE_WITHOUT_CONFIG: &str = ".haft/keys.json";

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Create a key and print it, this once
    #[command(after_help = "Examples:
  haft keys create --scope admin --name me
  haft keys create --scope call --name agent > agent.key

Only the key's hash is kept, so a lost key cannot be shown again: create another, then revoke the lost one.
A running server takes a new key within a second.")]
    Create {
        /// What the key permits
        #[arg(long)]
        scope: Scope,
        /// What to call it; shown in lists and in the log
        #[arg(long)]
        name: String,
    },
    /// List the keys, without their texts
    List,
    /// Revoke a key: a running server refuses it within a second
    Revoke {
        /// The key's name
        name: String,
    },
}

pub(super) fn run(global: &Global, command: &KeysCommand) -> anyhow::Result<ExitCode> {
    let path = keys_file(global)?;
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let file = KeyFile::new(path);
    match command {
        KeysCommand::Create { scope, name } => {
            create(global, &file, *scope, name)?;
            ignore_in_git(&folder);
        }
        KeysCommand::List => list(global, &file)?,
        KeysCommand::Revoke { name } => revoke(global, &file, name)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn keys_file(global: &Global) -> anyhow::Result<PathBuf> {
    if load::is_named(global) {
        return Ok(configuration(global)?.api.keys_file.value);
    }
    Ok(PathBuf::from(FILE_WITHOUT_CONFIG))
}

fn create(global: &Global, file: &KeyFile, scope: Scope, name: &str) -> anyhow::Result<()> {
    let (key, entry) = file.create(name, scope).map_err(failed)?;
    let path = file.path().display().to_string();
    if global.json {
        return print_json(&json!({
            "name": entry.name, "scope": entry.scope, "key": key.expose(),
            "created": entry.created.to_string(), "file": path,
        }));
    }
    console::line(key.expose());
    eprintln!("created the {scope} key `{name}`; it is shown only now, its hash is in {path}");
    eprintln!("send it as `X-API-Key: KEY` or `Authorization: Bearer KEY`");
    Ok(())
}

fn list(global: &Global, file: &KeyFile) -> anyhow::Result<()> {
    let keys = file.list().map_err(failed)?;
    let used = file.last_used(&keys);
    if global.json {
        let rows: Vec<Value> = keys
            .iter()
            .zip(&used)
            .map(|(key, used)| {
                json!({
                    "name": key.name, "scope": key.scope, "created": key.created.to_string(),
                    "last_used": used.map(|time| time.to_string()),
                })
            })
            .collect();
        return print_json(&rows);
    }
    if keys.is_empty() {
        console::line("no keys: `haft keys create --scope admin --name me` creates one");
        return Ok(());
    }
    let time = |time: jiff::Timestamp| time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let rows: Vec<Vec<String>> = keys
        .iter()
        .zip(&used)
        .map(|(key, used)| {
            let used = used.map_or_else(|| "never".to_owned(), time);
            vec![key.name.clone(), key.scope.to_string(), time(key.created), used]
        })
        .collect();
    let head = ["NAME", "SCOPE", "CREATED (UTC)", "LAST USED (UTC)"];
    console::table(Paint::stdout(global.color), &head, &rows);
    Ok(())
}

fn revoke(global: &Global, file: &KeyFile, name: &str) -> anyhow::Result<()> {
    let revoked = file.revoke(name).map_err(failed)?;
    if global.json {
        return print_json(&json!({"name": revoked.name, "outcome": "revoked"}));
    }
    console::line(&format!("revoked the {} key `{name}`", revoked.scope));
    Ok(())
}

fn failed(error: KeyError) -> anyhow::Error {
    let code = match &error {
        KeyError::Name { .. } | KeyError::Invalid { .. } | KeyError::Exposed { .. } => EXIT_CONFIG,
        KeyError::Io { .. }
        | KeyError::Taken { .. }
        | KeyError::Unknown { .. }
        | KeyError::TooMany
        | KeyError::Random(_) => EXIT_RUNTIME,
    };
    let remedy = error.remedy();
    Failure::new(code, format!("{:#}", anyhow::Error::new(error)), remedy).into()
}

/// The state folder lies beside the configuration, and that is often a repository.
fn ignore_in_git(state_dir: &Path) {
    // Any other folder is the user's own.
    let is_ours = state_dir.file_name().is_some_and(|name| name == ".haft");
    let path = state_dir.join(".gitignore");
    if is_ours
        && !path.exists()
        && let Err(error) = std::fs::write(&path, "/keys*\n")
    {
        tracing::warn!("`{}` cannot be written: {error}", path.display());
    }
}
