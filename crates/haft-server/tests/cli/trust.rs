//! A folder's configuration that starts programs is trusted once, and again when they change.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::fixture::Fixture;
use testkit::{Finished, Program, Workspace, eventually};

use crate::agent_support::Terminal;
use crate::haft;

/// A user with a state folder, in a folder that starts a server.
struct Visit {
    workspace: Workspace,
    state: Workspace,
}

impl Visit {
    fn new() -> Self {
        let visit = Self { workspace: Workspace::new(), state: Workspace::new() };
        visit.configure(&json!({"servers": {"files": visit.server("one")}}));
        visit
    }

    /// A server that leaves a file of this name where it was started.
    fn server(&self, name: &str) -> Value {
        let scenario = json!({"tools": ["text"], "facts": self.facts(name)});
        json!({"command": Fixture::path(), "args": ["stdio", "--scenario", scenario.to_string()]})
    }

    fn facts(&self, name: &str) -> PathBuf {
        self.state.path().join(name)
    }

    fn configure(&self, config: &Value) {
        self.workspace.write("haft.yaml", config.to_string());
    }

    /// Haft for a user who has trusted nothing yet.
    fn haft(&self, args: &[&str]) -> Program {
        let state = self.state.path().display().to_string();
        haft(&self.workspace, args).env("HAFT_TRUST", "").env("XDG_STATE_HOME", &state)
    }

    fn run(&self, args: &[&str]) -> Finished {
        self.haft(args).run()
    }

    /// Asserts that it is refused, lists the programs, and starts nothing.
    fn assert_refused(&self, args: &[&str]) {
        let finished = self.run(args);
        assert_eq!(finished.code, 2, "{args:?}: {}", finished.stderr);
        let Finished { stderr, .. } = &finished;
        assert!(stderr.contains("is not trusted yet: server `files`: "), "{args:?}: {stderr}");
        assert!(stderr.contains("mcp-fixture stdio") && stderr.contains("--trust"), "{stderr}");
        assert!(!self.facts("one").exists(), "{args:?} started a server");
    }
}

fn assert_runs(program: Program) {
    let finished = program.run();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(finished.stdout.contains("text"), "{}", finished.stdout);
}

const LIST: [&str; 2] = ["tools", "list"];

#[test]
fn nothing_starts_the_programs_of_a_folder_that_is_not_trusted() {
    let visit = Visit::new();
    let commands = [
        &LIST[..],
        &["--json", "tools", "list"],
        &["tools", "show", "text"],
        &["call", "text"],
        &["explain", "text"],
        &["select", "read a text"],
        &["learn"],
        &["mcp"],
        &["servers", "show", "files"],
        &["servers", "ping"],
        &["servers", "list", "--connect"],
        &["prompts", "list"],
        &["resources", "list"],
        &["check", "--connect"],
        &["run", "hello", "-m", "openai::none", "--base-url", "http://127.0.0.1:1"],
    ];
    for command in commands {
        visit.assert_refused(command);
    }
    for command in [&["check"][..], &["config", "show"], &["servers", "list"]] {
        assert_eq!(visit.run(command).code, 0, "{command:?} starts nothing");
    }
}

#[test]
fn trust_lasts_until_the_programs_change() {
    let visit = Visit::new();
    assert_runs(visit.haft(&["tools", "list", "--trust"]));
    assert_runs(visit.haft(&LIST));
    // What starts nothing else does not matter.
    visit.configure(&json!({"servers": {"files": visit.server("one")}, "log": {"retain_days": 3}}));
    assert_runs(visit.haft(&LIST));
    std::fs::remove_file(visit.facts("one")).unwrap();
    let mut changed = visit.server("one");
    changed["env"] = json!({"LD_PRELOAD": "/tmp/x.so"});
    for server in [changed, visit.server("two")] {
        visit.configure(&json!({"servers": {"files": server}}));
        visit.assert_refused(&LIST);
    }
    // The same file elsewhere is another one: its paths lead elsewhere.
    visit.configure(&json!({"servers": {"files": visit.server("one")}}));
    let copy = Workspace::with(&[("haft.yaml", &visit.workspace.read("haft.yaml").unwrap())]);
    let moved = Visit { workspace: copy, state: visit.state };
    moved.assert_refused(&LIST);
}

#[test]
fn scripts_trust_with_a_variable_and_files_by_name() {
    let visit = Visit::new();
    let file = visit.workspace.path().join("haft.yaml").display().to_string();
    assert_runs(visit.haft(&LIST).env("HAFT_TRUST", "1"));
    assert_runs(visit.haft(&["tools", "list", "-c", "haft.yaml"]));
    assert_runs(visit.haft(&LIST).env("HAFT_CONFIG", &file));
    std::fs::remove_file(visit.facts("one")).unwrap();
    // None of these is remembered.
    visit.assert_refused(&LIST);
    let finished = visit.haft(&LIST).env("HAFT_TRUST", "0").run();
    assert_eq!(finished.code, 2);
}

