//! One Python process with a loaded tool that waits for the next call.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::PythonSettings;
use super::fingerprint::ScriptFingerprint;
use super::frame::{self, Answer, Children, NoAnswer};
use crate::backend::process::{Exit, Killed, Leftovers, ProcessScope, ProcessTree, SharedTail};
use crate::backend::sandbox::Confined;
use crate::config::choices::Background;

/// Removes the current directory from the module path before any import; otherwise a `json.py`
/// there would replace Python's own (`sys` itself is built in). Then compiles the runner under its
/// own name, so that its frames can be distinguished from the tool's.
const START: &str = "import sys; sys.path[:1] == [''] and sys.path.pop(0); \
                     exec(compile(sys.argv.pop(1), '<haft runner>', 'exec'))";
const RUNNER: &str = include_str!("runner.py");

/// Time for a retired worker to end by itself.
const RETIRE_WAIT_MAX: Duration = Duration::from_millis(500);
/// Time to wait for the exit code and the last output of a worker that ended.
const LAST_OUTPUT_WAIT_MAX: Duration = Duration::from_millis(200);
/// More files than this are not watched, because each is checked before every call.
const WATCHED_FILES_MAX: usize = 256;
/// Maximum number of zombies of a worker: it adopts orphans and cannot tell which ones it may reap.
const ZOMBIES_MAX: usize = 64;

/// A worker belongs to one call at a time. Dropping it kills its whole process tree.
pub(super) struct Worker {
    tree: ProcessTree,
    requests: ChildStdin,
    answers: ChildStdout,
    stderr: SharedTail,
    stderr_drain: AbortOnDropHandle<()>,
    /// The message that assigns its tool; sent before the first request.
    setup: Vec<u8>,
    /// The script's path as the configuration spells it, and without links.
    spelled: PathBuf,
    script: PathBuf,
    /// Fingerprints of the loaded files.
    files: Vec<(String, ScriptFingerprint)>,
    background: Background,
    /// Finds processes that a call leaves running; those that the script started while loading
    /// stay.
    leftovers: Leftovers,
    /// True if the worker had children after the last call.
    children: Children,
}

/// Decides if a worker may serve another call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    Yes,
    No,
}

/// The program and the arguments of a worker.
pub(super) fn argv(python: &str) -> Vec<OsString> {
    [python, "-c", START, RUNNER].map(OsString::from).into()
}

impl Worker {
    /// Starts Python without a tool; see [`assign`](Self::assign).
    pub(super) fn start(
        python: &str,
        tasks: &TaskTracker,
        scope: ProcessScope,
    ) -> io::Result<Self> {
        let mut command = Command::new(python);
        command.args(["-c", START, RUNNER]);
        Self::start_confined(Confined { command, temp: None }, tasks, scope)
    }

