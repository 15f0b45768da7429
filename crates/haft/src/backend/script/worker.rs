//! One Python process that has a tool loaded and waits for the next call.

use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::PythonSettings;
use super::frame::{self, Answer, Children, NoAnswer};
use super::stamp::Stamp;
use crate::backend::process::{Exit, Household, Killed, Leftovers, ProcessTree, SharedTail};
use crate::config::choices::Background;

/// Takes the current directory off the module path before anything is imported, or a `json.py` that
/// happens to lie there would run in place of Python's own (`sys` itself is built in). Then compiles
/// the runner under a name of its own, so that its frames can be told from the tool's.
const START: &str = "import sys; sys.path[:1] == [''] and sys.path.pop(0); \
                     exec(compile(sys.argv.pop(1), '<haft runner>', 'exec'))";
const RUNNER: &str = include_str!("runner.py");

/// How long a worker that is not needed any more may take to end by itself.
const RETIRE_WAIT_MAX: Duration = Duration::from_millis(500);
/// How long the exit code and the last words of a worker are waited for once it is gone.
const LAST_WORDS_WAIT_MAX: Duration = Duration::from_millis(200);
/// More files than this are not watched: each is looked at before every call.
const WATCHED_FILES_MAX: usize = 256;
/// How many dead children a worker may have: it adopts those of others and cannot tell which it may
/// collect.
const ZOMBIES_MAX: usize = 64;

/// A worker belongs to one call at a time. Dropping it kills its whole process tree.
pub(super) struct Worker {
    tree: ProcessTree,
    requests: ChildStdin,
    answers: ChildStdout,
    stderr: SharedTail,
    stderr_drain: AbortOnDropHandle<()>,
    /// Tells it which tool it serves; goes out before the first request.
    setup: Vec<u8>,
    /// What the tool loaded, as it was then.
    files: Vec<(String, Stamp)>,
    background: Background,
    /// Finds what a call leaves running; processes that the script started while it was loaded stay.
    leftovers: Leftovers,
    /// Whether the worker had children after the last call.
    children: Children,
}

/// Whether a worker may serve another call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    Yes,
    No,
}

impl Worker {
    /// Starts Python without a tool. It serves none before [`assign`](Self::assign).
    pub(super) fn start(
        python: &str,
        tasks: &TaskTracker,
        household: Household,
    ) -> io::Result<Self> {
        let mut python = Command::new(python);
        python.args(["-c", START, RUNNER]);
        python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut tree = ProcessTree::spawn(&mut python, household)?;
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
            files: Vec::new(),
            background: Background::default(),
            leftovers,
            children: Children::None,
        })
    }

    /// Makes it the worker of one tool. The script loads while the first request is on its way.
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
        let (script, tools_dir) = (spelled(script)?, spelled(tools_dir)?);
        let PythonSettings { entrypoint, args, background, .. } = settings;
        self.background = *background;
        // Orphans that may continue are not adopted: as children of the worker they would end with it.
        let adopts_orphans = *background == Background::End;
        self.setup = frame::setup(&script, entrypoint, &tools_dir, args, adopts_orphans)?;
        Ok(self)
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.tree.try_wait(), Ok(None))
    }

    /// Its process.
    #[cfg(test)]
    pub(super) fn id(&self) -> i32 {
        self.tree.id()
    }

    /// Whether it still runs, on `script`, with every file as it is on the disk now.
    pub(super) fn is_current(&mut self, script: &Path) -> bool {
        let script_loaded = self.files.iter().any(|(path, _)| Path::new(path) == script);
        script_loaded
            && self.files.iter().all(|(path, stamp)| Stamp::now(path) == Some(*stamp))
            && self.is_alive()
    }

    /// Sends one request and waits for its answer.
    pub(super) async fn call(&mut self, request: &[u8]) -> Result<Answer, NoAnswer> {
        // What a process said before it got its tool may be why it ends now.
        if self.setup.is_empty() {
            self.stderr.clear();
        }
        let setup = std::mem::take(&mut self.setup);
        if !setup.is_empty() {
            let ready = frame::read_ready(&mut self.answers);
            let children = exchange(&mut self.requests, &setup, ready).await?;
            // Before the request goes out: what is there now was not started by a call.
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

    /// Ends what the last call left running, unless it may continue. A worker that left something is
    /// not used again: its script may still count on it.
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

    /// What the tool wrote to stderr (and stdout) during this call.
    pub(super) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// How a worker that gave no answer ended, and its last words.
    pub(super) async fn last_words(mut self) -> (Option<Exit>, String) {
        let exit = timeout(LAST_WORDS_WAIT_MAX, self.tree.wait()).await.ok().and_then(Result::ok);
        // A grandchild may hold the pipe open for ever.
        let _ = timeout(LAST_WORDS_WAIT_MAX, &mut self.stderr_drain).await;
        (exit, self.stderr.text())
    }

    /// Lets an idle worker end by itself (`atexit` runs), then kills what is left.
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
/// for it would hide that. A failed write is not reported: the read fails as well.
async fn exchange<T>(
    requests: &mut ChildStdin,
    message: &[u8],
    read: impl Future<Output = Result<T, NoAnswer>>,
) -> Result<T, NoAnswer> {
    let mut read = pin!(read);
    tokio::select! {
        biased;
        _ = requests.write_all(message) => read.await,
        answer = &mut read => answer,
    }
}
