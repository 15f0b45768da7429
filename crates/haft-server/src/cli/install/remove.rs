//! `haft uninstall`: out of a client's file.

use std::process::ExitCode;

use haft_config::edit::Document;
use serde_json::{Value, json};

use super::clients::Folders;
use super::entry::{as_file, is_haft};
use super::report::masked;
use super::{UninstallArgs, place};
use crate::cli::user_file::{UserFile, broken};
use crate::cli::{EXIT_CONFIG, Failure, Global, print_json};
use crate::stderr::say;
use crate::terminal;

pub(in crate::cli) fn uninstall(global: &Global, args: &UninstallArgs) -> anyhow::Result<ExitCode> {
    let folders = Folders::from_process()?;
    let UninstallArgs { client, target, force } = args;
    let (scope, path) = place(*client, target.scope, &folders)?;
    let name = &target.name;
    let file = UserFile::read(&path)?;
    let document = Document::read(file.text(), client.syntax()).map_err(|it| broken(&path, &it))?;
    let entries = document.entries(client.section()).map_err(|it| broken(&path, &it))?;
    let answer = |outcome: &str, backup: Value| {
        print_json(&json!({
            "client": client, "scope": scope, "file": path, "name": name, "outcome": outcome,
            "backup": backup,
        }))
    };
    let Some(known) = entries.get(name) else {
        if global.json {
            answer("unchanged", Value::Null)?;
        } else {
            terminal::line(&format!("nothing to do: there is no `{name}` in {}", path.display()));
        }
        return Ok(ExitCode::SUCCESS);
    };
    if !is_haft(known) && !force {
        let message = format!("`{name}` in `{}` does not lead to Haft", path.display());
        let remedy = "`--name` names another entry; `--write --force` removes this one anyway";
        return Err(Failure::new(EXIT_CONFIG, message, remedy).into());
    }
    let text = document.remove(client.section(), name).map_err(|it| broken(&path, &it))?;
    if !target.write {
        if global.json {
            answer("printed", Value::Null)?;
        } else {
            terminal::line(as_file(*client, name, &masked(known)).trim_end());
            say!("this would go from {}; --write removes it", path.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let backup = file.replace(&text)?;
    if global.json {
        answer("removed", json!(backup))?;
        return Ok(ExitCode::SUCCESS);
    }
    terminal::line(&format!("removed `{name}` from {}", path.display()));
    if let Some(backup) = backup {
        terminal::line(&format!("the previous content is in {}", backup.display()));
    }
    Ok(ExitCode::SUCCESS)
}