    /// Starts Python by a command with the arguments of [`argv`].
    pub(super) fn start_confined(
        Confined { mut command, temp }: Confined,
        tasks: &TaskTracker,
        scope: ProcessScope,
    ) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut tree = ProcessTree::spawn(&mut command, scope)?.with_folder(temp);
        let (Some(requests), Some(answers), Some(errors)) =
            (tree.take_stdin(), tree.take_stdout(), tree.take_stderr())
        else {
            return Err(io::Error::other("the new process has no pipes"));
        };
        let stderr = SharedTail::default();
        let tail = stderr.clone();
        let drain = tasks.spawn(async move { tail.drain(errors).await });
        let stderr_drain = AbortOnDropHandle::new(drain);
        let leftovers = tree.leftovers();
        Ok(Self {
            tree,
            requests,
            answers,
            stderr,
            stderr_drain,
            setup: Vec::new(),
            spelled: PathBuf::new(),
            script: PathBuf::new(),
            files: Vec::new(),
            background: Background::default(),
            leftovers,
            children: Children::None,
        })
    }

    /// Assigns the worker to one tool. The script loads while the first request is being sent.
    pub(super) fn assign(
        mut self,
        settings: &PythonSettings,
        script: &Path,
        tools_dir: &Path,
    ) -> io::Result<Self> {
        let spelled = |path: &Path| {
            path.to_str().map(ToOwned::to_owned).ok_or_else(|| {
                io::Error::other(format!("the path `{}` is not UTF-8", path.display()))
            })
        };
        self.spelled = settings.tools_dir.join(&settings.script_path);
        script.clone_into(&mut self.script);
        let (script, tools_dir) = (spelled(script)?, spelled(tools_dir)?);
        self.background = settings.background;
        // Orphans that may continue are not adopted: as children of the worker they would end with
        // it.
        let adopts_orphans = settings.background == Background::End;
        self.setup = frame::setup(&script, &tools_dir, settings, adopts_orphans)?;
        Ok(self)
    }

    /// Returns true if it still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.tree.try_wait(), Ok(None))
    }

    /// Its process id.
    #[cfg(test)]
    pub(super) fn id(&self) -> i32 {
        self.tree.id()
    }

    /// The script it serves, without links.
    pub(super) fn script(&self) -> &Path {
        &self.script
    }

    /// Returns true if it still runs with every file unchanged on disk. The path of the script must
    /// lead to the file that was loaded, whatever links it takes: nothing is loaded from it, so it need not
    /// be resolved.
    pub(super) fn is_current(&mut self) -> bool {
        let is_script = |path: &str| Path::new(path) == self.script;
        self.files.iter().any(|(path, _)| is_script(path))
            && self.files.iter().all(|(path, fingerprint)| {
                let path = if is_script(path) { &self.spelled } else { Path::new(path) };
                ScriptFingerprint::now(path) == Some(*fingerprint)
            })
            && !self.is_known_dead()
    }

    /// Returns true if the runtime has noticed that it ended. Unlike [`is_alive`](Self::is_alive) this costs no
    /// system call. One that ended just now fails the write of the next request.
    fn is_known_dead(&mut self) -> bool {
        let wait = pin!(self.tree.wait());
        wait.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Sends one request and waits for its answer.
    pub(super) async fn call(&mut self, request: &[u8]) -> Result<Answer, NoAnswer> {
        // Output from before the assignment may explain why the process ends now.
        if self.setup.is_empty() {
            self.stderr.clear();
        }
        let setup = std::mem::take(&mut self.setup);
        if !setup.is_empty() {
            let ready = frame::read_ready(&mut self.answers);
            let children = exchange(&mut self.requests, &setup, ready).await?;
            // Before the request is sent: existing processes were not started by a call.
            if self.background == Background::End && children == Children::Possible {
                self.leftovers.expect_present().await;
            }
        }
        let answer =
            exchange(&mut self.requests, request, frame::read_answer(&mut self.answers)).await?;
        self.children = answer.children;
        if let Some(files) = &answer.files {
            self.files.clone_from(files);
            self.files.truncate(WATCHED_FILES_MAX);
        }
        Ok(answer)
    }

    /// Ends the processes that the last call left running, unless they may continue. A worker with
    /// leftovers is not reused: its script may still depend on them.
    pub(super) async fn end_leftovers(&mut self, tool: &str) -> Reuse {
        match (self.background, self.children) {
            (Background::Allow, _) | (Background::End, Children::None) => return Reuse::Yes,
            (Background::End, Children::Possible) => {}
        }
        let Killed { processes, zombies } = self.leftovers.kill().await;
        if processes > 0 {
            tracing::info!(
                tool,
                processes,
                "ended processes that a call left running; `background: allow` in the entry of the \
                 tool keeps them"
            );
        }
        if processes > 0 || zombies > ZOMBIES_MAX { Reuse::No } else { Reuse::Yes }
    }

    /// The tool's stderr (and stdout) during this call.
    pub(super) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Returns the exit status and last output of a worker that gave no answer.
    pub(super) async fn last_output(mut self) -> (Option<Exit>, String) {
        let exit = timeout(LAST_OUTPUT_WAIT_MAX, self.tree.wait()).await.ok().and_then(Result::ok);
        // A grandchild may hold the pipe open forever.
        let _ = timeout(LAST_OUTPUT_WAIT_MAX, &mut self.stderr_drain).await;
        (exit, self.stderr.text())
    }

    /// Lets an idle worker end by itself (`atexit` runs), then kills the rest.
    pub(super) async fn retire(self) {
        let Self { tree, requests, answers: _answers, stderr_drain: _drain, background, .. } = self;
        match background {
            Background::End => {
                tree.end_after(|| drop(requests), RETIRE_WAIT_MAX).await;
            }
            Background::Allow => tree.leave_after(|| drop(requests), RETIRE_WAIT_MAX).await,
        }
    }
}

/// Writes and reads at the same time: a worker that ends early reads no more, and a write that waits
/// for it would hide that. A broken pipe is reported if there is no answer: the request was not read to its
/// end. Any other failed write makes the read fail as well.
async fn exchange<T>(
    requests: &mut ChildStdin,
    message: &[u8],
    read: impl Future<Output = Result<T, NoAnswer>>,
) -> Result<T, NoAnswer> {
    let mut read = pin!(read);
    tokio::select! {
        biased;
        written = requests.write_all(message) => match (read.await, written) {
            (Err(NoAnswer::Ended), Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Err(NoAnswer::Unread)
            }
            (answer, _) => answer,
        },
        answer = &mut read => answer,
    }
}
