//! Errors of a program that could not be started, with their remedies.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde_json::json;

use crate::error::ToolFailure;

/// Converts the error of a failed start to one that names the program and the remedy. `setting` is
/// the configuration key that names the program.
pub(super) fn failed_to_start(program: &OsStr, setting: &str, error: &io::Error) -> ToolFailure {
    let shown = program.to_string_lossy();
    let (message, remedy) = match error.kind() {
        io::ErrorKind::NotFound => not_found(program, setting),
        // The system reports "permission denied".
        _ if shown.contains('/') && Path::new(program).is_dir() => (
            format!("the program `{shown}` could not be started: it is a directory"),
            format!("name a program in `{setting}`"),
        ),
        io::ErrorKind::PermissionDenied => {
            let path = found(program).unwrap_or_else(|| program.into());
            let path = path.display();
            (
                format!("the program `{shown}` could not be started: `{path}` is not executable"),
                format!("make it executable: `chmod +x {path}`"),
            )
        }
        _ if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => (
            format!(
                "the program `{shown}` could not be started: the system does not know its format"
            ),
            "begin the file with a line such as `#!/bin/sh`, or set `command` to the program that \
             runs it"
                .into(),
        ),
        _ if is_shortage(error) => {
            return ToolFailure::Unavailable {
                message: format!("the program `{shown}` could not be started: {error}"),
                remedy: Some("try again later, or lower `max_concurrent`".into()),
                details: json!({ "program": shown }),
            };
        }
        _ => (
            format!("the program `{shown}` could not be started: {error}"),
            "try to start the program by hand as the user that runs Haft".into(),
        ),
    };
    let mut details = json!({ "program": shown });
    if error.kind() == io::ErrorKind::NotFound && !shown.contains('/') {
        details["path"] = searched().to_string_lossy().into();
    }
    ToolFailure::Execution { message, remedy: Some(remedy.into()), details }
}

/// The directories that are searched for programs.
fn searched() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Returns true if descriptors, processes or memory of this machine are exhausted: the tool is not
/// at fault.
fn is_shortage(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn not_found(program: &OsStr, setting: &str) -> (String, String) {
    let shown = program.to_string_lossy();
    if let Some(path) = found(program) {
        // The system reports "not found" also for the interpreter in the first line.
        let interpreter = interpreter(&path).unwrap_or_else(|| "its interpreter".into());
        return (
            format!(
                "the program `{shown}` could not be started: `{interpreter}`, which runs it, is missing"
            ),
            format!("install `{interpreter}` or correct the first line of `{}`", path.display()),
        );
    }
    if shown.contains('/') {
        return (
            format!("the program `{shown}` could not be started: no such file"),
            format!("correct the path in `{setting}`"),
        );
    }
    (
        format!("the program `{shown}` could not be started: it is in no directory of PATH"),
        format!("install `{shown}`, or give its whole path in `{setting}`"),
    )
}

/// The file that a start of `program` would run, or try to run.
fn found(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 || path.is_absolute() {
        return path.is_file().then(|| path.into());
    }
    let directories = std::env::var_os("PATH")?;
    std::env::split_paths(&directories)
        .map(|directory| directory.join(path))
        .find(|path| path.is_file())
}

/// The program that the `#!` line of a script names.
fn interpreter(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    fs::File::open(path).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = String::from_utf8_lossy(start.strip_prefix(b"#!")?).into_owned();
    line.lines().next()?.split_whitespace().next().map(str::to_owned)
}
