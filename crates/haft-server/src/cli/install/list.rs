//! `haft install` without a client: which there are, and which have Haft already.

use std::path::Path;
use std::process::ExitCode;

use haft_config::edit::Document;
use serde_json::{Value, json};

use super::clients::{Client, Folders, places, shown};
use super::entry::is_haft;
use crate::cli::user_file::UserFile;
use crate::cli::{Global, print_json};
use crate::stderr::say;
use crate::terminal::{self, Paint};

/// Room that the last column always has.
const LAST_COLUMN_MIN: usize = 12;

/// The state of one file.
enum State {
    NoFile,
    Without,
    With(Vec<String>),
    Unreadable(String),
}

pub(super) fn run(global: &Global, folders: &Folders) -> anyhow::Result<ExitCode> {
    let places = places(folders);
    let states: Vec<State> = places.iter().map(|(client, _, path)| state(*client, path)).collect();
    if global.json {
        let rows = places.iter().zip(&states).map(|((client, scope, path), state)| {
            let (names, problem) = match state {
                State::With(names) => (names.as_slice(), None),
                State::Unreadable(problem) => (&[][..], Some(problem)),
                State::NoFile | State::Without => (&[][..], None),
            };
            json!({
                "client": client, "scope": scope, "file": path,
                "exists": !matches!(state, State::NoFile), "haft": names, "problem": problem,
            })
        });
        print_json(&rows.collect::<Vec<Value>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows: Vec<Vec<String>> = places
        .iter()
        .zip(states)
        .map(|((client, scope, path), state)| {
            let state = match state {
                State::NoFile => "no file".to_owned(),
                State::Without => "no".to_owned(),
                State::With(names) => format!("as {}", names.join(", ")),
                State::Unreadable(problem) => problem,
            };
            vec![
                client.word(),
                json!(scope).as_str().unwrap_or_default().to_owned(),
                shown(path, folders),
                state,
            ]
        })
        .collect();
    shorten_paths(&mut rows, terminal::stdout_width());
    terminal::table(Paint::stdout(global.color), &["CLIENT", "SCOPE", "FILE", "HAFT"], &rows);
    say!("`haft install CLIENT` prints the entry, `--write` puts it into the file");
    Ok(ExitCode::SUCCESS)
}

/// Makes room for the last column in a narrow terminal.
fn shorten_paths(rows: &mut [Vec<String>], columns: usize) {
    const GAP: usize = 2;
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let last = widest(3).min(LAST_COLUMN_MIN);
    let path_max = columns.saturating_sub(widest(0) + widest(1) + last + 3 * GAP);
    for row in rows {
        row[2] = terminal::fit_path(&row[2], path_max);
    }
}

fn state(client: Client, path: &Path) -> State {
    let file = match UserFile::read(path) {
        Ok(file) => file,
        Err(error) => return State::Unreadable(error.to_string()),
    };
    if !file.exists() {
        return State::NoFile;
    }
    let document = Document::read(file.text(), client.syntax());
    match document.and_then(|document| document.entries(client.section())) {
        Err(error) => State::Unreadable(error.to_string()),
        Ok(entries) => {
            let ours = entries.into_iter().filter(|(_, entry)| is_haft(entry));
            let names: Vec<String> = ours.map(|(name, _)| name).collect();
            if names.is_empty() { State::Without } else { State::With(names) }
        }
    }
}
