//! Configurations with the programmable server, and a terminal to look at them.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::fixture::{Fixture, events};
use testkit::{Finished, Program, Workspace, eventually, is_running};

/// A server that runs the fixture. One attempt is enough to see it fail.
pub(crate) fn server(scenario: &Value) -> Value {
    json!({
        "command": Fixture::path(),
        "args": Fixture::stdio_args(scenario),
        "reconnect": {"attempts": 0},
    })
}

/// The same with more settings.
pub(crate) fn server_with(scenario: &Value, settings: Value) -> Value {
    let mut server = server(scenario);
    let Value::Object(settings) = settings else { panic!("settings are an object") };
    server.as_object_mut().unwrap().extend(settings);
    server
}

/// A server that ends before it answers, with a last word.
pub(crate) fn broken() -> Value {
    server(&json!({"start": {"stderr": "out of cheese\n", "exit": 7}}))
}

/// A workspace with these servers.
pub(crate) fn workspace(servers: &Value) -> Workspace {
    Workspace::with(&[("haft.json", &json!({"servers": servers}).to_string())])
}

/// Two that answer, one of them late, and one that does not.
pub(crate) fn three() -> Workspace {
    let good = json!({
        "instructions": "Be kind.\nBe brief.",
        "tools": ["echo", "text", "big"],
        "start": {"stderr": "hello\n"},
    });
    let late =
        json!({"name": "late", "tools": ["sleep"], "prompts": 0, "resources": [], "templates": []});
    workspace(&json!({
        "good": server(&good),
        "late": server_with(&late, json!({"start": "lazy"})),
        "bad": broken(),
    }))
}

/// Exit code and both streams, without what differs between machines and runs.
pub(crate) fn transcript(workspace: &Workspace, finished: &Finished) -> String {
    let text = crate::transcript(workspace, finished);
    let fixture = Fixture::path().display().to_string();
    let text = text.replace(&fixture, "FIXTURE");
    // The command line of the fixture is as wide as the path to it.
    let lines = text.lines().map(|line| match line.split_once("FIXTURE stdio") {
        Some((before, _)) => format!("{before}FIXTURE stdio ..."),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Runs a shell line with `$haft` at a terminal with `columns` columns. Both streams come as one.
pub(crate) fn at_terminal(workspace: &Workspace, columns: u16, line: &str) -> Finished {
    const SPAWN: &str = "import os, pty, sys\n\
        sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let line = format!("stty rows 24 cols {columns}; {line}");
    let program = Program::new("python3", workspace);
    program
        .args(&["-c", SPAWN, "sh", "-c", &line])
        .env("haft", env!("CARGO_BIN_EXE_haft"))
        .env("TERM", "xterm")
        .run()
}

/// A file for facts, and a scenario's field that names it.
pub(crate) fn facts_file(workspace: &Workspace) -> PathBuf {
    workspace.path().join("facts")
}

/// Waits until a fixture runs; its process id.
pub(crate) fn started(facts: &std::path::Path) -> u32 {
    let pid = eventually("the server starts", || events(facts, "start").first()?["pid"].as_u64());
    u32::try_from(pid).unwrap()
}

/// No process that ever wrote to the file runs any more.
pub(crate) fn assert_all_gone(facts: &std::path::Path) {
    let starts = events(facts, "start");
    assert!(!starts.is_empty(), "no server ever started");
    for start in starts {
        let pid = u32::try_from(start["pid"].as_u64().unwrap()).unwrap();
        assert!(!is_running(pid), "{pid} still runs");
    }
}
