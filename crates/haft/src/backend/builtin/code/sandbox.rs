//! Code in a sandbox: it writes only to its folder and a temporary folder of its own. If the sandbox
//! cannot be made, nothing runs.

use std::ffi::OsString;
use std::path::Path;

use haft_config::Remedy;
use serde_json::{Value, json};
use uuid::Uuid;

use super::run::Run;
use crate::backend::process::last_line;
use crate::backend::sandbox::{Confined, Program, SandboxError, ToolSandbox, confine, environment};
use crate::config::choices::Sandbox;
use crate::error::ToolFailure;

/// Printed inside the sandbox before the code starts, with an unguessable number. Without it, the
/// process that ended was not the code. The code cannot remove it.
const MADE: &str = "haft-sandbox-";

/// The line that proves that the sandbox was created.
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn new() -> Self {
        Self(format!("{MADE}{}", Uuid::now_v7().simple()))
    }

    /// Returns the output after the mark; `None` if the mark is missing.
    pub(super) fn taken_off(&self, stderr: &str) -> Option<String> {
        let (before, after) = stderr.split_once(&format!("{}\n", self.0))?;
        // Warnings of `bwrap` itself.
        Some(format!("{before}{after}"))
    }
}

/// `argv` in a sandbox around `folder`, which prints `mark` to standard error before anything else.
pub(super) fn command(
    ToolSandbox { config, context }: &ToolSandbox,
    argv: &[OsString],
    folder: &Path,
    mark: &Mark,
) -> Result<Confined, ToolFailure> {
    let shell = ["/bin/sh", "-c", r#"echo "$0" >&2 && exec "$@""#, &mark.0].map(OsString::from);
    let mut env = environment(config.kind, &[]);
    env.retain(|(name, _)| name != "HOME");
    env.push(("HOME".into(), folder.into()));
    // Unbuffered, so that output from before a kill is not lost.
    env.push(("PYTHONUNBUFFERED".into(), "1".into()));
    // Where the whole machine can be read, the code's interpreter is found inside.
    let reads_all = config.read.iter().any(|path| path.parent().is_none());
    let program = Program {
        argv: shell.into_iter().chain(argv.iter().cloned()).collect(),
        env,
        folder: Some(folder),
        starts: if reads_all { Vec::new() } else { argv.iter().take(1).cloned().collect() },
        read: Vec::new(),
        write: vec![folder.to_owned()],
        setting: "builtin.code_execution.sandbox",
    };
    confine(config, context, program).map_err(|error| match error {
        SandboxError::Program(error) => {
            let program = argv.first().map(OsString::as_os_str).unwrap_or_default();
            unavailable(config.kind, &format!("`{}`: {error}", program.display()), Value::Null)
        }
        SandboxError::Unavailable { cause, remedy } => match config.kind {
            Sandbox::Bubblewrap => unavailable(config.kind, &cause, Value::Null),
            Sandbox::None | Sandbox::Landlock => ToolFailure::Unavailable {
                message: message(&cause),
                remedy: Some(Box::new(remedy)),
                details: Value::Null,
            },
        },
    })
}

pub(super) fn not_made(kind: Sandbox, run: &Run) -> ToolFailure {
    let silent = match kind {
        Sandbox::Bubblewrap => "`bwrap` ended without a word",
        Sandbox::None | Sandbox::Landlock => "the launcher ended without a word",
    };
    let cause = last_line(&run.stderr).unwrap_or_else(|| silent.into());
    unavailable(kind, &cause, json!({ "stderr": run.stderr }))
}

fn message(cause: &str) -> String {
    format!("the code was not run, because its sandbox could not be made: {cause}")
}

fn unavailable(kind: Sandbox, cause: &str, details: Value) -> ToolFailure {
    let without = "set `builtin.code_execution.sandbox: none` to run code as Haft itself runs";
    let remedy = match kind {
        Sandbox::Bubblewrap => Remedy::Text(format!(
            "install the package `bubblewrap` and let this user make namespaces, or {without}"
        )),
        Sandbox::None | Sandbox::Landlock => {
            Remedy::CheckSandbox { alternative: Some(without.to_owned()) }
        }
    };
    ToolFailure::Unavailable { message: message(cause), remedy: Some(Box::new(remedy)), details }
}
