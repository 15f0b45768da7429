//! `haft import`: the servers of a client's file as entries of haft.yaml.

mod environment;
mod found;
mod moved;
mod secrets;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use haft::config::{BrokenEntries, Imported, LoadOptions, check_text, import};
use haft_config::edit::AppendError;
use haft_config::edit::Syntax;
use serde_json::json;

use super::install::entry::is_haft;
use super::user_file::{UserFile, broken};
use super::{EXIT_CONFIG, Failure, Global, count, print_json, remedy};
use crate::stderr::say;
use crate::terminal::{self, Paint};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft import                           which clients have servers, and where?
  haft import .vscode/mcp.json          print them as they would stand in haft.yaml
  haft import ~/.cursor/mcp.json --write
  haft import ~/.codex/config.toml --write --into tools/haft.yaml
  haft import ~/.cursor/mcp.json --write --move   and take them out of Cursor's file

Any format that Haft reads is understood. Variables stay variables: ${env:KEY} becomes ${KEY}, and
${input:key} becomes ${INPUT_KEY}.")]
pub(super) struct ImportArgs {
    /// The file to import; without it, Haft searches the usual places of clients
    file: Option<PathBuf>,
    /// Add the entries to the file that --into names
    #[arg(long, requires = "file")]
    write: bool,
    /// Take the entries out of FILE too, so that the client does not have their tools twice; a copy is kept
    #[arg(long = "move", requires = "write")]
    moves: bool,
    /// The file to add them to; created if it does not exist
    #[arg(long, value_name = "FILE", default_value = "haft.yaml")]
    into: PathBuf,
}

pub(super) fn run(global: &Global, args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let Some(file) = &args.file else {
        return found::run(global);
    };
    let options = LoadOptions {
        format: global.config_format,
        inputs: global.inputs.iter().cloned().collect(),
        ..LoadOptions::from_process(vec![file.clone()])
    };
    let target = std::path::absolute(&args.into)?;
    let folder = target.parent().unwrap_or(Path::new("/"));
    let mut imported = import(&options, folder).map_err(remedy::in_problems)?;
    let own = imported.leave_out(|_, server| is_haft(server));
    tell(global, &imported, &own);
    if imported.servers.is_empty() {
        let message = format!("`{}` has no servers to take over", file.display());
        return Err(
            Failure::new(EXIT_CONFIG, message, "`haft import` lists files that have some").into()
        );
    }
    let plan = args.moves.then(|| moved::plan(file, &imported)).transpose()?;
    let written = args.write.then(|| add(&imported, &args.into, &target, &options)).transpose()?;
    let original = plan.map(moved::Plan::carry_out).transpose()?.flatten();
    if global.json {
        print_json(&json!({
            "file": file, "formats": imported.formats, "servers": imported.servers,
            "tools": imported.tools, "left_out": own, "unset": imported.unset,
            "problems": imported.warnings,
            "into": args.write.then_some(&args.into), "backup": written.flatten(),
            "moved": args.moves, "original": original,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(backup) = written else {
        terminal::line(imported.to_yaml().trim_end());
        say!("this belongs into {}; --write puts it there", args.into.display());
        return Ok(ExitCode::SUCCESS);
    };
    let servers = count(imported.servers.len(), "server");
    terminal::line(&format!("added {servers} to {}", args.into.display()));
    if let Some(backup) = backup {
        terminal::line(&format!("the previous content is in {}", backup.display()));
    }
    if args.moves {
        terminal::line(&format!("took them out of {}", file.display()));
    }
    if let Some(original) = original {
        terminal::line(&format!("its previous content is in {}", original.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds the entries and gives the copy of what the file was. Nothing is written that does not load.
fn add(
    imported: &Imported,
    shown: &Path,
    target: &Path,
    options: &LoadOptions<'_>,
) -> anyhow::Result<Option<PathBuf>> {
    let syntax = Syntax::of(&shown.display().to_string());
    let file = UserFile::read(target)?;
    let text = imported.append(file.text(), syntax).map_err(|error| match error {
        AppendError::Edit(error) => broken(shown, &error),
        AppendError::Taken { names } => Failure::new(
            EXIT_CONFIG,
            format!("`{}` has a server {} already", shown.display(), quoted(&names)),
            "nothing was changed; rename or delete what is there, or take single entries from what \
             is printed without --write",
        )
        .into(),
    })?;
    // Variables that are not set here may be set where Haft runs; a warning names them. Any string will do, and this
    // one is a valid address too.
    let mut options = options.clone();
    for name in &imported.unset {
        options.environment.insert(name.clone(), "http://127.0.0.1".to_owned());
    }
    // An entry of the file that is broken already is not a reason to refuse others.
    options.broken = BrokenEntries::Disable;
    let config = check_text(&text, target, &options).map_err(remedy::in_problems)?;
    let is_new = |name: &str| imported.servers.contains_key(name);
    if let Some(broken) = config.misconfigured.iter().find(|server| is_new(&server.name)) {
        let problem = format!("server `{}` cannot be used: {}", broken.name, broken.problem);
        return Err(Failure::new(EXIT_CONFIG, problem, remedy::command(&broken.remedy)).into());
    }
    file.replace(&text)
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn tell(global: &Global, imported: &Imported, own: &[String]) {
    let paint = Paint::stderr(global.color);
    for problem in &imported.warnings {
        terminal::warning(paint, &problem.to_string(), &remedy::command(&problem.remedy));
    }
    for name in own {
        let message = format!("`{name}` leads to Haft itself and is left out");
        terminal::warning(paint, &message, "what Haft offers needs no server");
    }
    for secret in secrets::find(&imported.servers) {
        let message = format!("`{}` looks like a secret and is taken over as it is", secret.path);
        terminal::warning(
            paint,
            &message,
            &format!("write `{}` in its place and set the variable", secret.instead),
        );
    }
    environment::tell(&imported.servers);
    for name in &imported.unset {
        let message = format!("the variable `{name}` is not set");
        terminal::warning(paint, &message, &format!("set {name} where Haft runs"));
    }
}
