//! Stdio servers in a real sandbox, and what `check`, `doctor`, `config show` and `explain` say about it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use testkit::fixture::Fixture;
use testkit::peers::{self, Address, Era};
use testkit::{Program, Workspace};

use crate::real_support::Peer;

/// A server with one tool, which tries to read a file.
const SERVER: &str = r"
import json, os, sys

def attempt(arguments):
    try:
        return open(arguments['path']).read()
    except OSError as error:
        return 'refused'

for line in sys.stdin:
    message = json.loads(line)
    method = message.get('method')
    if 'id' not in message:
        continue
    if method == 'initialize':
        result = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}},
                  'serverInfo': {'name': 'reader', 'version': '1'}}
    elif method == 'tools/list':
        schema = {'type': 'object', 'properties': {'path': {'type': 'string'}}}
        result = {'tools': [{'name': 'read', 'description': 'Reads a file.', 'inputSchema': schema}]}
    elif method == 'tools/call':
        text = attempt(message['params']['arguments'])
        result = {'content': [{'type': 'text', 'text': text}]}
    else:
        answer = {'jsonrpc': '2.0', 'id': message['id'], 'error': {'code': -32601, 'message': 'unknown'}}
        print(json.dumps(answer), flush=True)
        continue
    print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}), flush=True)
";

/// The kinds that this machine enforces. A server of any other kind does not start.
fn enforced() -> Vec<&'static str> {
    let support = haft::sandbox::support();
    let kinds = [("landlock", support.landlock), ("bubblewrap", support.bubblewrap)];
    let mut enforced = Vec::new();
    for (kind, support) in kinds {
        match support {
            Ok(_) => enforced.push(kind),
            Err(missing) => {
                println!("SKIPPED: {kind} is not enforced here: {missing}");
                let workspace = reader(&json!(kind));
                let finished =
                    crate::run(&workspace, &["call", "read", "path=/etc/hosts", "--json"]);
                assert_ne!(finished.code, 0, "{}", finished.stdout);
            }
        }
    }
    enforced
}

fn reader(sandbox: &Value) -> Workspace {
    let server = json!({
        "command": "/usr/bin/python3", "args": ["server.py"], "sandbox": sandbox, "reconnect": {"attempts": 0},
    });
    let config = json!({"servers": {"files": server}}).to_string();
    Workspace::with(&[("haft.json", &config), ("server.py", SERVER), ("notes.txt", "ours")])
}

fn text(workspace: &Workspace, arguments: &Value) -> String {
    let args = ["call", "read", &arguments.to_string(), "--json"];
    let finished = crate::run(workspace, &args);
    let envelope: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{}", finished.stderr));
    let text = envelope["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{envelope:#}\n{}", finished.stderr)).to_owned()
}

/// A server reads its working directory and the listed folders, not Haft's files and no others.
#[test]
fn a_server_in_a_sandbox_reads_what_it_may() {
    let other = Workspace::with(&[("listed/a.txt", "listed"), ("secret", "canary")]);
    let path = |name: &str| json!({"path": other.path().join(name)});
    for kind in enforced() {
        let listed = other.path().join("listed");
        let workspace = reader(&json!({"kind": kind, "read": [listed]}));
        assert_eq!(text(&workspace, &json!({"path": "notes.txt"})), "ours", "{kind}");
        assert_eq!(text(&workspace, &path("listed/a.txt")), "listed", "{kind}");
        assert_eq!(text(&workspace, &path("secret")), "refused", "{kind}");
        assert_eq!(text(&workspace, &json!({"path": "haft.json"})), "refused", "{kind}");
    }
    let workspace = reader(&json!("none"));
    assert_eq!(text(&workspace, &path("secret")), "canary");
}

/// A program that lies in the home directory, and works there, does not read it.
#[test]
fn a_program_in_the_home_directory_does_not_read_it() {
    for kind in enforced() {
        let home = reader(&json!(kind));
        home.write("server.py", format!("#!/usr/bin/python3{SERVER}"));
        let server = home.path().join("server.py");
        std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
        let config = json!({"servers": {"files": {"command": server, "sandbox": kind}}});
        home.write("haft.json", config.to_string());
        let elsewhere = Workspace::new();
        let read = |path: &str| {
            let path = json!({"path": home.path().join(path)}).to_string();
            let home = home.path().display().to_string();
            let program = Program::new(env!("CARGO_BIN_EXE_haft"), &elsewhere);
            let config = format!("{home}/haft.json");
            program.args(&["-c", &config, "call", "read", &path]).env("HOME", &home).run()
        };
        let finished = read("notes.txt");
        assert_eq!(finished.stdout, "refused\n", "{kind}: {}", finished.stderr);
    }
}

