//! Haft under callgrind, with key, limits, validation and log on.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{BACKEND, IN_FLIGHT_MAX};
use crate::run::{shown_path, target};

/// A way to call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// `POST /api/v1/tools/{name}/call`.
    Rest,
    /// `POST /mcp` with a session.
    GatewayLegacy,
    /// `POST /mcp`, every request by itself.
    GatewayModern,
    /// `haft mcp`, a client at its stdin and stdout.
    Stdio,
}

impl Path {
    pub(super) const ALL: [Self; 4] =
        [Self::Rest, Self::GatewayLegacy, Self::GatewayModern, Self::Stdio];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::GatewayLegacy => "gateway-legacy",
            Self::GatewayModern => "gateway-modern",
            Self::Stdio => "stdio",
        }
    }
}

/// A running Haft. Ends when it is dropped.
pub(super) struct Haft {
    child: Child,
    pub(super) path: Path,
    pub(super) key: String,
    /// Its address, unless the client is at its pipes.
    pub(super) address: Option<String>,
    pub(super) pipes: Option<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Haft {
    pub(super) fn start(
        path: Path,
        program: &std::path::Path,
        folder: &std::path::Path,
    ) -> Result<Self> {
        let key = prepare(program, folder)?;
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--instr-atstart=no", "--quiet", "--fair-sched=yes"]);
        command.arg(format!("--callgrind-out-file={}", folder.join("callgrind.out").display()));
        command.arg(program);
        match path {
            Path::Stdio => command.arg("mcp"),
            Path::Rest | Path::GatewayLegacy | Path::GatewayModern => {
                command.args(["--json", "serve", "--listen", "127.0.0.1:0"])
            }
        };
        // The number of workers changes how tasks are scheduled.
        command.env("TOKIO_WORKER_THREADS", "2").env("HAFT__BUILTIN__ENABLED", "false");
        command.env("HAFT_TRUST", "1");
        let errors = folder.join("stderr.txt");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&errors)?);
        let mut child =
            command.current_dir(folder).spawn().context("valgrind could not be started")?;
        let pipes = child.stdin.take().zip(child.stdout.take().map(BufReader::new));
        let mut haft = Self { child, path, key, address: None, pipes };
        if path != Path::Stdio {
            let address = haft.greeting();
            haft.address = Some(address.with_context(|| format!("see {}", shown_path(&errors)))?);
        }
        Ok(haft)
    }

    /// The address that `haft serve` reports.
    fn greeting(&mut self) -> Result<String> {
        let (_, output) = self.pipes.as_mut().context("its output was not kept")?;
        let mut text = String::new();
        while output.read_line(&mut text)? > 0 {
            if let Ok(greeting) = serde_json::from_str::<Value>(&text) {
                let url = greeting["listening"].as_str().context("no address")?;
                return Ok(url.trim_start_matches("http://").to_owned());
            }
        }
        anyhow::bail!("haft serve ended before it reported its address")
    }

    /// Sends a command to callgrind.
    pub(super) fn control(&self, command: &str) -> Result<()> {
        let pid = self.child.id().to_string();
        let output = Command::new("callgrind_control").args([command, &pid]).output()?;
        ensure!(output.status.success(), "callgrind_control {command} failed");
        Ok(())
    }
}

impl Drop for Haft {
    fn drop(&mut self) {
        // It has nothing to save, and an error means that it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes the configuration and returns a key.
fn prepare(program: &std::path::Path, folder: &std::path::Path) -> Result<String> {
    let config = json!({
        "defaults": { "max_concurrent": 4 * IN_FLIGHT_MAX },
        "servers": { "behind": {
            // Not the path of this process: the tests may have built the program again and replaced its file.
            "command": target().join("debug/xtask"),
            "args": [BACKEND],
            "on_connect_failure": "exit",
            "connect_timeout": "2m",
            "request_timeout": "2m",
            "default_tool_config": { "max_instances": 4 * IN_FLIGHT_MAX, "timeout": "2m" },
        }},
        "api": { "keys_file": "./keys.json" },
        "log": { "dir": "./logs" },
    });
    fs::write(folder.join("haft.json"), config.to_string())?;
    let mut create = Command::new(program);
    create.args(["keys", "create", "--scope", "call", "--name", "bench"]).current_dir(folder);
    let output = create.output().context("haft could not be started")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let key = text.split_whitespace().find(|word| word.starts_with("haft_call_"));
    Ok(key
        .with_context(|| format!("no key: {text}{}", String::from_utf8_lossy(&output.stderr)))?
        .to_owned())
}
