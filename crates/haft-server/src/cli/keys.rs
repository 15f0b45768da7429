//! `haft keys create|list|revoke`: who may use the HTTP service.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use haft::Config;
use serde_json::{Value, json};

use super::{
    EXIT_CONFIG, EXIT_RUNTIME, Failure, Global, configuration_of_file, load, print_json, profile,
    said,
};
use crate::keys::{KeyError, KeyFile, Scope};
use crate::stderr::say;
use crate::terminal::{self, Paint};

/// Where the keys lie when there is no configuration.
const FILE_WITHOUT_CONFIG: &str = ".haft/keys.json";

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Create a key and print it; it is shown only once
    #[command(after_help = "Examples:
  haft keys create --scope admin --name me
  haft keys create --scope call --name agent > agent.key
  haft keys create --profile reader --name bot    sees `profiles.reader` on `/mcp`, nothing else

Only the key's hash is kept, so a lost key cannot be shown again: create another, then revoke the lost one.
A running server takes a new key within a second.")]
    Create {
        /// Permissions of the key
        #[arg(long, required_unless_present = "profile")]
        scope: Option<Scope>,
        /// Bind a call key to an entry of `profiles`: it may use that profile's MCP endpoint and nothing else
        #[arg(long, value_name = "PROFILE")]
        profile: Option<String>,
        /// Name of the key, shown in lists and in the log
        #[arg(long)]
        name: String,
    },
    /// List the keys, without their secrets
    List,
    /// Revoke a key: a running server refuses it within a second
    Revoke {
        /// The key's name
        name: String,
    },
}

pub(super) fn run(global: &Global, command: &KeysCommand) -> anyhow::Result<ExitCode> {
    // The service that uses the keys creates a missing registry when it starts.
    let config = load::is_named(global).then(|| load::load_without_registry(global)).transpose()?;
    let config = config.map(said);
    let path = config.as_ref().map(|config| config.api.keys_file.value.clone());
    let path = path.unwrap_or_else(|| PathBuf::from(FILE_WITHOUT_CONFIG));
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let file = KeyFile::new(path);
    match command {
        KeysCommand::Create { scope, profile, name } => {
            if let Some(profile) = profile {
                may_bind(global, config.as_ref(), *scope, profile)?;
            }
            create(global, &file, scope.unwrap_or(Scope::Call), profile.as_deref(), name)?;
            ignore_in_git(&folder);
        }
        KeysCommand::List => list(global, &file)?,
        KeysCommand::Revoke { name } => revoke(global, &file, name)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns true if a key may be bound to a profile: a slip would make one that opens nothing.
fn may_bind(
    global: &Global,
    config: Option<&Config>,
    scope: Option<Scope>,
    name: &str,
) -> anyhow::Result<()> {
    if scope == Some(Scope::Admin) {
        let remedy = "leave out `--scope admin`, or `--profile`";
        let message = "an admin key may do everything and cannot be bound to a profile";
        return Err(Failure::new(EXIT_CONFIG, message, remedy).into());
    }
    match config {
        Some(config) => profile::require(config, name),
        None => profile::require(&configuration_of_file(global)?, name),
    }
}

fn create(
    global: &Global,
    file: &KeyFile,
    scope: Scope,
    profile: Option<&str>,
    name: &str,
) -> anyhow::Result<()> {
    let created = match profile {
        Some(profile) => file.create_for_profile(name, profile),
        None => file.create(name, scope),
    };
    let (key, entry) = created.map_err(failed)?;
    let path = file.path().display().to_string();
    if global.json {
        return print_json(&json!({
            "name": entry.name, "scope": entry.scope, "key": key.expose(),
            "profile": entry.profile, "created": entry.created.to_string(), "file": path,
        }));
    }
    terminal::line(key.expose());
    let bound = profile.map(|profile| format!(" for the profile `{profile}`")).unwrap_or_default();
    say!("created the {scope} key `{name}`{bound}; it is shown only now, its hash is in {path}");
    say!("send it as `X-API-Key: KEY` or `Authorization: Bearer KEY`");
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
                    "name": key.name, "scope": key.scope, "profile": key.profile,
                    "created": key.created.to_string(),
                    "last_used": used.map(|time| time.to_string()),
                })
            })
            .collect();
        return print_json(&rows);
    }
    if keys.is_empty() {
        terminal::line("no keys: `haft keys create --scope admin --name me` creates one");
        return Ok(());
    }
    let time = |time: jiff::Timestamp| time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let rows: Vec<Vec<String>> = keys
        .iter()
        .zip(&used)
        .map(|(key, used)| {
            let used = used.map_or_else(|| "never".to_owned(), time);
            let profile = key.profile.clone().unwrap_or_else(|| "-".to_owned());
            vec![key.name.clone(), key.scope.to_string(), profile, time(key.created), used]
        })
        .collect();
    let head = ["NAME", "SCOPE", "PROFILE", "CREATED (UTC)", "LAST USED (UTC)"];
    terminal::table(Paint::stdout(global.color), &head, &rows);
    Ok(())
}

fn revoke(global: &Global, file: &KeyFile, name: &str) -> anyhow::Result<()> {
    let revoked = file.revoke(name).map_err(failed)?;
    if global.json {
        return print_json(&json!({"name": revoked.name, "outcome": "revoked"}));
    }
    terminal::line(&format!("revoked the {} key `{name}`", revoked.scope));
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
