//! The result of a run, for a model.

use std::io;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::NAME;
use super::run::Run;
use crate::backend::process::Exit;
use crate::content::{Content, ToolOutput};
use crate::error::{ToolFailure, millis};
use haft_text::human;

/// Maximum size of the output in an error message; the details hold all that is kept.
const MESSAGE_CHARS_MAX: usize = 4000;

#[derive(Serialize)]
struct Answer<'a> {
    exit_code: i32,
    stdout: &'a str,
    stderr: &'a str,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
}

/// The answer of a successful run.
pub(super) fn answer(run: &Run, files: Vec<String>) -> Result<ToolOutput, ToolFailure> {
    let mut text = run.stdout.clone();
    if !run.stderr.trim().is_empty() {
        text = format!("{text}{}stderr:\n{}", if text.is_empty() { "" } else { "\n" }, run.stderr);
    }
    if text.trim().is_empty() {
        text = "(exit code 0, and nothing was printed)".into();
    }
    let Run { stdout, stderr, took, .. } = run;
    let answer = Answer { exit_code: 0, stdout, stderr, duration_ms: millis(*took), files };
    let output = ToolOutput::from_json(&answer)
        .map_err(|error| ToolFailure::execution(format!("the answer of `{NAME}`: {error}")))?;
    Ok(ToolOutput { content: vec![Content::text(text)], ..output })
}

/// The code failed; its output holds the reason.
pub(super) fn failed(run: &Run, exit: Exit) -> ToolFailure {
    let mut details = printed(run);
    details["exit_code"] = json!(exit.code());
    details["signal"] = json!(exit.signal());
    ToolFailure::Execution {
        message: with_output(&format!("the code ended with {exit}"), run),
        remedy: Some("correct the code and run it again".into()),
        details,
    }
}

pub(super) fn too_late(run: &Run, limit: Duration) -> ToolFailure {
    let mut details = printed(run);
    details["timeout_ms"] = json!(millis(limit));
    let cause = format!(
        "the code was still running after {}, which is what its argument `timeout` allows, and was stopped",
        human(limit)
    );
    ToolFailure::Execution {
        message: with_output(&cause, run),
        remedy: Some("raise `timeout`, or let the code do less".into()),
        details,
    }
}

pub(super) fn no_folder(error: &io::Error) -> ToolFailure {
    let parent = std::env::temp_dir();
    ToolFailure::Unavailable {
        message: format!("no working directory could be made in `{}`: {error}", parent.display()),
        remedy: Some("make room there, or set `TMPDIR` to another directory".into()),
        details: Value::Null,
    }
}

pub(super) fn lost(error: &io::Error) -> ToolFailure {
    ToolFailure::execution(format!("the code was started and lost: {error}"))
}

fn printed(run: &Run) -> Value {
    let Run { stdout, stderr, took, .. } = run;
    json!({ "stdout": stdout, "stderr": stderr, "duration_ms": millis(*took) })
}

/// Some models see only the message, so it includes the output: the errors and what precedes them.
fn with_output(cause: &str, run: &Run) -> String {
    let mut message = cause.to_owned();
    for (name, text) in [("stdout", run.stdout.trim()), ("stderr", run.stderr.trim())] {
        if !text.is_empty() {
            let (which, text) = last_lines(text);
            message = format!("{message}; {which}{name}:\n{text}");
        }
    }
    message
}

/// The end of the output that fits a message, and its label.
fn last_lines(text: &str) -> (&'static str, String) {
    let skipped = text.chars().count().saturating_sub(MESSAGE_CHARS_MAX);
    if skipped == 0 {
        return ("", text.to_owned());
    }
    let last: String = text.chars().skip(skipped).collect();
    // Whole lines only: half a line may hold half a secret, which redaction would miss.
    let whole = last.split_once('\n').map_or(last.as_str(), |(_, whole)| whole);
    ("the last lines of ", whole.to_owned())
}
