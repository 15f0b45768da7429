//! Python scripts and commands in a real sandbox, of both kinds: what they can do there, and what they cannot.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use serde_json::{Value, json};
use testkit::{Program, Workspace};

/// Whole in itself, unlike an interpreter behind the shims of a version manager.
const PYTHON: &str = "/usr/bin/python3";
const KINDS: [&str; 2] = ["landlock", "bubblewrap"];
/// A script in a warm worker, and a command that is started for each call.
const TOOLS: [&str; 2] = ["script", "command"];

/// Runs the code that it is given, and answers what the code leaves in `answer`.
const SCRIPT: &str = "\
def attempt(do):
    try:
        do()
        return 'ok'
    except OSError:
        return 'refused'

def run(args):
    scope = {'attempt': attempt}
    try:
        exec(args['code'], scope)
    except BaseException as error:
        return type(error).__name__
    return scope.get('answer')
";
const COMMAND: &str =
    "import json, sys\nfrom probe import run\nprint(json.dumps(run(json.load(sys.stdin))))\n";

/// A workspace with both tools in one sandbox.
fn workspace(sandbox: &Value) -> Workspace {
    let tool = |name: &str, config: Value| {
        json!({
            "name": name, "description": "Tries something.", "timeout": "60s",
            "input_schema": {"type": "object", "properties": {"code": {"type": "string"}}},
            "config": config, "sandbox": sandbox,
        })
    };
    let config = json!({
        "defaults": {"python": PYTHON},
        "local_tools": [
            tool("script", json!({"script_path": "probe.py"})),
            tool("command", json!({"command": [PYTHON], "script_path": "main.py", "runtime": "command"})),
        ],
    });
    let config = config.to_string();
    let workspace =
        Workspace::with(&[("haft.json", &config), ("probe.py", SCRIPT), ("main.py", COMMAND)]);
    std::fs::create_dir(workspace.path().join("out")).unwrap();
    workspace
}

fn program(workspace: &Workspace, tool: &str, code: &str) -> Program {
    let arguments = json!({"code": code}).to_string();
    crate::haft(workspace, &["call", tool, &arguments, "--json"]).env("OUR_SECRET", "canary")
}

fn envelope(workspace: &Workspace, tool: &str, code: &str) -> Value {
    let finished = program(workspace, tool, code).run();
    serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{}", finished.stderr))
}

/// The value that the code left in `answer`, or the name of its exception.
fn answer(workspace: &Workspace, tool: &str, code: &str) -> Value {
    let envelope = envelope(workspace, tool, code);
    assert_eq!(envelope["status"], "success", "{tool}: {envelope:#}");
    envelope["data"].clone()
}

/// True if this machine enforces the kind. Otherwise asserts that the tools do not run; prints that it is skipped.
fn is_enforced(kind: &str) -> bool {
    let support = haft::sandbox::support();
    let missing = match kind {
        "landlock" => support.landlock.err(),
        _ => support.bubblewrap.err(),
    };
    let Some(missing) = missing else { return true };
    println!("SKIPPED: {kind} is not enforced here: {missing}");
    let workspace = workspace(&json!(kind));
    for tool in TOOLS {
        let envelope = envelope(&workspace, tool, "open('out/ran', 'w')");
        assert_eq!(envelope["error"]["code"], "ServiceUnavailable", "{envelope:#}");
    }
    assert!(!workspace.path().join("out/ran").exists());
    false
}

