//! The suite against `haft serve`, with a server behind it that has everything the suite calls: one process, or three
//! replicas on a PostgreSQL behind a load balancer that sends each request to the next one over a new connection.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::server;
use super::suite::{self, LEGACY, MODERN};
use crate::run::{cargo, shown_path, step, target};
use crate::{peers, replicas};

/// Each revision, the era in which the gateway speaks to the server behind it, and what is judged beside the required
/// scenarios. What a client may use of one era has no counterpart in the other.
const ERAS: [(&str, &str, &[&str]); 2] = [(LEGACY, "legacy", &[]), (MODERN, "modern", &TASKS)];

/// Scenarios of an extension, which no revision requires. `tasks-status-notifications` checks nothing yet.
const TASKS: [&str; 9] = [
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-wire-fields",
];

/// The longest that a program may take to print its address.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// The service that the suite talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    OneProcess,
    Replicas,
}

/// Builds the gateway and the server behind it, and tests them together.
pub(crate) fn run(front: Front) -> Result<()> {
    // With the features of the whole workspace, as the tests build them.
    let build = ["build", "--workspace", "--bin=haft", "--bin=conformance-server"];
    step(cargo(&build).arg("--bin=replica-cluster"))?;
    run_built(front)
}

/// Tests them as the tests built them.
pub(crate) fn run_built(front: Front) -> Result<()> {
    peers::install()?;
    if front == Front::Replicas {
        replicas::require_postgres()?;
    }
    let mut failed = Vec::new();
    for (revision, era, judged) in ERAS {
        if let Err(error) = run_era(front, revision, era, judged) {
            failed.push(format!("{error:#}"));
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    Ok(())
}

fn run_era(front: Front, revision: &'static str, era: &str, judged: &[&str]) -> Result<()> {
    let folder = suite::folder().join(format!("{}-{revision}", front.name()));
    suite::clear(&folder)?;
    fs::create_dir_all(&folder)?;
    let mut behind = Command::new(target().join("debug/conformance-server"));
    let errors = folder.join("behind.txt");
    let behind = Program::start(behind.args(["http", "0"]), &errors, End::Killed, line)?;
    fs::write(folder.join("haft.yaml"), config(&behind.url, era))?;
    let gateway = front.start(&folder)?;
    server::run_all(&format!("{}/mcp", gateway.url), Some(revision), judged)
}

impl Front {
    fn name(self) -> &'static str {
        match self {
            Self::OneProcess => "gateway",
            Self::Replicas => "replicas",
        }
    }

    /// Starts it with the configuration in a folder.
    fn start(self, folder: &Path) -> Result<Program> {
        let haft = target().join("debug/haft");
        let errors = folder.join("haft.txt");
        match self {
            Self::OneProcess => {
                let mut gateway = Command::new(haft);
                gateway.args(["--json", "serve", "--listen", "127.0.0.1:0"]).current_dir(folder);
                // The suite counts the tools of the server behind.
                gateway.env("HAFT__BUILTIN__ENABLED", "false");
                Program::start(&mut gateway, &errors, End::Killed, |text| {
                    let greeting: Value = serde_json::from_str(text).ok()?;
                    greeting["listening"].as_str().map(str::to_owned)
                })
            }
            Self::Replicas => {
                let mut cluster = Command::new(target().join("debug/replica-cluster"));
                cluster.arg(haft).arg(folder.join("haft.yaml"));
                Program::start(&mut cluster, &errors, End::ByItself, line)
            }
        }
    }
}

/// The address that a program prints as a line.
fn line(text: &str) -> Option<String> {
    text.strip_suffix('\n').map(str::to_owned)
}

/// Names as the suite calls them, everything allowed, and more time than any scenario has.
fn config(url: &str, era: &str) -> String {
    format!(
        "\
servers:
  behind:
    url: {url}
    transport: http
    protocol: {era}
    start: eager
    on_connect_failure: exit
    tool_prefix: none
    sampling: allow
    connect_timeout: 60s
    request_timeout: 60s
    default_tool_config: {{max_instances: 20, timeout: 60s}}
"
    )
}

/// A program that runs for as long as this is held.
struct Program {
    child: Child,
    end: End,
    url: String,
}

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It has nothing to save.
    Killed,
    /// It ends the programs that it has started when its standard input ends.
    ByItself,
}

impl Program {
    /// Starts a program and waits until it has printed its address.
    fn start(
        command: &mut Command,
        errors: &Path,
        end: End,
        address: impl Fn(&str) -> Option<String> + Send + 'static,
    ) -> Result<Self> {
        let name = Path::new(command.get_program()).to_path_buf();
        let name = shown_path(&name);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(errors)?);
        let mut child = command.spawn().with_context(|| format!("{name} could not be started"))?;
        let stdout = child.stdout.take();
        // From here on it ends with this function, too.
        let mut program = Self { child, end, url: String::new() };
        let stdout = stdout.context("its output was not kept")?;
        let (found, address_found) = mpsc::channel();
        // It reads to the end: a program whose output is not read would block.
        thread::spawn(move || {
            let mut text = String::new();
            let mut lines = BufReader::new(stdout);
            while lines.read_line(&mut text).is_ok_and(|length| length > 0) {
                if let Some(address) = address(&text) {
                    text.clear();
                    // A second address has no receiver.
                    let _ = found.send(address);
                }
            }
        });
        program.url = address_found.recv_timeout(START_TIMEOUT).with_context(|| {
            format!("{name} did not print its address: see {}", shown_path(errors))
        })?;
        Ok(program)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // An error means that it has ended.
        if self.end == End::Killed {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
