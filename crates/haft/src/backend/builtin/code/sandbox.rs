//! Code inside `bwrap`: it sees the machine, writes only to its folder and its own `/tmp`, and has
//! no network unless allowed. If the sandbox cannot be created, nothing runs.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use serde_json::{Value, json};
use tokio::process::Command;
use uuid::Uuid;

use super::run::Run;
use crate::backend::process::last_line;
use crate::error::ToolFailure;

const PROGRAM: &str = "bwrap";
/// Printed inside the sandbox before the code starts, with an unguessable number. Without it, the
/// process that ended was not the code. The code cannot remove it.
const MADE: &str = "haft-sandbox-";
/// Kernel settings that the owner of the files can write, even without capabilities, if the code
/// runs as root. No namespace has its own copy.
const KERNEL: [&str; 3] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/fs"];
/// Variables without secrets that the code needs. All others are removed.
const KEPT_VARIABLES: [&str; 5] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"];

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
pub(super) fn command(argv: &[OsString], folder: &Path, network: bool, mark: &Mark) -> Command {
    let mut command = Command::new(PROGRAM);
    // On `bwrap` itself too: it is the first process inside, and its environment can be read there.
    command.env_clear();
    for name in KEPT_VARIABLES {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.env("HOME", folder).current_dir(folder);
    command.args(["--unshare-all"]);
    if network {
        command.arg("--share-net");
    }
    command.args(["--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
    command.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]);
    for kernel in KERNEL {
        command.args(["--ro-bind-try", kernel, kernel]);
    }
    if Path::new("/run").is_dir() {
        // Hides sockets of services, which a read-only mount does not close.
        command.args(["--tmpfs", "/run"]);
        if network {
            let resolver = "/run/systemd/resolve";
            command.args(["--ro-bind-try", resolver, resolver]);
        }
    }
    // After `/tmp`, because the folder may lie in it.
    command.arg("--bind").args([folder, folder]).arg("--chdir").arg(folder);
    command.args(["--", "/bin/sh", "-c", r#"echo "$0" >&2 && exec "$@""#, &mark.0]);
    command.args(argv);
    command
}

pub(super) fn failed_to_start(error: &io::Error) -> ToolFailure {
    let cause = match error.kind() {
        io::ErrorKind::NotFound => "`bwrap` is in no directory of PATH".to_owned(),
        _ => format!("`bwrap` could not be started: {error}"),
    };
    unavailable(&cause, Value::Null)
}

pub(super) fn not_made(run: &Run) -> ToolFailure {
    let cause = last_line(&run.stderr).unwrap_or_else(|| "`bwrap` ended without a word".into());
    unavailable(&cause, json!({ "stderr": run.stderr }))
}

fn unavailable(cause: &str, details: Value) -> ToolFailure {
    ToolFailure::Unavailable {
        message: format!("the code was not run, because its sandbox could not be made: {cause}"),
        remedy: Some(
            "install the package `bubblewrap` and let this user make namespaces, or set \
             `builtin.code_execution.sandbox: none` to run code as Haft itself runs"
                .into(),
        ),
        details,
    }
}
