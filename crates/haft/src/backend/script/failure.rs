//! Errors of Python tools.

use haft_bounds::parse_error::describe;
use std::fmt::Display;
use std::path::Path;

use serde_json::{Value, json};

use super::frame::{NoAnswer, Problem};
use super::worker::Worker;
use super::{ANSWER_BYTES_MAX, PYTHON_SETTING, PythonSettings};
use crate::backend::process::{Exit, last_line};
use crate::backend::sandbox::not_made;
use crate::error::ToolFailure;

/// The worker ended or sent an invalid answer. It is not used again.
pub(super) async fn no_answer(
    settings: &PythonSettings,
    script: &Path,
    problem: NoAnswer,
    worker: Worker,
) -> ToolFailure {
    let PythonSettings { name, python, .. } = settings;
    match problem {
        NoAnswer::TooLong(size) => ToolFailure::Execution {
            message: format!(
                "`{name}` answered {size} bytes of JSON; {ANSWER_BYTES_MAX} bytes are the limit"
            ),
            remedy: Some("let the tool answer less, or write a file and answer its path".into()),
            details: json!({ "path": script, "answer_bytes": size }),
        },
        NoAnswer::Garbled(problem) => unreadable(name, problem),
        NoAnswer::NotReady => {
            let (exit, stderr) = worker.last_output().await;
            let confined = settings.sandbox.as_ref();
            if let Some(failure) = confined.and_then(|_| not_made(&format!("`{name}`"), &stderr)) {
                return failure;
            }
            not_ready(name, python, script, exit, &stderr)
        }
        NoAnswer::Ended | NoAnswer::Unread => {
            let (exit, stderr) = worker.last_output().await;
            let confined = settings.sandbox.as_ref();
            if let Some(failure) = confined.and_then(|_| not_made(&format!("`{name}`"), &stderr)) {
                return failure;
            }
            ended(name, script, exit, &stderr)
        }
    }
}

/// Python itself did not start, or the script ended it while loading.
fn not_ready(
    name: &str,
    python: &str,
    script: &Path,
    exit: Option<Exit>,
    stderr: &str,
) -> ToolFailure {
    let how = how(exit);
    let message = format!("Python (`{python}`) {how} before `{name}` was ready");
    ToolFailure::Execution {
        message: match last_line(stderr) {
            Some(line) => format!("{message}: {line}"),
            None => message,
        },
        remedy: Some(format!(
            "see that `{PYTHON_SETTING}` names a Python 3 that works, and that `{}` does not end the \
             process while it is loaded",
            script.display()
        ).into()),
        details: exit_details(script, exit, stderr),
    }
}

fn how(exit: Option<Exit>) -> String {
    exit.map_or_else(|| "closed its pipes".into(), |exit| format!("ended with {exit}"))
}

fn exit_details(script: &Path, exit: Option<Exit>, stderr: &str) -> Value {
    json!({
        "path": script,
        "exit_code": exit.and_then(Exit::code),
        "signal": exit.and_then(Exit::signal),
        "stderr": stderr,
    })
}

fn ended(name: &str, script: &Path, exit: Option<Exit>, stderr: &str) -> ToolFailure {
    let how = how(exit);
    let remedy = match exit.and_then(Exit::signal) {
        Some(9) => "the process was killed; check whether the machine ran out of memory",
        _ => "return a value from the entrypoint instead of ending the process",
    };
    ToolFailure::Execution {
        message: match last_line(stderr) {
            Some(line) => format!("`{name}` {how} before it answered: {line}"),
            None => format!("`{name}` {how} before it answered"),
        },
        remedy: Some(remedy.into()),
        details: exit_details(script, exit, stderr),
    }
}

/// The entrypoint raised an exception.
pub(super) fn raised(name: &str, script: &Path, body: &str, stderr: &str) -> ToolFailure {
    let problem = match serde_json::from_str::<Problem>(body) {
        Ok(problem) => problem,
        Err(error) => return unreadable(name, &describe(&error)),
    };
    ToolFailure::Execution {
        message: format!("`{name}` raised {}", exception(&problem)),
        remedy: Some(format!("the traceback shows the line in `{}`", script.display()).into()),
        details: json!({
            "path": script,
            "exception": problem.kind,
            "traceback": problem.traceback,
            "stderr": stderr,
        }),
    }
}

/// The entrypoint returned a value that JSON cannot represent.
pub(super) fn not_json(name: &str, script: &Path, body: &str) -> ToolFailure {
    let Problem { kind, message, .. } = match serde_json::from_str(body) {
        Ok(problem) => problem,
        Err(error) => return unreadable(name, &describe(&error)),
    };
    ToolFailure::Execution {
        message: format!("`{name}` returned a `{kind}` that is not JSON: {message}"),
        remedy: Some(
            "return only dict, list, str, int, float, bool and None; no NaN and no infinity".into(),
        ),
        details: json!({ "path": script, "type": kind }),
    }
}

/// The script cannot be loaded: its syntax, an exception at its top level, no entrypoint.
pub(super) fn not_loaded(script: &Path, body: &str, stderr: &str) -> ToolFailure {
    let shown = script.display();
    let problem = match serde_json::from_str::<Problem>(body) {
        Ok(problem) => problem,
        Err(error) => return unreadable(&shown.to_string(), &describe(&error)),
    };
    let (message, remedy) = match &problem {
        Problem { file: Some(file), line: Some(line), text, .. } => (
            format!(
                "the script `{shown}` cannot be loaded: {} in `{file}`, line {line}: `{}`",
                exception(&problem),
                text.as_deref().unwrap_or_default()
            ),
            format!("correct line {line} of `{file}`; the next call loads it again"),
        ),
        Problem { kind, message, .. } if kind == "NoEntrypoint" => (
            format!("the script {message}"),
            "define it, as in `def run(args)`, or correct `entrypoint`".into(),
        ),
        Problem { kind, message, .. } if kind == "ForeignEntrypoint" => (
            format!("the script {message}"),
            "define a function in the script, as in `def run(args)`, and name that one as `entrypoint`; it \
             may call what the script imports"
                .into(),
        ),
        Problem { .. } => (
            format!("the script `{shown}` cannot be loaded: {}", exception(&problem)),
            "correct the script; the next call loads it again".into(),
        ),
    };
    ToolFailure::Execution {
        message,
        remedy: Some(remedy.into()),
        details: json!({
            "path": script,
            "exception": problem.kind,
            "file": problem.file,
            "line": problem.line,
            "traceback": problem.traceback,
            "stderr": stderr,
        }),
    }
}

/// The pipe contained something other than the runner's answer.
pub(super) fn unreadable(name: &str, problem: &str) -> ToolFailure {
    ToolFailure::Protocol {
        message: format!("the answer of `{name}` cannot be read: {problem}"),
        remedy: None,
        details: Value::Null,
    }
}

/// The arguments are too long for one request.
pub(super) fn unsendable(name: &str, problem: &impl Display) -> ToolFailure {
    ToolFailure::execution(format!("the arguments of `{name}` cannot be sent: {problem}"))
}

/// The tool was stopped for good.
pub(super) fn stopped(name: &str) -> ToolFailure {
    ToolFailure::Unavailable {
        message: format!("`{name}` has been stopped"),
        remedy: None,
        details: Value::Null,
    }
}

fn exception(Problem { kind, message, .. }: &Problem) -> String {
    if message.is_empty() { format!("`{kind}`") } else { format!("`{kind}`: {message}") }
}
