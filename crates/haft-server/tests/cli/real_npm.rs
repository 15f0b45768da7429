//! The official npm servers for files, memory and thoughts, started in each way a user would.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::peers::{self, Address, CommandLine, Everything, Reference};
use testkit::{Program, Workspace};

use crate::real_support::{Peer, finish, server_mark};

/// Number of runs for the promise about a typical call.
const RUNS: usize = 20;
/// Time limit of a typical call, including the start of the server.
const TYPICAL_MAX: Duration = Duration::from_secs(10);

/// A folder of files as a project has them.
fn project() -> Workspace {
    Workspace::with(&[
        ("notes.txt", "first line\nsecond line\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("pixel.png", "not really a picture"),
    ])
}

/// Proves S1-2, S1-22, S1-24, S3-US1-T, S3-US4-T: files are read, written and refused.
#[test]
fn filesystem_is_what_the_typescript_sdk_sees() {
    let project = project();
    let path = |name: &str| project.path().join(name).display().to_string();
    let calls = [
        ("read_text_file", json!({"path": path("notes.txt"), "head": 1})),
        ("list_directory", json!({"path": path("")})),
        ("directory_tree", json!({"path": path("")})),
        ("read_media_file", json!({"path": path("pixel.png")})),
        ("write_file", json!({"path": path("new.txt"), "content": "grüße\n"})),
        ("read_text_file", json!({"path": path("absent.txt")})),
        ("read_text_file", json!({"path": "/etc/hostname"})),
    ];
    let address = Address::Stdio(peers::filesystem(project.path()));
    // The folder must look alike to both, so what is written exists before.
    project.write("new.txt", "");
    let seen = Reference::TypeScript1.see(&address, &calls);
    assert_eq!(seen.tools.len(), 14);
    project.write("new.txt", "");
    Peer::new(&address).assert_sees(&seen, &calls);
    assert_eq!(project.read("new.txt").as_deref(), Some("grüße\n"));
}

/// Proves S1-2, S3-US1-3, S3-US4-T: what one call stores, the next process finds.
#[test]
fn memory_is_what_the_typescript_sdk_sees() {
    let entity = json!({"name": "Ada", "entityType": "person", "observations": ["counts"]});
    let calls = [
        ("create_entities", json!({"entities": [entity]})),
        (
            "add_observations",
            json!({"observations": [{"entityName": "Ada", "contents": ["writes"]}]}),
        ),
        ("add_observations", json!({"observations": [{"entityName": "Bob", "contents": ["?"]}]})),
        ("open_nodes", json!({"names": ["Ada"]})),
        ("read_graph", json!({})),
    ];
    let files = Workspace::new();
    let address = |name: &str| Address::Stdio(peers::memory(&files.path().join(name)));
    let seen = Reference::TypeScript1.see(&address("sdk.jsonl"), &calls);
    assert_eq!(seen.tools.len(), 9);
    Peer::new(&address("haft.jsonl")).assert_sees(&seen, &calls);
    assert_eq!(files.read("haft.jsonl"), files.read("sdk.jsonl"));
}

/// Proves S3-US4-T.
#[test]
fn sequential_thinking_is_what_the_typescript_sdk_sees() {
    let thought = json!({"thought": "First.", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 3});
    let calls = [("sequentialthinking", thought)];
    let address = Address::Stdio(peers::sequential_thinking());
    let seen = Reference::TypeScript1.see(&address, &calls);
    Peer::new(&address).assert_sees(&seen, &calls);
}

/// Proves S3-SC-002: 20 reads of a file, each with a server that starts for it. Two at a time, which
/// is slower than one after the other.
#[test]
fn a_typical_call_takes_seconds_at_most() {
    let project = project();
    let arguments = json!({"path": project.path().join("notes.txt")}).to_string();
    let half = || {
        let address = Address::Stdio(peers::filesystem(project.path()));
        let peer = Peer::with(&address, &json!({"start": "lazy"}));
        let timed = |_| {
            let start = Instant::now();
            let finished = peer.run(&["call", "read_text_file", &arguments]);
            assert!(finished.stdout.contains("second line"), "{finished:?}");
            start.elapsed()
        };
        (0..RUNS / 2).map(timed).collect::<Vec<Duration>>()
    };
    let mut took = std::thread::scope(|scope| {
        let other = scope.spawn(half);
        let mut took = half();
        took.extend(other.join().unwrap());
        took
    });
    took.sort_unstable();
    assert!(took[RUNS * 95 / 100 - 1] < TYPICAL_MAX, "{took:?}");
}

/// An `npx` that notes how it was called and runs the installed package.
fn npx(workspace: &Workspace, servers: &[&CommandLine]) {
    let mut script = "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"${0%/*}/../argv-${2##*/}\"\npackage=$2\nshift 2\ncase $package in\n".to_owned();
    for server in servers {
        let (program, index) = (&server.program, &server.args[0]);
        let name = index.split('/').rev().nth(2).unwrap();
        script += &format!("@modelcontextprotocol/{name}) exec '{program}' '{index}' \"$@\";;\n");
    }
    let path = workspace.write("bin/npx", script + "esac\nexit 9\n");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Proves S3-US1-1, S3-US1-2, S3-US1-T, S3-SC-001: an agent's file as the documentation has it, with
/// the shorthand and with the whole command.
#[test]
fn an_agents_file_runs_packages_with_npx() {
    let workspace = project();
    let memory = peers::memory(&workspace.path().join("memory.jsonl"));
    npx(&workspace, &[&peers::filesystem(workspace.path()), &memory]);
    let (mark, value) = server_mark(&workspace);
    let agent = format!(
        r#"name: helper
description: Answers questions about files
model: {{provider: openai, name: gpt-5}}
instructions: {{inline: Look before you answer.}}
tools:
  - name: filesystem
    description: Files of the project
    type: mcp
    server: "@modelcontextprotocol/server-filesystem"
    args: ["."]
    env: {{{mark}: "{value}"}}
  - name: memory
    description: Remembers facts
    type: mcp
    command: npx
    args: ["-y", "@modelcontextprotocol/server-memory"]
    env: {{{mark}: "{value}", MEMORY_FILE_PATH: "{value}/memory.jsonl"}}
"#
    );
    workspace.write("agent.yaml", agent);
    let path = format!("{}/bin:{}", workspace.path().display(), std::env::var("PATH").unwrap());
    let json = |args: &[&str]| -> Value {
        let haft = Program::new(env!("CARGO_BIN_EXE_haft"), &workspace).env("PATH", &path);
        // Model and instructions are for others, of which there is a warning.
        let args = [args, &["--json", "-c", "agent.yaml", "--log-level", "error"]].concat();
        let finished = finish(haft.args(&args), &workspace);
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{args:?}");
        serde_json::from_str(&finished.stdout).unwrap()
    };
    let read = json(&["call", "read_text_file", "path=notes.txt"]);
    assert_eq!(read["data"], json!({"content": "first line\nsecond line\n"}));
    assert_eq!(read["content"], json!([{"type": "text", "text": "first line\nsecond line\n"}]));
    let graph = json(&["call", "read_graph"]);
    assert_eq!(graph["data"], json!({"entities": [], "relations": []}));
    assert_eq!(json(&["tools", "list"]).as_array().unwrap().len(), 14 + 9);
    let argv = |name: &str| workspace.read(&format!("argv-{name}")).unwrap();
    assert_eq!(argv("server-memory"), "-y\n@modelcontextprotocol/server-memory\n");
    assert_eq!(argv("server-filesystem"), "-y\n@modelcontextprotocol/server-filesystem\n.\n");
}

/// Proves S3-SC-001: three packages in the file that other programs use, all of them callable.
#[test]
fn three_packages_work_from_one_file_of_another_program() {
    let workspace = project();
    let servers = [
        ("everything", peers::everything(Everything::Stdio)),
        ("files", peers::filesystem(workspace.path())),
        ("memory", peers::memory(&workspace.path().join("memory.jsonl"))),
    ];
    let (mark, value) = server_mark(&workspace);
    let entry = |server: &CommandLine| {
        let mut env = json!({mark: value});
        for (name, value) in &server.env {
            env[name] = json!(value);
        }
        json!({"command": server.program, "args": server.args, "env": env})
    };
    let servers: serde_json::Map<String, Value> =
        servers.iter().map(|(name, server)| ((*name).to_owned(), entry(server))).collect();
    workspace.write(".mcp.json", json!({"mcpServers": servers}).to_string());
    let run = |args: &[&str]| {
        let haft = Program::new(env!("CARGO_BIN_EXE_haft"), &workspace);
        let args = [args, &["-c", ".mcp.json", "--log-level", "warning"]].concat();
        let finished = finish(haft.args(&args), &workspace);
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{args:?}");
        finished.stdout
    };
    assert_eq!(run(&["call", "echo", "message=hi"]), "Echo: hi\n");
    let tools: Value = serde_json::from_str(&run(&["tools", "list", "--json"])).unwrap();
    assert_eq!(tools.as_array().unwrap().len(), 13 + 14 + 9);
}
