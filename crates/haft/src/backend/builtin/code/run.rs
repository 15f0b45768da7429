//! One run of code: a process and its descendants, until they end or time out.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::Command;
use tokio::time::timeout;

use super::capture::Captured;
use super::request::Language;
use super::sandbox::Mark;
use super::{CodeSettings, outcome, sandbox};
use crate::backend::command::AFTER_EXIT_WAIT_MAX;
use crate::backend::process::{Exit, ProcessScope, ProcessTree};
use crate::backend::program;
use crate::backend::sandbox::Confined;
use crate::backend::script::PYTHON_SETTING;
use crate::backend::work_folder::WorkFolder;
use crate::error::ToolFailure;

/// The result of a run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) ended: Ended,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) took: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Ended {
    By(Exit),
    /// The caller's time limit was reached.
    TooLate(Duration),
}

/// Runs the code in `folder`. When it returns or its future is dropped, no process is left.
pub(super) async fn run(
    settings: &CodeSettings,
    scope: ProcessScope,
    folder: &WorkFolder,
    language: Language,
    limit: Option<Duration>,
) -> Result<Run, ToolFailure> {
    let (program, setting) = match language {
        Language::Python => (settings.python.clone(), PYTHON_SETTING),
        Language::Shell => (shell().to_owned(), "PATH"),
    };
    let argv = [OsString::from(&program), language.file().into()];
    let mark = Mark::new();
    let Confined { mut command, temp } = match &settings.sandbox {
        None => Confined { command: plain(&argv, folder.path()), temp: None },
        Some(sandbox) => sandbox::command(sandbox, &argv, folder.path(), &mark)?,
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = Instant::now();
    let mut tree = ProcessTree::spawn(&mut command, scope)
        .map_err(|error| program::failed_to_start(program.as_ref(), setting, &error))?
        .with_folder(temp);
    let (mut stdout, mut stderr) = (Captured::default(), Captured::default());
    let exchange = exchange(&mut tree, &mut stdout, &mut stderr);
    let ended = match limit {
        None => exchange.await.map(Ended::By),
        Some(limit) => match timeout(limit, exchange).await {
            Ok(exit) => exit.map(Ended::By),
            Err(_) => Ok(Ended::TooLate(limit)),
        },
    };
    let took = started.elapsed();
    // Remaining processes would work in a removed folder.
    tree.kill().await;
    let ended = ended.map_err(|error| outcome::lost(&error))?;
    let mut run = Run { ended, stdout: stdout.text(), stderr: stderr.text(), took };
    if let Some(sandbox) = &settings.sandbox {
        let kind = sandbox.config.kind;
        run.stderr = mark.taken_off(&run.stderr).ok_or_else(|| sandbox::not_made(kind, &run))?;
    }
    Ok(run)
}

/// Without a sandbox the code has the rights of Haft, like every local tool.
fn plain(argv: &[OsString], folder: &Path) -> Command {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).current_dir(folder);
    // Unbuffered, so that output from before a kill is not lost.
    command.env("PYTHONUNBUFFERED", "1");
    command
}

/// Models write for bash, so it is used if installed.
fn shell() -> &'static str {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_bash = std::env::split_paths(&path).any(|folder| folder.join("bash").is_file());
    if has_bash { "bash" } else { "sh" }
}

/// Reads both outputs and waits, all at the same time.
async fn exchange(
    tree: &mut ProcessTree,
    stdout: &mut Captured,
    stderr: &mut Captured,
) -> std::io::Result<Exit> {
    let (Some(out), Some(err)) = (tree.take_stdout(), tree.take_stderr()) else {
        return Err(std::io::Error::other("it has no pipes"));
    };
    let pipes = async { tokio::join!(stdout.drain(out), stderr.drain(err)) };
    tokio::pin!(pipes);
    tokio::select! {
        _ = &mut pipes => tree.wait().await,
        exit = tree.wait() => {
            // A process it left behind may hold the pipes open forever.
            let _ = timeout(AFTER_EXIT_WAIT_MAX, &mut pipes).await;
            exit
        }
    }
}
