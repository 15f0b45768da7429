//! `haft keys create|list|rotate|revoke`: who may use the HTTP service.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use haft::config::call_limits::CallLimits;
use haft::config::log_quota::LogQuota;
use haft::config::quantity::parse_duration;
use haft::record::Redactor;
use haft::{AccessLists, Config};
use serde_json::{Value, json};

use super::{
    EXIT_CONFIG, EXIT_CONNECT, EXIT_RUNTIME, Failure, Global, block_on, configuration_of_file,
    key_store, load, print_json, profile, said,
};
use crate::audit::{AuditAction, AuditLog, AuditOutcome, AuditResult, unreadable};
use crate::keys::{
    Key, KeyEntry, KeyError, KeyFile, KeyStore, NewKey, Scope, chain, patterns, texts,
};
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
  haft keys create --scope approve --name ada      answers approvals in the inbox, changes nothing
  haft keys create --profile reader --name bot    sees `profiles.reader` on `/mcp`, nothing else
  haft keys create --scope call --name ci --rate 60/min --quota 10000/day --expires 30d --tools 'read_*'

Only the key's hash is kept, so a lost key cannot be shown again: `haft keys rotate` gives it a new secret.
A running server takes a new key within a second.")]
    Create(CreateArgs),
    /// List the keys, without their secrets
    List,
    /// Give a key a new secret and print it; the old one may work for a while
    #[command(after_help = "Examples:
  haft keys rotate agent                  the old secret ends at once
  haft keys rotate agent --overlap 1h     both work for an hour

Name, limits and everything that belongs to the key stay.")]
    Rotate {
        /// The key's name
        name: String,
        /// Time during which the old secret works too, such as `1h`
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        overlap: Option<Duration>,
        /// New expiry, counted from now, such as `30d`; without it the expiry stays
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        expires: Option<Duration>,
    },
    /// Revoke a key: a running server refuses it within a second
    Revoke {
        /// The key's name
        name: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Permissions of the key
    #[arg(long, required_unless_present = "profile")]
    scope: Option<Scope>,
    /// Bind a call key to an entry of `profiles`: it may use that profile's MCP endpoint and nothing else
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Name of the key, shown in lists and in the log
    #[arg(long)]
    name: String,
    /// The highest rate of its calls, such as `60/min`, `5/s` or `1000/h`
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Calls that may come at once under `--rate`; by default the calls of one second
    #[arg(long, value_name = "CALLS")]
    burst: Option<u32>,
    /// The most calls on one UTC day, such as `10000/day`
    #[arg(long, value_name = "QUOTA")]
    quota: Option<String>,
    /// The most bytes of its entries in the log on one UTC day, such as `100MB/day`; entries beyond it have no
    /// arguments and no answer
    #[arg(long, value_name = "QUOTA")]
    log_quota: Option<String>,
    /// Time after which it is refused, such as `30d`
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    expires: Option<Duration>,
    /// The only tools that it sees and calls, by name or pattern such as `read_*` or `files/read_*`
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    tools: Vec<String>,
    /// The only servers that it sees, by name or pattern; `local` stands for tools that run here
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    servers: Vec<String>,
}

pub(super) fn run(global: &Global, command: &KeysCommand) -> anyhow::Result<ExitCode> {
    // The service that uses the keys creates a missing registry when it starts.
    let config = load::is_named(global).then(|| load::load_without_registry(global)).transpose()?;
    let config = config.map(said);
    let path = config.as_ref().map(|config| config.api.keys_file.value.clone());
    let path = path.unwrap_or_else(|| PathBuf::from(FILE_WITHOUT_CONFIG));
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let audit = match &config {
        Some(config) => AuditLog::of(config),
        None => AuditLog::new(folder.join("audit")),
    };
    block_on(async {
        let store: Box<dyn KeyStore> = match &config {
            Some(config) => key_store::open(config).await?,
            None => Box::new(KeyFile::new(path)),
        };
        change(global, command, config.as_ref(), &*store, (&audit, &folder)).await
    })
}

