//! The service under load: its configuration, its keys, its process.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{log, servers};
use crate::fixture::{self, Fixture, Transport};
use crate::{Program, Running, Workspace, is_running};

/// Keys that the hostile clients share.
const HOSTILE_KEYS: usize = 5;
/// Calls at once, of all tools. Hostile tools hold at most their own `max_instances` of them.
const CALLS_AT_ONCE: usize = 64;
/// The longest that the end may take: the default grace period, and time for a busy machine.
const END_MAX: Duration = Duration::from_secs(20);
const MIB: u64 = 1 << 20;

const GREET_PY: &str = "def run(args):\n    return {'marker': args['marker']}\n";
const NAP_PY: &str =
    "import time\n\ndef run(args):\n    time.sleep(0.5)\n    return {'bytes': len(args['text'])}\n";

/// A running service, with everything around it.
pub(super) struct Service {
    workspace: Workspace,
    running: Running,
    url: String,
    pid: u32,
    honest_key: String,
    pub(super) hostile_keys: Vec<String>,
    _retry_zero: fixture::Running,
}

/// The address and key of an honest client.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) port: u16,
    pub(super) key: String,
}

/// The exit of the service, and the state it left.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: i32,
    pub(super) took: Duration,
    pub(super) log: log::Entries,
}

impl Service {
    pub(super) fn start(haft: &Path) -> Self {
        let retry_zero = Fixture::serve(Transport::Http, &servers::retry_zero());
        let workspace = Workspace::with(&[
            ("haft.json", &config(&retry_zero.url).to_string()),
            ("tools/tools.json", &tools().to_string()),
            ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
            ("tools/greet.py", GREET_PY),
            ("tools/nap.py", NAP_PY),
        ]);
        let key = |name: &str| create_key(haft, &workspace, name);
        let honest_key = key("honest");
        let hostile_keys = (0..HOSTILE_KEYS).map(|n| key(&format!("hostile-{n}"))).collect();
        let args = ["--json", "serve", "--listen", "127.0.0.1:0"];
        let running = Program::new(haft, &workspace).args(&args).start();
        let greeting = greeting(&running);
        let url = greeting["listening"].as_str().expect("the service listens").to_owned();
        let pid = greeting["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        Self {
            workspace,
            running,
            url,
            pid: pid.expect("a process id"),
            honest_key,
            hostile_keys,
            _retry_zero: retry_zero,
        }
    }

    pub(super) fn port(&self) -> u16 {
        let port = self.url.rsplit_once(':').map(|(_, port)| port.parse());
        port.and_then(Result::ok).expect("a port")
    }

    pub(super) fn address(&self) -> Address {
        Address { port: self.port(), key: self.honest_key.clone() }
    }

    pub(super) fn is_running(&self) -> bool {
        is_running(self.pid)
    }

    /// The most memory that the service itself held, in bytes.
    pub(super) fn memory_peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.unwrap_or_default() * (MIB / 1024)
    }

    pub(super) fn log_bytes(&self) -> u64 {
        log::bytes(&self.workspace.path().join("logs"))
    }

    /// Ends it with SIGTERM and reads its log.
    pub(super) fn end(self) -> Ended {
        let asked = Instant::now();
        if is_running(self.pid) {
            self.running.terminate();
        }
        while is_running(self.pid) && asked.elapsed() < END_MAX {
            std::thread::sleep(Duration::from_millis(10));
        }
        let took = asked.elapsed();
        if is_running(self.pid) {
            // Its exit code shows that it did not end by itself.
            self.running.kill();
        }
        let finished = self.running.finish();
        let log = log::read(&self.workspace.path().join("logs"));
        Ended { code: finished.code, took, log }
    }
}

/// The line that `haft --json serve` prints when it listens.
fn greeting(running: &Running) -> Value {
    let mut text = String::new();
    loop {
        text += &running.line();
        if let Ok(greeting) = serde_json::from_str(&text) {
            return greeting;
        }
    }
}

fn create_key(haft: &Path, workspace: &Workspace, name: &str) -> String {
    let args = ["--json", "keys", "create", "--scope", "call", "--name", name];
    let finished = Program::new(haft, workspace).args(&args).run();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let created: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    created["key"].as_str().expect("a key").to_owned()
}

/// An honest server, five hostile ones, each with little of the toolbox.
fn config(retry_zero: &str) -> Value {
    let honest = Fixture::stdio_args(&json!({ "tools": ["echo", "sleep"] }));
    let mut all = json!({
        "honest": {
            "command": Fixture::path(),
            "args": honest,
            "on_connect_failure": "exit",
            "default_tool_config": { "max_instances": 16, "timeout": "10s" },
        },
        "retry": { "url": retry_zero },
    });
    for (name, entry) in servers::entries() {
        all[name] = entry;
    }
    for name in ["retry", "tiny", "flood", "storm", "mortal"] {
        all[name]["default_tool_config"] = json!({ "max_instances": 2, "timeout": "2s" });
    }
    json!({
        "defaults": { "max_concurrent": CALLS_AT_ONCE },
        "servers": all,
        "tools": [{ "name": "sleep", "mcp": "honest", "max_instances": 2 }],
        "registry": { "dir": "tools" },
        "log": { "dir": "./logs" },
    })
}

fn tools() -> Value {
    json!({ "tools": [
        { "name": "greet", "description": "Returns its marker.", "type": "local", "input_schema": {"type": "object"}, "max_instances": 4,
          "config": { "script_path": "greet.py" } },
        { "name": "nap", "description": "Takes its time.", "type": "local", "input_schema": {"type": "object"}, "max_instances": 1,
          "config": { "script_path": "nap.py" } },
    ]})
}
