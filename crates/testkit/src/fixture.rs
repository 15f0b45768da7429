//! The programmable MCP server `mcp-fixture`, for tests of clients.
//!
//! Its settings are in `bin/mcp-fixture/scenario.rs`; `{}` is a healthy legacy server.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const BINARY: &str = "mcp-fixture";
/// The prefix of the line in which a server prints its URL.
const LISTENING: &str = "listening on ";

/// The programmable MCP server.
#[derive(Debug)]
pub struct Fixture;

/// The transports that have a URL. For stdio see [`Fixture::stdio_args`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Streamable HTTP.
    Http,
    /// HTTP with server-sent events, the older way.
    Sse,
    /// WebSocket.
    Ws,
}

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Sse => "sse",
            Self::Ws => "ws",
        }
    }
}

impl Fixture {
    /// The built program, beside the folder of the test that runs.
    pub fn path() -> PathBuf {
        crate::built(BINARY)
    }

    /// The arguments with which [`Fixture::path`] serves standard input and output.
    pub fn stdio_args(scenario: &Value) -> Vec<String> {
        args("stdio", scenario)
    }

    /// Starts a server and waits until it listens.
    pub fn serve(transport: Transport, scenario: &Value) -> Running {
        Self::start(&args(transport.name(), scenario))
    }

    /// Starts a server where an earlier one listened.
    pub fn serve_at(transport: Transport, scenario: &Value, port: u16) -> Running {
        let mut args = args(transport.name(), scenario);
        args.extend(["--port".to_owned(), port.to_string()]);
        Self::start(&args)
    }

    fn start(args: &[String]) -> Running {
        let mut command = Command::new(Self::path());
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the fixture starts");
        let stdout = child.stdout.take().expect("a pipe");
        // Held from here on, so that a panic below ends the process too.
        let mut running = Running { url: String::new(), child };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("a line of the fixture");
        let url = line.trim().strip_prefix(LISTENING);
        url.expect("the fixture listens").clone_into(&mut running.url);
        running
    }
}

/// A running server. Killed when the test drops it.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub url: String,
    child: Child,
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it listens on 127.0.0.1.
    pub fn port(&self) -> u16 {
        let authority = self.url.split('/').nth(2).expect("a host");
        let (_, port) = authority.rsplit_once(':').expect("a port");
        port.parse().expect("a number")
    }

    /// Stops it in its tracks, as a machine that hangs does: connections stay, nothing answers.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        crate::eventually("it stops", || is_stopped(self.pid()).then_some(()));
    }

    /// Continues after [`Running::pause`].
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends it at once and waits for the end.
    pub fn kill(&mut self) {
        // Both fail where it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), signal).expect("the signal is sent");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns true if every thread of a process stands still. The signal that stops them takes its time.
pub fn is_stopped(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
    tasks.flatten().all(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
    })
}

/// Everything fixtures wrote to the file that their scenario names as `facts`.
pub fn facts(path: &Path) -> Vec<Value> {
    // No fixture has started yet where there is no file.
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // The last line may be half written.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The facts of one kind, such as `start`, `connection`, `http` or `exit`.
pub fn events(path: &Path, event: &str) -> Vec<Value> {
    facts(path).into_iter().filter(|fact| fact["event"] == event).collect()
}

/// The messages with this method that fixtures received.
pub fn messages(path: &Path, method: &str) -> Vec<Value> {
    let messages = events(path, "message").into_iter().map(|mut fact| fact["message"].take());
    messages.filter(|message| message["method"] == method).collect()
}

fn args(transport: &str, scenario: &Value) -> Vec<String> {
    vec![transport.to_owned(), "--scenario".to_owned(), scenario.to_string()]
}