/// Files: those of the tool are read, listed ones written, and all others refused, among them Haft's own.
#[test]
fn a_tool_in_a_sandbox_uses_the_files_it_may() {
    for kind in KINDS.into_iter().filter(|kind| is_enforced(kind)) {
        let workspace = workspace(&json!({"kind": kind, "write": ["out"]}));
        let other = Workspace::with(&[("secret", "canary")]);
        workspace.write(".haft/tokens/one", "canary");
        let (here, there) = (workspace.path().display(), other.path().display());
        let code = format!(
            "import os, tempfile
def environment_of_haft():
    seen = b''
    for owner in ('self', os.getppid()):
        try:
            seen += open(f'/proc/{{owner}}/environ', 'rb').read()
        except OSError:
            pass
    if b'canary' not in seen:
        raise OSError('not there')
answer = [
    attempt(lambda: open('{here}/probe.py').read()),
    attempt(lambda: open('{here}/out/made', 'w').write('made')),
    attempt(lambda: open(os.path.join(tempfile.gettempdir(), 'new'), 'w').write('new')),
    attempt(lambda: open('/dev/null', 'w').write('new')),
    attempt(lambda: open('{there}/secret').read()),
    attempt(lambda: open('{there}/new', 'w')),
    attempt(lambda: open('{here}/haft.json').read()),
    attempt(lambda: open('{here}/.haft/tokens/one').read()),
    attempt(lambda: open('{here}/probe.py', 'a')),
    attempt(lambda: os.truncate('{there}/secret', 0)),
    attempt(lambda: open('/etc/shadow').read()),
    attempt(lambda: environment_of_haft()),
]"
        );
        let expected = [["ok"; 4].as_slice(), ["refused"; 8].as_slice()].concat();
        for tool in TOOLS {
            assert_eq!(answer(&workspace, tool, &code), json!(expected), "{kind} {tool}");
            assert_eq!(workspace.read("out/made").as_deref(), Some("made"));
            std::fs::remove_file(workspace.path().join("out/made")).unwrap();
        }
        assert_eq!(other.read("secret").as_deref(), Some("canary"));
    }
}

/// Without a network, `network: all`, and single ports.
#[test]
fn a_tool_in_a_sandbox_uses_the_network_it_may() {
    let (first, second) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let (first, second) = (port(&first), port(&second));
    let code = format!(
        "import socket
answer = [attempt(lambda: socket.create_connection(('127.0.0.1', port), 5)) for port in ({first}, {second})]"
    );
    for kind in KINDS.into_iter().filter(|kind| is_enforced(kind)) {
        let mut cases = vec![
            (json!("none"), json!(["refused", "refused"])),
            (json!("all"), json!(["ok", "ok"])),
        ];
        if kind == "landlock" {
            cases.push((json!([first]), json!(["ok", "refused"])));
        }
        for (network, expected) in cases {
            let workspace = workspace(&json!({"kind": kind, "network": network}));
            for tool in TOOLS {
                assert_eq!(answer(&workspace, tool, &code), expected, "{kind} {tool} {network}");
            }
        }
    }
}

/// Memory, open files and processor time, with both kinds and with limits alone.
#[test]
fn a_tool_in_a_sandbox_stays_within_its_limits() {
    for kind in KINDS.into_iter().filter(|kind| is_enforced(kind)).chain(["none"]) {
        let limits = json!({"kind": kind, "memory": "256MiB", "open_files": 32, "cpu": "1s"});
        let workspace = workspace(&limits);
        for tool in TOOLS {
            let exhausted = |code: &str| answer(&workspace, tool, code);
            assert_eq!(exhausted("answer = len(bytearray(64 << 20))"), 64 << 20, "{kind} {tool}");
            assert_eq!(exhausted("bytearray(512 << 20)"), "MemoryError", "{kind} {tool}");
            let open = "files = [open('/dev/null') for _ in range(64)]";
            assert_eq!(exhausted(open), "OSError", "{kind} {tool}");
            let envelope = envelope(&workspace, tool, "while True: pass");
            let message = envelope["error"]["message"].as_str().unwrap_or_default();
            assert!(
                message.contains("SIGXCPU") || message.contains("152"),
                "{kind} {tool}: {envelope:#}"
            );
        }
    }
}