async fn change(
    global: &Global,
    command: &KeysCommand,
    config: Option<&Config>,
    store: &dyn KeyStore,
    (audit, folder): (&AuditLog, &Path),
) -> anyhow::Result<ExitCode> {
    match command {
        KeysCommand::Create(args) => {
            if let Some(profile) = &args.profile {
                may_bind(global, config, args.scope, profile)?;
            }
            let create = create(global, store, args);
            audited(audit, store, "key.create", &args.name, create).await?;
            if config.is_none_or(|config| config.shared.is_none()) {
                ignore_in_git(folder);
            }
        }
        KeysCommand::List => list(global, store).await?,
        KeysCommand::Rotate { name, overlap, expires } => {
            let overlap = overlap.unwrap_or_default();
            let rotate = rotate(global, store, name, overlap, *expires);
            audited(audit, store, "key.rotate", name, rotate).await?;
        }
        KeysCommand::Revoke { name } => {
            audited(audit, store, "key.revoke", name, revoke(global, store, name)).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Records a change of a key. Without its beginning in the audit log, nothing is changed.
async fn audited(
    audit: &AuditLog,
    store: &dyn KeyStore,
    action: &str,
    name: &str,
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let state = async || match store.list().await {
        Ok(keys) => {
            let key = keys.iter().find(|key| key.entry.name == name);
            key.map(|key| key.entry.shown())
        }
        Err(error) => Some(unreadable(chain(&error))),
    };
    let begun = AuditAction {
        who: format!("cli:{}", user.as_deref().unwrap_or("unknown")),
        from: "terminal".to_owned(),
        action: action.to_owned(),
        target: Some(name.to_owned()),
        before: state().await,
    };
    let redactor = Redactor::new([]);
    let id = audit.begin(begun, &redactor).map_err(|error| {
        let dir = audit.dir().display();
        let message =
            format!("nothing was changed: the audit log `{dir}` cannot be written: {error}");
        Failure::new(EXIT_RUNTIME, message, "make room or fix its permissions")
    })?;
    let done = work.await;
    let outcome = if done.is_ok() { AuditOutcome::Done } else { AuditOutcome::Failed };
    let after = if done.is_ok() { state().await } else { None };
    let result = AuditResult { outcome, target: None, after, status: None };
    if let Err(error) = audit.end(&id, result, &redactor) {
        tracing::error!(%error, "the end of the change is not in the audit log");
    }
    done
}

/// Returns true if a key may be bound to a profile: a slip would make one that opens nothing.
fn may_bind(
    global: &Global,
    config: Option<&Config>,
    scope: Option<Scope>,
    name: &str,
) -> anyhow::Result<()> {
    if scope == Some(Scope::Approve) {
        let remedy = "leave out `--scope approve`, or `--profile`";
        let message = "an approve key sees the calls of all and cannot be bound to a profile";
        return Err(Failure::new(EXIT_CONFIG, message, remedy).into());
    }
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

async fn create(global: &Global, store: &dyn KeyStore, args: &CreateArgs) -> anyhow::Result<()> {
    let invalid = |problem: String| Failure::new(EXIT_CONFIG, problem, CREATE_REMEDY);
    let limits = CallLimits::parse(args.rate.as_deref(), args.burst, args.quota.as_deref());
    let log_quota = args.log_quota.as_deref().map(LogQuota::parse).transpose();
    let new = NewKey {
        name: args.name.clone(),
        scope: args.scope.unwrap_or(Scope::Call),
        profile: args.profile.clone(),
        expires: args.expires,
        limits: limits.map_err(invalid)?,
        lists: AccessLists {
            tools: patterns("--tools", &args.tools).map_err(invalid)?,
            servers: patterns("--servers", &args.servers).map_err(invalid)?,
        },
        log_quota: log_quota.map_err(invalid)?,
    };
    let (key, entry) = store.create(new).await.map_err(failed)?;
    if global.json {
        return print_json(&shown_with_secret(&entry, &key, store));
    }
    terminal::line(key.expose());
    let KeyEntry { name, scope, profile, .. } = &entry;
    let bound = profile.as_ref().map(|it| format!(" for the profile `{it}`")).unwrap_or_default();
    let location = store.location();
    say!(
        "created the {scope} key `{name}`{bound}; it is shown only now, its hash is in {location}"
    );
    say!("send it as `X-API-Key: KEY` or `Authorization: Bearer KEY`");
    Ok(())
}

const CREATE_REMEDY: &str = "`haft keys create --help` shows examples";

async fn rotate(
    global: &Global,
    store: &dyn KeyStore,
    name: &str,
    overlap: Duration,
    expires: Option<Duration>,
) -> anyhow::Result<()> {
    let (key, entry) = store.rotate(name, overlap, expires).await.map_err(failed)?;
    if global.json {
        return print_json(&shown_with_secret(&entry, &key, store));
    }
    terminal::line(key.expose());
    let old = match entry.previous {
        Some(previous) => format!("the old one works until {}", previous.until),
        None => "the old one has ended".to_owned(),
    };
    say!("gave the {} key `{name}` a new secret, which is shown only now; {old}", entry.scope);
    Ok(())
}

fn shown_with_secret(entry: &KeyEntry, key: &Key, store: &dyn KeyStore) -> Value {
    let mut shown = entry.shown();
    shown["key"] = json!(key.expose());
    shown["file"] = json!(store.location());
    shown
}

async fn list(global: &Global, store: &dyn KeyStore) -> anyhow::Result<()> {
    let stored = store.list().await.map_err(failed)?;
    let (keys, used): (Vec<KeyEntry>, Vec<_>) =
        stored.into_iter().map(|key| (key.entry, key.last_used)).unzip();
    if global.json {
        let row = |(key, used): (&KeyEntry, &Option<jiff::Timestamp>)| {
            let mut row = key.shown();
            row["last_used"] = json!(used.map(|time| time.to_string()));
            row
        };
        return print_json(&keys.iter().zip(&used).map(row).collect::<Vec<Value>>());
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
            let expires = match key.expires {
                None => "-".to_owned(),
                Some(at) if at <= jiff::Timestamp::now() => "expired".to_owned(),
                Some(at) => time(at),
            };
            let mut row =
                vec![key.name.clone(), key.scope.to_string(), profile, time(key.created), used];
            row.extend([expires, limits(key)]);
            row
        })
        .collect();
    // Columns that say nothing are left out.
    let head = ["NAME", "SCOPE", "PROFILE", "CREATED (UTC)", "LAST USED (UTC)"];
    let more = [(5, "EXPIRES (UTC)"), (6, "LIMITS")];
    let more: Vec<_> =
        more.into_iter().filter(|(at, _)| rows.iter().any(|row| row[*at] != "-")).collect();
    let head: Vec<&str> = head.into_iter().chain(more.iter().map(|(_, name)| *name)).collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row[..5].iter().chain(more.iter().map(|(at, _)| &row[*at])).cloned().collect())
        .collect();
    terminal::table(Paint::stdout(global.color), &head, &rows);
    Ok(())
}

/// The limits of a key in one cell.
fn limits(key: &KeyEntry) -> String {
    let CallLimits { rate, burst, quota } = key.limits;
    let list = |name: &str, patterns: Option<Vec<String>>| {
        patterns.map(|patterns| format!("{name} {}", patterns.join(",")))
    };
    let parts: Vec<String> = [
        rate.map(|rate| rate.to_string()),
        burst.map(|burst| format!("burst {burst}")),
        quota.map(|quota| quota.to_string()),
        key.log_quota.map(|quota| format!("log {quota}")),
        list("tools", texts(key.lists.tools.as_ref())),
        list("servers", texts(key.lists.servers.as_ref())),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(" ") }
}

async fn revoke(global: &Global, store: &dyn KeyStore, name: &str) -> anyhow::Result<()> {
    let revoked = store.revoke(name).await.map_err(failed)?;
    if global.json {
        return print_json(&json!({"name": revoked.name, "outcome": "revoked"}));
    }
    terminal::line(&format!("revoked the {} key `{name}`", revoked.scope));
    Ok(())
}

pub(super) fn failed(error: KeyError) -> anyhow::Error {
    let code = match &error {
        KeyError::Name { .. }
        | KeyError::Parts { .. }
        | KeyError::Invalid { .. }
        | KeyError::Exposed { .. } => EXIT_CONFIG,
        KeyError::Io { .. }
        | KeyError::Taken { .. }
        | KeyError::Unknown { .. }
        | KeyError::TooMany
        | KeyError::OutcomeUnknown { .. }
        | KeyError::Random(_) => EXIT_RUNTIME,
        KeyError::Unavailable { .. } => EXIT_CONNECT,
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
