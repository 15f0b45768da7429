//! `haft import`: clients' servers in haft.yaml.

use serde_json::Value;
use testkit::{Finished, Program, Workspace};

use crate::{haft, transcript};

const VSCODE: &str = r#"{
  // for all users
  "inputs": [{"id": "api-key", "type": "promptString", "password": true}],
  "servers": {
    "files": {"command": "npx", "args": ["-y", "@scope/files", "${workspaceFolder}/data"], "env": {"KEY": "${env:MY_KEY}"}},
    "far": {"type": "http", "url": "https://example.com/mcp", "headers": {"X-Key": "${input:api-key}"}},
    "haft": {"type": "stdio", "command": "/usr/bin/haft", "args": ["mcp"]},
    "sandboxed": {"command": "x", "sandboxEnabled": true}
  }
}
"#;

const CLAUDE: &str = r#"{"mcpServers": {
  "git-hub": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ghp_abcdefghijklmnopqrstuvwxyz0123456789"}},
  "db": {"command": "db", "args": ["--api-key", "sk-live-0123456789abcdefghij", "--verbose"], "env": {"DB_PASSWORD": "hunter2hunter2", "LEVEL": "info"}},
  "served": {"type": "http", "url": "http://localhost:7300/mcp"}
}}"#;

fn at_home(workspace: &Workspace, args: &[&str]) -> Program {
    let home = workspace.path().join("home");
    haft(workspace, args).env("HOME", home.to_str().unwrap())
}

fn run(workspace: &Workspace, args: &[&str]) -> Finished {
    at_home(workspace, args).run()
}

fn told(workspace: &Workspace, args: &[&str]) -> String {
    format!("$ haft {}\n{}\n", args.join(" "), transcript(workspace, &run(workspace, args)))
}

