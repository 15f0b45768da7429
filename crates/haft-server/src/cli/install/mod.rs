//! `haft install` and `haft uninstall`: Haft in the files of MCP clients.

pub(super) mod clients;
pub(super) mod entry;
mod list;
mod remove;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use haft::config::choices::Surface;
use haft_config::edit::Document;

use super::mcp::parse_surface;
use super::user_file::{UserFile, broken};
use super::{EXIT_CONFIG, EXIT_RUNTIME, Failure, Global, load, profile};
use clients::{Client, Folders, Scope};
use entry::{Launch, entry, says};
use report::Placed;

pub(super) use remove::uninstall;

/// The name of the program on the path.
const PROGRAM: &str = "haft";

/// Which entry of which file.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// Audience of the entry [default: project for claude, vscode and cursor, otherwise user]
    #[arg(long, value_enum)]
    scope: Option<Scope>,
    /// Name of the entry in the client
    #[arg(long, default_value = "haft", value_parser = parse_name)]
    name: String,
    /// Change the file; a copy of the old one is kept beside it
    #[arg(long, requires = "client")]
    write: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft install                          which clients are there, and which have Haft already?
  haft install claude                   print the entry and where it belongs
  haft install claude --write           write it into .mcp.json of this folder
  haft install cursor --scope user --write
  haft install codex --profile reader --write
  haft install vscode --url http://127.0.0.1:7300/mcp --key-env HAFT_KEY

The entry starts this program with the configuration in use: the file of `-c`, otherwise HAFT_CONFIG, otherwise
haft.yaml of this folder. With --url the client asks a running `haft serve` instead.")]
pub(super) struct InstallArgs {
    /// The client; without one, all are listed
    #[arg(value_enum)]
    client: Option<Client>,
    #[command(flatten)]
    target: Target,
    /// Replace an entry of the same name
    #[arg(long, requires = "write")]
    force: bool,
    /// Show only this profile of the configuration
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    profile: Option<String>,
    /// Show three tools that find, describe and call all others (search), or all tools
    #[arg(long, conflicts_with = "url", value_parser = parse_surface)]
    surface: Option<Surface>,
    /// Address of a running Haft to use instead of starting one; for a profile `.../mcp/NAME`
    #[arg(long, value_parser = parse_url)]
    url: Option<String>,
    /// The variable that holds the key for that address
    #[arg(long, value_name = "VARIABLE", requires = "url", value_parser = parse_variable)]
    key_env: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft uninstall claude                 show what would go
  haft uninstall claude --write")]
pub(super) struct UninstallArgs {
    /// The client
    #[arg(value_enum)]
    client: Client,
    #[command(flatten)]
    target: Target,
    /// Remove the entry even if it does not lead to Haft
    #[arg(long, requires = "write")]
    force: bool,
}

pub(super) fn install(global: &Global, args: &InstallArgs) -> anyhow::Result<ExitCode> {
    let folders = Folders::from_process()?;
    let Some(client) = args.client else {
        return list::run(global, &folders);
    };
    let (scope, path) = place(client, args.target.scope, &folders)?;
    let name = &args.target.name;
    let Launched { launch, variables } = launch(global, args, scope, &path, &folders)?;
    let wanted = entry(client, name, &launch)?;
    let placed = Placed { client, scope, path: &path, name, entry: &wanted, variables: &variables };
    if !args.target.write {
        return placed.print(global);
    }
    let file = UserFile::read(&path)?;
    let document = Document::read(file.text(), client.syntax()).map_err(|it| broken(&path, &it))?;
    let known = document.entries(client.section()).map_err(|it| broken(&path, &it))?;
    let known = known.get(name);
    if known.is_some_and(|known| says(known, &wanted)) {
        return placed.is_there(global);
    }
    if let Some(known) = known.filter(|_| !args.force) {
        return Err(placed.is_taken(known));
    }
    let text = document.put(client.section(), name, &wanted).map_err(|it| broken(&path, &it))?;
    let backup = file.replace(&text)?;
    placed.is_written(global, backup.as_deref())
}

/// The file of a scope, or of the scope that is usual for the client.
fn place(
    client: Client,
    scope: Option<Scope>,
    folders: &Folders,
) -> anyhow::Result<(Scope, PathBuf)> {
    let scope = scope.unwrap_or(client.scopes()[0]);
    if !client.scopes().contains(&scope) {
        let message = format!("{} has no file for a project", client.title());
        return Err(Failure::new(EXIT_CONFIG, message, "use `--scope user`").into());
    }
    let path = client.file(scope, folders).ok_or_else(|| {
        Failure::new(EXIT_RUNTIME, "there is no home folder: HOME is not set", "set HOME")
    })?;
    Ok((scope, path))
}

/// The way in which the client reaches Haft, and what it must provide for that.
struct Launched {
    launch: Launch,
    /// The variables that the configuration refers to.
    variables: Vec<String>,
}

fn launch(
    global: &Global,
    args: &InstallArgs,
    scope: Scope,
    target: &Path,
    folders: &Folders,
) -> anyhow::Result<Launched> {
    if let Some(url) = &args.url {
        let launch = Launch::Remote { url: url.clone(), key_env: args.key_env.clone() };
        return Ok(Launched { launch, variables: args.key_env.iter().cloned().collect() });
    }
    let files = load::files(global)?;
    if files.iter().any(|file| absolute(file).is_ok_and(|file| is_same(&file, target))) {
        let shown = target.display();
        let message = format!("Haft reads `{shown}`, so an entry in it would start Haft from Haft");
        let remedy = format!("take its servers over first: `haft import {shown} --write`");
        return Err(Failure::new(EXIT_CONFIG, message, remedy).into());
    }
    // A client that cannot start it would only report that the server failed. A broken entry is not a reason: a
    // variable that is not set here may be set where the client runs.
    let (config, _) = load::load_usable(global, files.clone())?;
    for warning in &config.warnings {
        tracing::warn!("{warning}; {}", warning.remedy);
    }
    let program = program(scope)?;
    let mut words = vec!["mcp".to_owned()];
    if let Some(name) = &args.profile {
        profile::require(&config, name)?;
        words.extend(["--profile".to_owned(), name.clone()]);
    }
    if let Some(surface) = args.surface {
        words.extend(["--surface".to_owned(), surface.word().to_owned()]);
    }
    for file in &files {
        words.extend(["-c".to_owned(), word(&config_path(file, scope, folders)?)?]);
    }
    if let Some(format) = global.config_format {
        words.extend(["--config-format".to_owned(), format.to_string()]);
    }
    if !global.inputs.is_empty() {
        tracing::warn!(
            "`--input` is not written into the file; set INPUT_ID where the client runs"
        );
    }
    let variables = config.variable_names().into_iter().map(ToOwned::to_owned).collect();
    Ok(Launched { launch: Launch::Command { program, args: words }, variables })
}

/// The program as the entry names it: a project's file is shared, so there it is the one on the path.
fn program(scope: Scope) -> anyhow::Result<String> {
    let own = std::env::current_exe().and_then(std::fs::canonicalize);
    let own = own.context("this program's own path cannot be found")?;
    match scope {
        Scope::User => word(&own),
        Scope::Project => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let found = std::env::split_paths(&path)
                .find_map(|folder| std::fs::canonicalize(folder.join(PROGRAM)).ok());
            match found {
                None => tracing::warn!(
                    "the entry starts `{PROGRAM}` from the path, where there is none yet"
                ),
                Some(found) if found != own => {
                    tracing::warn!("`{PROGRAM}` on the path is another program than this one");
                }
                Some(_) => {}
            }
            Ok(PROGRAM.to_owned())
        }
    }
}

