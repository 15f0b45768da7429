//! The servers behind the gateway: a local tool, a server of each era, one that dies, and a real one.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::fixture::{events, messages};
use testkit::peers::{CommandLine, Everything, everything};
use testkit::{
    Program, Running, WITHOUT_BUILTINS, WITHOUT_STATUS, Workspace, eventually, is_running,
};

use crate::served::{SERVE, greeting};
use crate::support;

/// Tools that the servers of both eras have, with the server's name before it.
const TOOLS: [&str; 10] = [
    "echo",
    "progress",
    "drip",
    "log",
    "sample",
    "elicit",
    "roots",
    "fail",
    "rpc_error",
    "every_content",
];
/// Tools that only the server of the legacy era has.
const OLD_TOOLS: [&str; 3] = ["add_tool", "add_prompt", "update_resource"];

/// A workspace for clients.
pub(super) struct Toolbox {
    pub(super) workspace: Workspace,
    facts: PathBuf,
}

/// Every tool but those of the real server, in the order in which clients see them.
pub(super) fn tools() -> Vec<String> {
    let of = |server: &str, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("{server}_{name}")).collect()
    };
    let mut tools = vec!["greet".to_owned()];
    tools.extend(of("old", &TOOLS));
    tools.extend(of("old", &OLD_TOOLS));
    tools.extend(of("new", &TOOLS));
    tools.push("crash".to_owned());
    tools
}

impl Toolbox {
    pub(super) fn new() -> Self {
        let workspace = support::workspace(&json!({}));
        let facts = workspace.path().join("facts");
        let mut old = scenario("old", &[&TOOLS[..], &OLD_TOOLS[..]].concat());
        old["facts"] = json!(facts);
        let mut new = scenario("new", &TOOLS);
        new["facts"] = json!(facts);
        new["era"] = json!("modern");
        new["templates"] = json!([]);
        let (mut old, mut new) = (support::server(&old), support::server(&new));
        new["protocol"] = json!("modern");
        for server in [&mut old, &mut new] {
            server["sampling"] = json!("allow");
        }
        let real = everything(Everything::Stdio);
        let mut servers = json!({
            "old": old,
            "new": new,
            "fragile": support::server(&json!({"tools": ["crash"], "facts": facts})),
            "real": {"command": real.program, "args": real.args},
        });
        require_all(&mut servers);
        let config = json!({"registry": {"dir": "tools"}, "servers": servers});
        workspace.write("haft.json", config.to_string());
        Self { workspace, facts }
    }

    /// `haft mcp`, for a client to start.
    pub(super) fn mcp(&self) -> CommandLine {
        let config = self.workspace.path().join("haft.json");
        let mut haft = CommandLine::new("env");
        for (name, value) in [WITHOUT_BUILTINS, WITHOUT_STATUS] {
            haft = haft.arg(&format!("{name}={value}"));
        }
        let haft = haft.arg(env!("CARGO_BIN_EXE_haft")).arg("mcp");
        haft.arg("-c").arg(config.to_str().unwrap())
    }

    /// Settings of a client program over stdio.
    pub(super) fn over_stdio(&self) -> Value {
        let registry = self.workspace.path().join("tools/tools.json");
        json!({"transport": "stdio", "command": self.mcp().words(), "registry": registry})
    }

    /// Settings of a client program over HTTP.
    pub(super) fn over_http(&self, served: &Served) -> Value {
        let registry = self.workspace.path().join("tools/tools.json");
        json!({"transport": "http", "url": served.url, "registry": registry})
    }

    /// Asserts that both servers received the cancellation; the calls never end by themselves.
    pub(super) fn assert_cancelled(&self) {
        let drips: Vec<Value> = messages(&self.facts, "tools/call")
            .into_iter()
            .filter(|call| call["params"]["name"].as_str().is_some_and(|it| it.ends_with("drip")))
            .collect();
        assert_eq!(drips.len(), 2, "calls to cancel: {drips:?}");
        eventually("both servers hear of each cancelled call", || {
            let cancelled = messages(&self.facts, "notifications/cancelled");
            let is_open = |call: &Value| {
                cancelled.iter().any(|notice| notice["params"]["requestId"] == call["id"])
            };
            (cancelled.len() >= drips.len() && drips.iter().all(is_open)).then_some(())
        });
    }

    /// No server is left.
    pub(super) fn assert_nothing_is_left(&self) {
        let started = events(&self.facts, "start");
        assert!(started.len() >= 3, "{started:?}");
        for start in started {
            let pid = u32::try_from(start["pid"].as_u64().unwrap()).unwrap();
            eventually("the server ends", || (!is_running(pid)).then_some(()));
        }
    }
}

/// A running `haft serve`.
pub(super) struct Served {
    /// `http://127.0.0.1:PORT/mcp`.
    pub(super) url: String,
    running: Running,
}

impl Served {
    pub(super) fn start(workspace: &Workspace) -> Self {
        let haft = Program::new(env!("CARGO_BIN_EXE_haft"), workspace);
        let running = haft.args(&SERVE).start();
        let greeting = greeting(&running);
        let url = greeting["mcp"].as_str().unwrap_or_else(|| panic!("no address: {greeting}"));
        Self { url: url.to_owned(), running }
    }

    /// Ends it as a service manager does.
    pub(super) fn end(self) {
        self.running.terminate();
        let finished = self.running.finish();
        assert_eq!(finished.code, 0, "{}", finished.stderr);
    }
}

/// Haft starts only when all of them are there, however long that takes on a busy machine.
pub(super) fn require_all(servers: &mut Value) {
    for server in servers.as_object_mut().unwrap().values_mut() {
        server["required"] = json!(true);
    }
}

fn scenario(server: &str, tools: &[&str]) -> Value {
    let tool = |name: &&str| {
        let behaves = if *name == "log" { "log_all_levels" } else { name };
        json!({
            "name": format!("{server}_{name}"),
            "behaves": behaves,
            "inputSchema": {"type": "object"},
        })
    };
    let uri = format!("{server}://note");
    json!({
        "tools": tools.iter().map(tool).collect::<Vec<_>>(),
        "prompts": [{"name": format!("{server}_prompt"), "arguments": [{"name": "name"}]}],
        "resources": [{"uri": uri, "name": "note", "text": format!("the note of {server}")}],
    })
}

/// The path of a client program beside this file.
pub(super) fn program(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/clients");
    folder.join(name)
}
