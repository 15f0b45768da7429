//! Messages of `haft install` about an entry and its file.

use std::path::Path;
use std::process::ExitCode;

use haft::record::Redactor;
use serde_json::{Value, json};

use super::clients::{Client, Scope};
use super::entry::as_file;
use crate::cli::{EXIT_CONFIG, Failure, Global, print_json};
use crate::stderr::say;
use crate::terminal;

/// An entry and where it belongs.
pub(super) struct Placed<'a> {
    pub(super) client: Client,
    pub(super) scope: Scope,
    pub(super) path: &'a Path,
    pub(super) name: &'a str,
    pub(super) entry: &'a Value,
    /// The variables that the client must provide.
    pub(super) variables: &'a [String],
}

impl Placed<'_> {
    /// The entry alone goes to stdout, so that it can be piped.
    pub(super) fn print(&self, global: &Global) -> anyhow::Result<ExitCode> {
        if global.json {
            return self.print_json("printed", None);
        }
        terminal::line(as_file(self.client, self.name, self.entry).trim_end());
        say!("this belongs into {} ({})", self.path.display(), self.client.title());
        say!("the same command with --write puts it there; all else in the file stays");
        self.name_variables();
        Ok(ExitCode::SUCCESS)
    }

    pub(super) fn is_there(&self, global: &Global) -> anyhow::Result<ExitCode> {
        if global.json {
            return self.print_json("unchanged", None);
        }
        let (name, path) = (self.name, self.path.display());
        terminal::line(&format!("nothing to do: `{name}` is in {path} already"));
        Ok(ExitCode::SUCCESS)
    }

    pub(super) fn is_written(
        &self,
        global: &Global,
        backup: Option<&Path>,
    ) -> anyhow::Result<ExitCode> {
        if global.json {
            return self.print_json("written", backup);
        }
        terminal::line(&format!("wrote `{}` into {}", self.name, self.path.display()));
        if let Some(backup) = backup {
            terminal::line(&format!("the previous content is in {}", backup.display()));
        }
        say!("{}", self.client.afterwards(self.scope));
        self.name_variables();
        Ok(ExitCode::SUCCESS)
    }

    /// Clients do not hand on every variable, and those with windows do not see those of a shell.
    fn name_variables(&self) {
        if self.variables.is_empty() {
            return;
        }
        let shown = |name: &String| match std::env::var_os(name) {
            Some(_) => name.clone(),
            None => format!("{name} (not set here)"),
        };
        let names: Vec<String> = self.variables.iter().map(shown).collect();
        say!("these variables must be set where the client starts Haft: {}", names.join(", "));
    }

    /// Another entry has the name.
    pub(super) fn is_taken(&self, known: &Value) -> anyhow::Error {
        let message = format!(
            "`{}` has another `{}` already:\n{}\n  this one would be:\n{}",
            self.path.display(),
            self.name,
            indented(&as_file(self.client, self.name, &masked(known))),
            indented(&as_file(self.client, self.name, self.entry)),
        );
        let remedy = "`--force` replaces it and keeps a copy of the file, `--name` gives this one \
                      another name";
        Failure::new(EXIT_CONFIG, message, remedy).into()
    }

    fn print_json(&self, outcome: &str, backup: Option<&Path>) -> anyhow::Result<ExitCode> {
        let Self { client, scope, path, name, entry, variables } = self;
        print_json(&json!({
            "client": client, "scope": scope, "file": path, "name": name, "entry": entry,
            "outcome": outcome, "backup": backup, "variables": variables,
        }))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// An entry of the user's file, without the keys that it may hold.
pub(super) fn masked(entry: &Value) -> Value {
    let text = entry.to_string();
    serde_json::from_str(&Redactor::new([]).json(&text)).unwrap_or(Value::Null)
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}
