//! `haft import` without a file: which clients have servers, and where.

use std::path::Path;
use std::process::ExitCode;

use haft::config::{Dialect, LoadOptions, import};
use serde_json::{Value, json};

use crate::cli::install::clients::{Folders, places, shown};
use crate::cli::install::entry::is_haft;
use crate::cli::{Global, failure, print_json};
use crate::stderr::say;
use crate::terminal::{self, Paint};

pub(super) fn run(global: &Global) -> anyhow::Result<ExitCode> {
    let folders = Folders::from_process()?;
    let mut found = Vec::new();
    for (client, scope, path) in places(&folders) {
        if let (Some(format), true) = (client.dialect(), path.is_file()) {
            let servers = servers(&path, format);
            found.push((client, scope, path, servers));
        }
    }
    if global.json {
        let rows = found.iter().map(|(client, scope, path, servers)| {
            let (names, problem) = match servers {
                Ok(names) => (names.as_slice(), None),
                Err(problem) => (&[][..], Some(problem)),
            };
            json!({"client": client, "scope": scope, "file": path, "servers": names, "problem": problem})
        });
        print_json(&rows.collect::<Vec<Value>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        terminal::line("no client's file was found; `haft import FILE` reads any other");
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = found
        .into_iter()
        .map(|(client, _, path, servers)| {
            let servers = match servers {
                Ok(names) if names.is_empty() => "none".to_owned(),
                Ok(names) => names.join(", "),
                Err(problem) => format!("cannot be used: {problem}"),
            };
            vec![client.word(), shown(&path, &folders), servers]
        })
        .collect();
    terminal::table(Paint::stdout(global.color), &["CLIENT", "FILE", "SERVERS"], &rows);
    say!("`haft import FILE` prints them as entries of haft.yaml");
    Ok(ExitCode::SUCCESS)
}

/// The servers of a file, without Haft itself.
fn servers(path: &Path, format: Dialect) -> Result<Vec<String>, String> {
    let files = vec![path.to_path_buf()];
    let options = LoadOptions { format: Some(format), ..LoadOptions::from_process(files) };
    match import(&options, &options.cwd) {
        Ok(mut imported) => {
            imported.leave_out(|_, server| is_haft(server));
            Ok(imported.servers.keys().cloned().collect())
        }
        Err(error) => Err(failure(&anyhow::Error::new(error)).message),
    }
}