/// Variables stay variables, what is not supported is named, Haft itself is left out.
#[test]
fn servers_are_printed_as_native_entries() {
    let workspace = Workspace::with(&[(".vscode/mcp.json", VSCODE), ("claude.json", CLAUDE)]);
    let text = told(&workspace, &["import", ".vscode/mcp.json"]);
    insta::assert_snapshot!(text + &told(&workspace, &["import", "claude.json"]));
    let json = run(&workspace, &["import", ".vscode/mcp.json", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["left_out"], serde_json::json!(["haft"]));
    assert_eq!(json["servers"]["files"]["env"]["KEY"], "${MY_KEY}");
    assert_eq!(workspace.read("haft.yaml"), None);
}

/// Imported entries and directly read ones are the same to every other command.
#[test]
fn a_written_copy_shows_the_same_servers() {
    let workspace = Workspace::with(&[(
        ".codex/config.toml",
        "[mcp_servers.a]\ncommand = 'x'\nargs = ['$HOME']\nstartup_timeout_sec = 2.5\nenabled_tools = ['t']\n[mcp_servers.b]\nurl = 'https://h/mcp'\nbearer_token_env_var = 'TOKEN'\n",
    )]);
    let with_token = |args: &[&str]| at_home(&workspace, args).env("TOKEN", "t0ken").run();
    let written = with_token(&["import", ".codex/config.toml", "--write"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    assert_eq!(written.stdout, "added 2 servers to haft.yaml\n");
    let servers = |file: &str| -> Vec<String> {
        let shown = with_token(&["-c", file, "config", "show", "--json"]);
        let rows: Vec<Value> = serde_json::from_str(&shown.stdout).unwrap();
        let ours = |row: &&Value| {
            row["path"]
                .as_str()
                .is_some_and(|path| path.starts_with("servers.") && !path.ends_with("cwd"))
        };
        let mut rows: Vec<String> = rows
            .iter()
            .filter(ours)
            .map(|row| format!("{}={}", row["path"], row["value"]))
            .collect();
        rows.sort();
        rows
    };
    assert_eq!(servers("haft.yaml"), servers(".codex/config.toml"));
    let checked = with_token(&["check", "--json"]);
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!((&checked["servers"], &checked["problems"]), (&2.into(), &serde_json::json!([])));
}

/// Comments stay, a copy is kept, names that are taken change nothing.
#[test]
fn entries_are_added_to_what_is_there() {
    let mine = "# mine\nservers:\n  own: {command: own}   # ours\n\nlog: {dir: elsewhere}\n";
    let workspace = Workspace::with(&[
        ("haft.yaml", mine),
        ("claude.json", r#"{"mcpServers": {"one": {"command": "./one", "args": ["a b"]}}}"#),
    ]);
    let mut text = told(&workspace, &["import", "claude.json", "--write"]);
    text += &workspace.read("haft.yaml").unwrap();
    assert_eq!(workspace.read("haft.yaml.bak").as_deref(), Some(mine));
    let written = workspace.read("haft.yaml");
    text += &told(&workspace, &["import", "claude.json", "--write"]);
    text += &told(&workspace, &["import", "claude.json", "--write", "--into", "sub/new.yaml"]);
    text += &workspace.stable(&workspace.read("sub/new.yaml").unwrap());
    insta::assert_snapshot!(text);
    assert_eq!(workspace.read("haft.yaml"), written);
    assert_eq!(workspace.read("haft.yaml.bak.1"), None);
}

/// A variable may be set where Haft runs and not here: that is reported, and does not fail the import.
#[test]
fn a_variable_that_is_not_set_here_stays_one() {
    let file = r#"{"mcpServers": {"a": {"url": "${NOT_SET}", "type": "http"}}}"#;
    let workspace = Workspace::with(&[("unset.json", file)]);
    let finished = run(&workspace, &["import", "unset.json", "--write"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(finished.stderr.contains("NOT_SET"), "{}", finished.stderr);
    assert!(workspace.read("haft.yaml").unwrap().contains("${NOT_SET}"));
}

/// Invalid results are not written: broken files, nothing to import.
#[test]
fn what_would_not_load_is_not_written() {
    let workspace = Workspace::with(&[
        ("half.json", r#"{"mcpServers": {"#),
        ("none.json", r#"{"mcpServers": {"haft": {"command": "haft", "args": ["mcp"]}}}"#),
        ("good.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#),
        ("native.yaml", "servers: {a: {command: x}}\n"),
        ("odd.yaml", "servers: {b: {command: y}}\nlog: {dirr: x}\n"),
        ("broken.yaml", "servers: [\n"),
    ]);
    let lines: [&[&str]; 7] = [
        &["import", "half.json", "--write"],
        &["import", "none.json", "--write"],
        &["import", "native.yaml", "--write"],
        &["import", "absent.json", "--write"],
        &["import", "good.json", "--write", "--into", "odd.yaml"],
        &["import", "good.json", "--write", "--into", "broken.yaml"],
        &["import", "--write"],
    ];
    let text: String = lines.iter().map(|line| told(&workspace, line)).collect();
    insta::assert_snapshot!(text);
    for file in ["haft.yaml", "odd.yaml.bak", "broken.yaml.bak"] {
        assert_eq!(workspace.read(file), None, "{file}");
    }
}

/// Without a file, the places of clients are looked through.
#[test]
fn clients_with_servers_are_found() {
    let workspace = Workspace::new();
    let mut text = told(&workspace, &["import"]);
    workspace.write(".vscode/mcp.json", VSCODE);
    workspace.write("home/.claude.json", r#"{"numStartups": 3, "mcpServers": {}}"#);
    workspace.write("home/.cursor/mcp.json", r#"{"mcpServers": {"#);
    workspace.write("home/.codex/config.toml", "model = 'x'\n");
    workspace.write(
        "home/.codeium/windsurf/mcp_config.json",
        r#"{"mcpServers": {"w": {"serverUrl": "https://h/mcp"}}}"#,
    );
    workspace.write("home/.config/goose/config.yaml", "extensions:\n  talk: {type: stdio, cmd: talk, args: []}\n  dev: {type: builtin, name: dev}\n");
    text += &told(&workspace, &["import"]);
    insta::assert_snapshot!(text);
    let json = run(&workspace, &["import", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(rows.len(), 6);
}

/// Cline's and Roo Code's `timeout` is seconds, Gemini's milliseconds; lists of tools become settings of servers and
/// tools; what the server loses of the client's environment is said.
#[test]
fn settings_of_cline_and_gemini_are_taken_over() {
    let cline = r#"{"mcpServers": {"files": {"command": "npx", "args": ["files"], "timeout": 60,
        "autoApprove": ["read_file"], "disabled": false, "env": {}}}}"#;
    let roo = r#"{"mcpServers": {"far": {"type": "streamable-http", "url": "https://h/mcp", "timeout": 90,
        "alwaysAllow": ["look_up", "find"]}}}"#;
    let gemini = r#"{"theme": "dark", "mcpServers": {
        "near": {"command": "x", "timeout": 30000, "includeTools": ["a", "b", "c"], "excludeTools": ["b"]},
        "web": {"httpUrl": "https://h/mcp", "excludeTools": ["delete"], "headers": {"Authorization": "Bearer $WEB_TOKEN"}}}}"#;
    let workspace = Workspace::with(&[
        ("cline_mcp_settings.json", cline),
        (".roo/mcp.json", roo),
        (".gemini/settings.json", gemini),
    ]);
    let files = ["cline_mcp_settings.json", ".roo/mcp.json", ".gemini/settings.json"];
    let text: String = files.iter().map(|file| told(&workspace, &["import", file])).collect();
    insta::assert_snapshot!(text);
}

/// `--move` takes the entries out of the client's file, keeps a copy, and leaves the rest as it was.
#[test]
fn moved_entries_leave_the_clients_file() {
    let client = "{\n  // mine\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"files\": {\"command\": \"x\"},\n    \"haft\": {\"command\": \"haft\", \"args\": [\"mcp\"]}\n  }\n}\n";
    let workspace = Workspace::with(&[("mcp.json", client)]);
    let moved = run(&workspace, &["import", "mcp.json", "--write", "--move", "--json"]);
    assert_eq!(moved.code, 0, "{}", moved.stderr);
    let report: Value = serde_json::from_str(&moved.stdout).unwrap();
    let copy = std::fs::read_to_string(report["original"].as_str().unwrap()).unwrap();
    assert_eq!((report["moved"].as_bool(), copy.as_str()), (Some(true), client));
    let rest = workspace.read("mcp.json").unwrap();
    assert!(
        rest.contains("// mine") && rest.contains("\"haft\"") && !rest.contains("files"),
        "{rest}"
    );
    assert!(workspace.read("haft.yaml").unwrap().contains("files"));
    // A file that is not a client's keeps its entries, and nothing is written at all.
    workspace.write("agent.yaml", "tools: [{type: mcp, name: a, command: x}]\n");
    let refused =
        run(&workspace, &["import", "agent.yaml", "--write", "--move", "--into", "new.yaml"]);
    assert_eq!((refused.code, workspace.read("new.yaml")), (2, None), "{refused:?}");
}

/// An entry of haft.yaml that is broken already is not a reason to refuse others.
#[test]
fn a_broken_entry_does_not_prevent_an_import() {
    let broken = "servers:\n  bad: {command: x, env: {TOKEN: '${NOT_SET_ANYWHERE}'}}\n";
    let workspace = Workspace::with(&[
        ("haft.yaml", broken),
        ("mcp.json", r#"{"mcpServers": {"far": {"url": "https://h/mcp"}}}"#),
    ]);
    let imported = run(&workspace, &["import", "mcp.json", "--write"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    assert!(workspace.read("haft.yaml").unwrap().contains("https://h/mcp"));
    assert_eq!(run(&workspace, &["check"]).code, 2);
}