#[test]
fn a_configuration_without_programs_needs_no_trust() {
    let visit = Visit::new();
    for config in [
        json!({}),
        json!({"log": {"retain_days": 3}, "servers": {"off": {"command": "x", "disabled": true}}}),
    ] {
        visit.configure(&config);
        assert_eq!(visit.run(&LIST).code, 0, "{config}");
    }
    visit.configure(&json!({"defaults": {"python": "./python"}}));
    let finished = visit.run(&LIST);
    assert_eq!(finished.code, 2, "built-in tools run it");
    assert!(finished.stderr.contains("defaults.python: ./python"), "{}", finished.stderr);
}

#[test]
fn local_tools_are_programs_too() {
    let visit = Visit::new();
    visit.workspace.write("tools/mcp.json", r#"{"mcp_servers": {}}"#);
    visit.workspace.write("tools/hi.py", "def run(args):\n    return 'text'\n");
    let tool = json!({"name": "hi", "type": "local", "input_schema": {"type": "object"}, "description": "Says hi.",
        "config": {"script_path": "hi.py"}});
    visit.workspace.write("tools/tools.json", json!({"tools": [tool]}).to_string());
    visit.configure(&json!({"registry": {"dir": "tools"}}));
    let finished = visit.run(&["call", "hi"]);
    assert_eq!(finished.code, 2);
    assert!(finished.stderr.contains("tool `hi`: python3 "), "{}", finished.stderr);
    assert_runs(visit.haft(&["call", "hi", "--trust"]));
    assert_runs(visit.haft(&["call", "hi"]));
}

#[test]
fn at_a_terminal_the_user_is_asked_once() {
    let visit = Visit::new();
    let line = format!(
        "HAFT_TRUST= XDG_STATE_HOME='{}' \"$haft\" tools list",
        visit.state.path().display()
    );
    for answer in ["", "no"] {
        let mut terminal = Terminal::open(&visit.workspace, &line);
        terminal.see("starts these programs:");
        terminal.see("server `files`: ");
        terminal.see("[y/N]");
        terminal.enter(answer);
        let left = terminal.left();
        assert_eq!(left.code, 2, "{}", left.screen);
        assert!(left.screen.contains("nothing was started") && !visit.facts("one").exists());
    }
    let mut terminal = Terminal::open(&visit.workspace, &line);
    terminal.see("[y/N]");
    terminal.enter("y");
    let left = terminal.left();
    assert_eq!(left.code, 0, "{}", left.screen);
    let left = Terminal::open(&visit.workspace, &line).left();
    assert!(left.code == 0 && !left.screen.contains("[y/N]"), "{}", left.screen);
}

/// The files that the first `haft serve` writes are Haft's own, and serving needs no trust.
#[test]
fn serving_needs_no_trust_and_the_first_tools_are_trusted() {
    let visit = Visit::new();
    std::fs::remove_file(visit.workspace.path().join("haft.yaml")).unwrap();
    let serve = ["--json", "serve", "--listen", "127.0.0.1:0"];
    let serving = visit.haft(&serve).start();
    serving.line();
    serving.terminate();
    assert_eq!(serving.finish().code, 0);
    let finished = visit.run(&["call", "hello_world", "name=Ada"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    visit.configure(&json!({"servers": {"files": visit.server("one")}}));
    let serving = visit.haft(&serve).start();
    serving.line();
    eventually("the server starts", || visit.facts("one").exists().then_some(()));
    serving.terminate();
    assert_eq!(serving.finish().code, 0);
}

/// A running `haft mcp` does not start programs that are added to the files later.
#[test]
fn programs_that_are_added_later_are_not_started() {
    let visit = Visit::new();
    assert_runs(visit.haft(&["tools", "list", "--trust"]));
    let mut mcp = Command::new(env!("CARGO_BIN_EXE_haft"))
        .arg("mcp")
        .current_dir(visit.workspace.path())
        .env_remove("HAFT_CONFIG")
        .env_remove("HAFT_TRUST")
        .env("XDG_STATE_HOME", visit.state.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = mcp.stdin.take().unwrap();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }});
    writeln!(input, "{initialize}").unwrap();
    let mut answer = String::new();
    BufReader::new(mcp.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    assert!(answer.contains("serverInfo"), "{answer}");
    let servers = json!({"files": visit.server("one"), "more": visit.server("two")});
    visit.configure(&json!({ "servers": servers }));
    let mut said = BufReader::new(mcp.stderr.take().unwrap()).lines().map_while(Result::ok);
    let refused = said.find(|line| line.contains("is not trusted yet")).expect("a warning");
    assert!(refused.contains("server `more`: "), "{refused}");
    drop(input);
    let rest: Vec<String> = said.collect();
    assert!(mcp.wait().unwrap().success(), "{rest:?}");
    assert!(!visit.facts("two").exists());
}
