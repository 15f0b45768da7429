//! Running a program from outside: explicit environment, captured output, nothing left behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use crate::{DEADLINE, Workspace, eventually};

/// A program about to be run in a workspace. It sees PATH, HOME, the workspace's state home and what the test
/// gives it. Haft has no built-in tools there, so that a test sees those it is about.
#[derive(Debug)]
pub struct Program {
    binary: PathBuf,
    args: Vec<String>,
    environment: Vec<(String, String)>,
    stdin: String,
    folder: PathBuf,
    state_home: (&'static str, PathBuf),
    has_builtins: bool,
}

/// Leaves out the tools that Haft brings itself.
pub const WITHOUT_BUILTINS: (&str, &str) = ("HAFT__BUILTIN__ENABLED", "false");

/// Leaves out the tool that shows MCP clients the state of the servers.
pub const WITHOUT_STATUS: (&str, &str) = ("HAFT__GATEWAY__STATUS_TOOL", "false");

/// Lets Haft start the programs that the configuration in a workspace names, without asking.
pub const TRUSTED: (&str, &str) = ("HAFT_TRUST", "1");

/// The exit and the output of a program.
#[derive(Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its exit code; 128 plus the signal's number if a signal ended it, as shells report it.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Program {
    /// A program in the folder of a workspace.
    pub fn new(binary: impl Into<PathBuf>, workspace: &Workspace) -> Self {
        Self {
            binary: binary.into(),
            args: Vec::new(),
            environment: Vec::new(),
            stdin: String::new(),
            folder: workspace.path().to_path_buf(),
            state_home: workspace.state_home(),
            has_builtins: false,
        }
    }

    /// Leaves Haft the tools that it brings itself, as they are out of the box.
    #[must_use]
    pub fn with_builtins(mut self) -> Self {
        self.has_builtins = true;
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets what it reads from standard input; nothing by default.
    #[must_use]
    pub fn stdin(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdin);
        self
    }

    /// Runs it to its end.
    pub fn run(self) -> Finished {
        self.start().finish()
    }

    /// Starts it and leaves it running.
    pub fn start(self) -> Running {
        let mut command = Command::new(&self.binary);
        command.args(&self.args).current_dir(&self.folder);
        command.env_clear();
        for name in ["PATH", "HOME"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        if !self.has_builtins {
            command.envs([WITHOUT_BUILTINS, WITHOUT_STATUS]);
        }
        command.envs([self.state_home]).envs([TRUSTED]).envs(self.environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        // The program may end without reading; the test does not fail for that.
        let mut stdin = child.stdin.take().expect("a pipe");
        drop(stdin.write_all(self.stdin.as_bytes()));
        drop(stdin);
        let stdout = Lines::read(child.stdout.take().expect("a pipe"));
        let stderr = Gathered::read(child.stderr.take().expect("a pipe"));
        Running { child, stdout, stderr: Some(stderr) }
    }
}

/// A running program. Killed when the test drops it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: Lines,
    stderr: Option<Gathered>,
}

impl Running {
    /// Waits for the next line of standard output.
    pub fn line(&self) -> String {
        self.stdout.next()
    }

    /// The standard error so far.
    pub fn stderr_so_far(&self) -> String {
        self.stderr.as_ref().map(Gathered::so_far).unwrap_or_default()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGKILL, which no program can answer.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Stops it until it is resumed, as a machine that freezes does.
    pub fn suspend(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues it.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Finished {
        let status = eventually("the program ends", || self.child.try_wait().expect("its status"));
        let stderr = self.stderr.take().map(Gathered::rest);
        Finished {
            code: exit_code(status),
            stdout: self.stdout.rest(),
            stderr: stderr.unwrap_or_default(),
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), signal).expect("the signal is sent");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail where the program has ended, which is the usual case.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// An exit code as shells report it.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    let signalled = || 128 + status.signal().unwrap_or_default();
    status.code().unwrap_or_else(signalled)
}

/// Standard output, line by line, read by a thread so that waiting can end.
#[derive(Debug)]
struct Lines(Receiver<String>);

impl Lines {
    fn read(pipe: ChildStdout) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
                line.clear();
            }
        });
        Self(receiver)
    }

    fn next(&self) -> String {
        self.0.recv_timeout(DEADLINE).expect("a line in time")
    }

    fn rest(&self) -> String {
        let start = Instant::now();
        let left = || DEADLINE.saturating_sub(start.elapsed());
        std::iter::from_fn(|| self.0.recv_timeout(left()).ok()).collect()
    }
}

/// Standard error, gathered by a thread.
#[derive(Debug)]
struct Gathered {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Gathered {
    fn read(mut pipe: ChildStderr) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                into.lock().extend_from_slice(&buffer[..count]);
            }
        });
        Self { bytes, thread }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock()).into_owned()
    }

    fn rest(self) -> String {
        let bytes = self.bytes;
        drop(self.thread.join());
        String::from_utf8_lossy(&bytes.lock()).into_owned()
    }
}
