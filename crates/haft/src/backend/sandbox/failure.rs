//! Errors of sandboxes that could not be made.

use std::ffi::OsStr;
use std::io;

use haft_config::Remedy;
use serde_json::json;

use super::launcher;
use crate::backend::process::last_line;
use crate::backend::program;
use crate::error::ToolFailure;

/// Begins every line of `bwrap` about itself.
const BUBBLEWRAP_PREFIX: &str = "bwrap: ";

/// A program that was not started, because its sandbox is not available.
#[derive(Debug)]
pub(in crate::backend) enum SandboxError {
    /// The program itself could not be found.
    Program(io::Error),
    /// The sandbox could not be made.
    Unavailable { cause: String, remedy: Remedy },
}

impl SandboxError {
    /// The failure of a call. `what` is the program in sentences, `program` its file, and `setting` the key that
    /// names it.
    pub(in crate::backend) fn into_failure(
        self,
        what: &str,
        program: &OsStr,
        setting: &str,
    ) -> ToolFailure {
        match self {
            Self::Program(error) => program::failed_to_start(program, setting, &error),
            Self::Unavailable { cause, remedy } => unavailable(what, &cause, remedy),
        }
    }

    pub(super) fn unavailable(cause: impl Into<String>, remedy: impl Into<Remedy>) -> Self {
        Self::Unavailable { cause: cause.into(), remedy: remedy.into() }
    }
}

/// The failure of a program of which nothing was run. `what` is the program, as in "the code".
fn unavailable(what: &str, cause: &str, remedy: Remedy) -> ToolFailure {
    ToolFailure::Unavailable {
        message: format!("{what} was not run, because its sandbox could not be made: {cause}"),
        remedy: Some(Box::new(remedy)),
        details: json!({ "sandbox": cause }),
    }
}

/// Returns the failure of a program whose last line says that its sandbox could not be made. A program can
/// print such a line too; then the message is wrong, and nothing else.
pub(in crate::backend) fn not_made(what: &str, stderr: &str) -> Option<ToolFailure> {
    let line = last_line(stderr)?;
    let is_ours = line.starts_with(BUBBLEWRAP_PREFIX) || line.starts_with(launcher::PREFIX);
    is_ours.then(|| unavailable(what, &line, Remedy::CheckSandbox { alternative: None }))
}