/// Processes, which the kernel does not limit for root: there the tool does not start.
#[test]
fn a_tool_in_a_sandbox_starts_as_many_processes_as_it_may() {
    let forks = "import os, time
children = []
try:
    for _ in range(64):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        children.append(child)
except OSError:
    pass
for child in children:
    os.kill(child, 9)
answer = len(children)";
    let is_root = rustix::process::getuid().is_root();
    for kind in KINDS.into_iter().filter(|kind| is_enforced(kind)) {
        let workspace = workspace(&json!({"kind": kind, "processes": 8}));
        for tool in TOOLS {
            let envelope = if is_root {
                let refused = envelope(&workspace, tool, "open('out/ran', 'w')");
                let message = refused["error"]["message"].as_str().unwrap();
                assert!(message.contains("does not limit the processes of root"), "{message}");
                as_another_user(&workspace, tool, forks)
            } else {
                envelope(&workspace, tool, forks)
            };
            let number = envelope["data"].as_u64();
            let number = number.unwrap_or_else(|| panic!("{kind} {tool}: {envelope:#}"));
            // Other processes of this user may end or start meanwhile.
            assert!((1..=24).contains(&number), "{kind} {tool}: {number}");
        }
    }
}

/// The same call by a user without rights.
fn as_another_user(workspace: &Workspace, tool: &str, code: &str) -> Value {
    const OTHER_USER: u32 = 65_534;
    let folder = Workspace::new();
    for file in ["haft.json", "probe.py", "main.py"] {
        folder.write(file, workspace.read(file).unwrap());
    }
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_haft"));
    let arguments = json!({"code": code}).to_string();
    command.args(["call", tool, &arguments, "--json"]).current_dir(folder.path());
    command.env("HOME", folder.path()).env("XDG_STATE_HOME", folder.path()).env("HAFT_TRUST", "1");
    command.env("HAFT__BUILTIN__ENABLED", "false");
    let output = command.uid(OTHER_USER).gid(OTHER_USER).output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// A sandbox whose mechanism is missing, or fails, runs nothing.
#[test]
fn a_tool_does_not_run_without_its_sandbox() {
    let workspace = workspace(&json!("bubblewrap"));
    let path = workspace.path().display().to_string();
    for tool in TOOLS {
        let code = "open('out/ran', 'w')";
        let finished = program(&workspace, tool, code).env("PATH", &path).run();
        let envelope: Value = serde_json::from_str(&finished.stdout).unwrap();
        let error = &envelope["error"];
        assert_eq!(error["code"], "ServiceUnavailable", "{envelope:#}");
        assert_eq!(
            error["message"],
            format!(
                "`{tool}` was not run, because its sandbox could not be made: `bwrap` is in no directory of PATH"
            )
        );
    }
    let refusal = "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n";
    let bwrap = workspace.write("bwrap", refusal);
    std::fs::set_permissions(&bwrap, std::fs::Permissions::from_mode(0o755)).unwrap();
    for tool in TOOLS {
        let finished = program(&workspace, tool, "open('out/ran', 'w')").env("PATH", &path).run();
        let envelope: Value = serde_json::from_str(&finished.stdout).unwrap();
        let message = envelope["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("bwrap: No permissions to create new namespace"), "{message}");
    }
    assert!(!workspace.path().join("out/ran").exists());
}

/// A launcher that does not understand its order starts nothing.
#[test]
fn a_launcher_refuses_what_it_does_not_know() {
    let workspace = Workspace::new();
    let made = workspace.path().join("made").display().to_string();
    for spec in ["{}", "[]", r#"{"landlock": null, "limits": {"disk": 1}}"#, "landlock"] {
        let finished = crate::run(&workspace, &["sandbox-exec", spec, "touch", &made]);
        assert_eq!(finished.code, 125, "{spec}");
        assert_eq!(finished.stderr, "haft sandbox: the specification cannot be read\n");
    }
    assert!(!Path::new(&made).exists());
}

/// The temporary folder of a call ends with its process.
#[test]
fn the_temporary_folder_of_a_sandbox_is_removed() {
    if !is_enforced("landlock") {
        return;
    }
    let workspace = workspace(&json!("landlock"));
    let code = "import os, tempfile
answer = tempfile.gettempdir()
open(os.path.join(answer, 'left'), 'w').close()";
    for tool in TOOLS {
        let folder = answer(&workspace, tool, code);
        let folder = Path::new(folder.as_str().unwrap());
        assert!(folder.is_absolute() && !folder.exists(), "{tool}: {}", folder.display());
    }
}
