//! Virtual environments with the packages that Python tools need: one for each set of packages, built once
//! and kept in the state folder.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tokio::process::Command;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::backend::process::{Exit, ProcessScope, ProcessTree, SharedTail, last_line};
use haft_text::human;

/// Time limit for each of the two steps.
const STEP_WAIT_MAX: Duration = Duration::from_mins(10);
/// Written last: an environment without it was interrupted.
const COMPLETE: &str = ".complete";
const HASH_CHARS: usize = 32;

/// Returns the Python of the environment with these packages, which is built if there is none. The error is
/// one sentence; a failed build leaves nothing behind that a later one would use.
pub(crate) async fn environment(
    folder: &Path,
    python: &str,
    packages: &[String],
    tool: &str,
    scope: ProcessScope,
) -> Result<PathBuf, String> {
    let place = folder.join(name(python, packages));
    let interpreter = place.join("bin/python");
    if place.join(COMPLETE).is_file() {
        return Ok(interpreter);
    }
    let unwritable =
        |error: io::Error| format!("`{}` cannot be written: {error}", folder.display());
    // Another process may build the same one.
    let lock = lock(folder, &place).await.map_err(unwritable)?;
    if place.join(COMPLETE).is_file() {
        return Ok(interpreter);
    }
    if place.exists() {
        fs::remove_dir_all(&place).map_err(unwritable)?;
    }
    let began = Instant::now();
    let list = packages.join(", ");
    tracing::info!("tool `{tool}`: installing {list}");
    let built = build(&place, python, packages, scope).await;
    let result = built.and_then(|()| File::create(place.join(COMPLETE)).map_err(unwritable));
    drop(lock);
    match result {
        Ok(_) => {
            tracing::info!("tool `{tool}`: installed {list} in {}", human(began.elapsed()));
            Ok(interpreter)
        }
        Err(problem) => {
            // An incomplete one is removed by the next build at the latest.
            let _ = fs::remove_dir_all(&place);
            Err(format!("its requirements ({list}) cannot be installed: {problem}"))
        }
    }
}

/// The name of an environment: the same Python and the same packages share it.
fn name(python: &str, packages: &[String]) -> String {
    let mut hash = Sha256::new();
    for text in [python].into_iter().chain(packages.iter().map(String::as_str)) {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    haft_text::hex(&hash.finalize()[..HASH_CHARS / 2])
}

async fn lock(folder: &Path, place: &Path) -> io::Result<File> {
    let (folder, path) = (folder.to_owned(), place.with_extension("lock"));
    let locked = spawn_blocking(move || {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
        file.lock()?;
        Ok(file)
    });
    locked.await.map_err(io::Error::other)?
}

async fn build(
    place: &Path,
    python: &str,
    packages: &[String],
    scope: ProcessScope,
) -> Result<(), String> {
    let list = place.with_extension("txt");
    let text = packages.join("\n") + "\n";
    fs::write(&list, text).map_err(|error| format!("`{}`: {error}", list.display()))?;
    let (list, interpreter) = (list.as_os_str(), place.join("bin/python"));
    let quiet = OsStr::new("--quiet");
    // uv where it is installed: it takes a tenth of the time.
    let uv = ["venv", "--quiet", "--python", python].map(OsStr::new);
    let with_uv = run("uv", &[&uv[..], &[place.as_os_str()]].concat(), scope).await;
    match with_uv {
        Ok(()) => {
            let at = interpreter.as_os_str();
            let args = ["pip", "install", "--quiet", "--python"].map(OsStr::new);
            run("uv", &[&args[..], &[at, "--requirement".as_ref(), list]].concat(), scope).await?;
        }
        Err(StepError::Missing) => {
            let args = ["-m", "venv"].map(OsStr::new);
            run(python, &[&args[..], &[place.as_os_str()]].concat(), scope).await?;
            let args = ["-m", "pip", "install", "--disable-pip-version-check"].map(OsStr::new);
            let args = [&args[..], &[quiet, "--requirement".as_ref(), list]].concat();
            run(interpreter.as_os_str(), &args, scope).await?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

enum StepError {
    /// There is no such program.
    Missing,
    Failed(String),
}

impl From<StepError> for String {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Missing => "Python is not installed; `defaults.python` names it".to_owned(),
            StepError::Failed(problem) => problem,
        }
    }
}

async fn run(
    program: impl AsRef<OsStr>,
    args: &[&OsStr],
    scope: ProcessScope,
) -> Result<(), StepError> {
    let shown = Path::new(program.as_ref()).display().to_string();
    let failed = |why: String| StepError::Failed(format!("`{shown}` {why}"));
    let mut command = Command::new(program.as_ref());
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut tree = match ProcessTree::spawn(&mut command, scope) {
        Ok(tree) => tree,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(StepError::Missing),
        Err(error) => return Err(failed(format!("cannot be started: {error}"))),
    };
    let Some(errors) = tree.take_stderr() else { return Err(failed("has no output".to_owned())) };
    let tail = SharedTail::default();
    let work = async {
        tail.drain(errors).await;
        tree.wait().await
    };
    match timeout(STEP_WAIT_MAX, work).await {
        Ok(Ok(Exit::Code(0))) => Ok(()),
        Ok(Ok(exit)) => {
            let text = tail.text();
            let reason = last_line(&text).map(|line| format!(": {line}")).unwrap_or_default();
            Err(failed(format!("ended with {exit}{reason}")))
        }
        Ok(Err(error)) => Err(failed(format!("was lost: {error}"))),
        Err(_) => Err(failed(format!("did not end within {}", human(STEP_WAIT_MAX)))),
    }
}