/// The default holds for entries without their own sandbox; an entry replaces it as a whole.
#[test]
fn the_default_sandbox_holds_unless_an_entry_replaces_it() {
    let Some(kind) = enforced().first().copied() else { return };
    let other = Workspace::with(&[("secret", "canary")]);
    let secret = json!({"path": other.path().join("secret")});
    let mut config = json!({
        "defaults": {"sandbox": kind},
        "servers": {"files": {"command": "/usr/bin/python3", "args": ["server.py"]}},
    });
    let workspace = Workspace::with(&[("haft.json", &config.to_string()), ("server.py", SERVER)]);
    assert_eq!(text(&workspace, &secret), "refused");
    config["servers"]["files"]["sandbox"] = json!("none");
    workspace.write("haft.json", config.to_string());
    assert_eq!(text(&workspace, &secret), "canary");
}

/// The test server works in both sandboxes, with limits too.
#[test]
fn the_fixture_works_in_a_sandbox() {
    for kind in enforced() {
        let sandbox = json!({"kind": kind, "memory": "512MiB", "open_files": 128, "cpu": "30s"});
        let scenario = json!({"tools": ["echo"]});
        let server = json!({
            "command": Fixture::path(), "args": Fixture::stdio_args(&scenario), "sandbox": sandbox,
        });
        let config = json!({"servers": {"fixture": server}}).to_string();
        let workspace = Workspace::with(&[("haft.json", &config)]);
        let finished = crate::run(&workspace, &["call", "echo", r#"{"text": "hello"}"#, "--json"]);
        assert_eq!(finished.code, 0, "{kind}: {}{}", finished.stdout, finished.stderr);
        assert!(finished.stdout.contains("hello"), "{}", finished.stdout);
    }
}

/// The official server for files, in node: it writes the listed folder and reads no other one.
#[test]
fn the_filesystem_server_works_in_a_sandbox() {
    for kind in enforced() {
        let project = Workspace::with(&[("notes.txt", "ours")]);
        let server = peers::filesystem(project.path());
        let packages = peers::folder();
        let settings = json!({"sandbox": {
            "kind": kind, "read": [packages], "write": [project.path()], "memory": "1GiB",
        }});
        let peer = Peer::with(&Address::Stdio(server), &settings);
        let path = |name: &str| project.path().join(name).display().to_string();
        let written = json!({"path": path("new.txt"), "content": "made"});
        let answer = peer.call("write_file", &written);
        assert_eq!(answer["status"], "success", "{kind}: {answer:#}");
        assert_eq!(project.read("new.txt").as_deref(), Some("made"), "{kind}");
        let answer = peer.call("read_text_file", &json!({"path": path("notes.txt")}));
        assert!(answer.to_string().contains("ours"), "{kind}: {answer:#}");
    }
}

/// The official server for git, from PyPI in an environment of its own, as `uvx` makes one: it works on a repository
/// that it may read, and not on another.
#[test]
fn a_python_server_works_in_a_sandbox() {
    for kind in enforced() {
        let packages = peers::folder().canonicalize().unwrap();
        let repository = Workspace::new();
        peers::git_repository(repository.path());
        let log = |read: &Value| {
            let sandbox = json!({"kind": kind, "read": read, "memory": "2GiB", "open_files": 256});
            // Git ends at a configuration that exists and cannot be read.
            let mut server = peers::git(Era::Legacy, repository.path())
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1");
            // The folder may be a link.
            let program = Path::new(&server.program).strip_prefix(peers::folder()).unwrap();
            server.program = packages.join(program).display().to_string();
            let peer = Peer::with(&Address::Stdio(server), &json!({"sandbox": sandbox}));
            let args = json!({"repo_path": repository.path()}).to_string();
            let finished = crate::run(&peer.workspace, &["call", "git_log", &args, "--json"]);
            (finished.code, finished.stdout + &finished.stderr)
        };
        let (code, text) = log(&json!([packages, repository.path()]));
        assert_eq!(code, 0, "{kind}: {text}");
        assert!(text.contains("Commit: "), "{kind}: {text}");
        let (code, text) = log(&json!([packages]));
        assert_ne!(code, 0, "{kind}: {text}");
    }
}

/// Settings that cannot be enforced are refused when the file is loaded.
#[test]
fn a_sandbox_that_cannot_be_enforced_is_refused() {
    let config = r"
defaults:
  sandbox: {kind: landlock, write: [.]}
servers:
  a: {command: a, sandbox: {kind: bubblewrap, network: [443]}}
  b: {command: b, sandbox: {kind: landlock, network: ['example.com:443']}}
  c: {command: c, sandbox: {kind: none, read: [/srv], memory: 1kB}}
  d: {command: d, sandbox: {memory: 512MB}}
  e: {command: e, sandbox: chroot}
  f: {url: 'https://example.com/mcp', sandbox: landlock}
  g: {command: g, sandbox: {kind: landlock, read: [~/.cache], open_files: 4}}
local_tools:
  - {name: t, description: Runs., background: allow, sandbox: bubblewrap, config: {command: [t]}, input_schema: {type: object}}
";
    let workspace = Workspace::with(&[("haft.yaml", config)]);
    let finished = crate::run(&workspace, &["check"]);
    insta::assert_snapshot!(crate::transcript(&workspace, &finished));
}

/// `check` refuses what this machine lacks; `doctor` lists what it has.
#[test]
fn check_and_doctor_report_on_sandboxes() {
    let Some(kind) = enforced().first().copied() else { return };
    let workspace = reader(&json!({"kind": kind, "read": ["absent"]}));
    let finished = crate::run(&workspace, &["check"]);
    assert_eq!(finished.code, 2);
    assert!(
        finished.stderr.contains("server `files` cannot start in its sandbox"),
        "{}",
        finished.stderr
    );
    assert!(finished.stderr.contains("absent` in `read` does not exist"), "{}", finished.stderr);

    let workspace = reader(&json!("bubblewrap"));
    let path = workspace.path().display().to_string();
    let finished = crate::haft(&workspace, &["check", "--json"]).env("PATH", &path).run();
    assert_eq!(finished.code, 2, "{}", finished.stdout);
    assert!(finished.stdout.contains("`bwrap` is in no directory of PATH"), "{}", finished.stdout);

    let workspace = reader(&json!(kind));
    let finished = crate::run(&workspace, &["doctor", "--json"]);
    let findings: Vec<Value> = serde_json::from_str(&finished.stdout).unwrap();
    let found = findings.iter().find(|it| it["check"] == kind);
    assert_eq!(found.map(|it| &it["verdict"]), Some(&json!("ok")), "{}", finished.stdout);
    assert_eq!(finished.code, 0, "{}", finished.stdout);
}

/// The effective sandbox is shown with its origin.
#[test]
fn a_sandbox_is_shown_with_its_origin() {
    let Some(kind) = enforced().first().copied() else { return };
    let workspace = reader(&json!({"kind": kind, "read": ["/srv"], "cpu": "90s"}));
    let finished = crate::run(&workspace, &["config", "show", "--json"]);
    let rows: Value = serde_json::from_str(&finished.stdout).unwrap();
    let rows = rows.as_array().or_else(|| rows["settings"].as_array()).unwrap();
    let row = rows.iter().find(|row| row["path"] == "servers.files.sandbox").unwrap();
    let shown =
        json!({"kind": kind, "read": ["/srv"], "write": [], "network": "none", "cpu": "90s"});
    assert_eq!(row["value"], shown);
    assert!(row["from"].as_str().unwrap().starts_with("haft.json:1:"), "{row}");

    let finished = crate::run(&workspace, &["explain", "read", "--json"]);
    let explained: Value = serde_json::from_str(&finished.stdout).unwrap();
    let settings = explained["config"].as_array().unwrap();
    let setting = settings.iter().find(|it| it["key"] == "sandbox").unwrap();
    assert_eq!(setting["value"], shown);
}