/// A configuration file as the entry names it: in a project's file relative to the project, where clients start Haft.
fn config_path(file: &Path, scope: Scope, folders: &Folders) -> anyhow::Result<PathBuf> {
    let full = absolute(file)?;
    let project = std::fs::canonicalize(&folders.project)?;
    match (scope, full.strip_prefix(&project)) {
        (Scope::Project, Ok(inside)) => Ok(inside.to_path_buf()),
        (Scope::Project, Err(_)) => {
            tracing::warn!(
                "`{}` lies outside this folder, so the entry works on this machine only",
                full.display()
            );
            Ok(full)
        }
        (Scope::User, _) => Ok(full),
    }
}

/// The path is read in another folder. A link to the file itself stays a link: paths in the file are relative to
/// where it was named.
fn absolute(file: &Path) -> anyhow::Result<PathBuf> {
    let full = std::path::absolute(file)?;
    match (full.parent(), full.file_name()) {
        (Some(folder), Some(name)) => Ok(std::fs::canonicalize(folder)?.join(name)),
        _ => Ok(full),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    real(one) == real(other)
}

fn word(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().map(ToOwned::to_owned);
    text.with_context(|| format!("the path `{}` is not UTF-8", path.display()))
}

/// Names that every client takes.
fn parse_name(name: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(fits) {
        return Ok(name.to_owned());
    }
    Err("use letters, digits, `-` and `_`".to_owned())
}

fn parse_url(text: &str) -> Result<String, String> {
    match reqwest::Url::parse(text) {
        Ok(url) if ["http", "https"].contains(&url.scheme()) && url.has_host() => {
            Ok(text.to_owned())
        }
        _ => Err("write an address such as http://127.0.0.1:7300/mcp".to_owned()),
    }
}

fn parse_variable(name: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(fits) && name.starts_with(|first: char| !first.is_ascii_digit()) {
        return Ok(name.to_owned());
    }
    Err("write the name of a variable, such as HAFT_KEY, not the key itself".to_owned())
}
