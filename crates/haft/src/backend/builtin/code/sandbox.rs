//! Code inside `bwrap`: it sees the machine, writes only into its folder and its own `/tmp`, and has no
//! network unless it may. Where the sandbox cannot be made, nothing runs.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use serde_json::{Value, json};
use tokio::process::Command;

use super::run::Run;
use crate::backend::process::last_line;
use crate::error::ToolFailure;

const PROGRAM: &str = "bwrap";
/// Written inside the sandbox before the code starts. Without it, whatever ended was not the code.
const MADE: &str = ".haft-sandbox";
/// Variables that say how to work and hold no secret. The others stay outside.
const KEPT_VARIABLES: [&str; 5] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"];

/// `argv` in a sandbox around `folder`.
pub(super) fn command(argv: &[OsString], folder: &Path, network: bool) -> Command {
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
    if Path::new("/run").is_dir() {
        // Sockets of services, which a read-only mount does not close.
        command.args(["--tmpfs", "/run"]);
        if network {
            let resolver = "/run/systemd/resolve";
            command.args(["--ro-bind-try", resolver, resolver]);
        }
    }
    // After `/tmp`, which it may lie in.
    command.arg("--bind").args([folder, folder]).arg("--chdir").arg(folder);
    command.args(["--", "/bin/sh", "-c", r#": > "$0" && exec "$@""#, MADE]);
    command.args(argv);
    command
}

/// Whether the code was reached.
pub(super) fn was_made(folder: &Path) -> bool {
    folder.join(MADE).is_file()
}

/// Whether a file is the sandbox's own.
pub(super) fn is_own(name: &OsStr) -> bool {
    name == MADE
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
