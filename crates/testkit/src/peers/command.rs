//! A program to start, and a server that listens for as long as a test needs it.

use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::program::exit_code;
use crate::{Finished, LOOK_EVERY, eventually};

/// Longest time that a server may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// A program with its arguments and the variables it needs beside the usual ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Names and values.
    pub env: Vec<(String, String)>,
}

impl CommandLine {
    /// A program without arguments.
    pub fn new(program: &str) -> Self {
        Self { program: program.to_owned(), args: Vec::new(), env: Vec::new() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The program and its arguments in one list.
    pub fn words(&self) -> Vec<String> {
        std::iter::once(&self.program).chain(&self.args).cloned().collect()
    }

    /// The command, with a small environment of its own.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear();
        for name in ["PATH", "HOME"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a client to its end, with this on its standard input.
    pub fn run(&self, stdin: &str) -> Finished {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn();
        let mut child =
            child.unwrap_or_else(|error| panic!("cannot start {}: {error}", self.program));
        // The client may end without reading, which its exit code shows.
        drop(child.stdin.take().expect("a pipe").write_all(stdin.as_bytes()));
        let output = child.wait_with_output().expect("a client that ends");
        Finished {
            code: exit_code(output.status),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts a server and waits until the port accepts connections.
    pub fn listen(&self, port: u16) -> Listening {
        let mut command = self.command();
        // A group of its own, so that what the server starts ends with it.
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        let child = command.spawn();
        let child = child.unwrap_or_else(|error| panic!("cannot start {}: {error}", self.program));
        let mut listening = Listening { child };
        eventually(&format!("{:?} listens on port {port}", self.words()), || {
            if let Ok(Some(status)) = listening.child.try_wait() {
                panic!("{:?} ended ({status}) before it listened", self.words());
            }
            accepts(port).then_some(())
        });
        listening
    }
}

/// A server that listens; it ends when this is dropped, with all its children.
#[derive(Debug)]
pub struct Listening {
    child: Child,
}

impl Listening {
    /// Its process, for a test that ends or stops it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else {
            return;
        };
        // Gone already is fine. supergateway gives its server a group of its own and ends it when
        // asked to end, hence the friendly signal first.
        let _ = kill_process_group(group, Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < GRACE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK_EVERY);
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A free port of this machine.
pub fn free_port() -> u16 {
    // Below those that the system hands out: between this look and the server's start, connections and
    // listeners of other tests would take one of them.
    const PORTS: std::ops::Range<u64> = 20_000..32_000;
    let random = |attempt: u32| RandomState::new().hash_one(attempt) % (PORTS.end - PORTS.start);
    let port = |attempt| u16::try_from(PORTS.start + random(attempt)).expect("a small number");
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
    (0..1_000).map(port).find(is_free).expect("a free port")
}

/// Waits until a port of this machine accepts connections.
pub fn wait_for_port(port: u16) {
    eventually(&format!("port {port} accepts connections"), || accepts(port).then_some(()));
}

fn accepts(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}
