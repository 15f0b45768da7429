//! Commands beside a running service of the same configuration.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::fixture::{events, messages};
use testkit::{Finished, Program, Running, Workspace, eventually};

use crate::agent_support::{CTRL_C, Terminal};
use crate::mcp_support::{facts_file, server};
use crate::{haft, run};

/// A running `haft serve` in a workspace. Ends with the test.
struct Service(Option<Running>);

impl Service {
    fn start(workspace: &Workspace, args: &[&str]) -> Self {
        let serve = ["--json", "serve", "--listen", "127.0.0.1:0"];
        let running = haft(workspace, &[args, &serve].concat()).start();
        let mut text = String::new();
        while serde_json::from_str::<Value>(&text).is_err() {
            text += &running.line();
        }
        Self(Some(running))
    }

    fn end(mut self) -> Finished {
        let running = self.0.take().unwrap();
        running.terminate();
        running.finish()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            running.terminate();
            let _ = running.finish();
        }
    }
}

fn socket(workspace: &Workspace) -> PathBuf {
    let folder = std::fs::read_dir(workspace.path().join(".haft")).unwrap();
    let mut sockets = folder.map(|file| file.unwrap().path());
    sockets.find(|path| path.extension().is_some_and(|it| it == "sock")).expect("a socket")
}

fn fixture(workspace: &Workspace) -> Value {
    server(&json!({
        "facts": facts_file(workspace), "tools": ["echo", "text", "sleep", "fail"],
        "prompts": [{"name": "review", "arguments": [{"name": "language", "required": true}]}],
        "resources": [{"uri": "notes://today", "name": "today", "text": "buy milk"}], "templates": [],
    }))
}

fn one_server() -> Workspace {
    let workspace = Workspace::new();
    let config = json!({"servers": {"files": fixture(&workspace)}});
    workspace.write("haft.json", config.to_string());
    workspace
}

fn starts(workspace: &Workspace) -> usize {
    events(&facts_file(workspace), "start").len()
}

/// Starts a call of the service that takes a minute, and waits until its server works on it. Returns the call's id too.
fn long_call(workspace: &Workspace) -> (Running, String) {
    let calling = haft(workspace, &["call", "sleep", r#"{"ms": 60000}"#]).start();
    let facts = facts_file(workspace);
    eventually("the server works on it", || {
        (messages(&facts, "tools/call").len() == 1).then_some(())
    });
    let calls: Value = run(workspace, &["ps", "--json"]).stdout.parse().unwrap();
    let call = calls.as_array().unwrap().iter().find(|it| it["tool"] == "sleep");
    let id = call.expect("a call of the service")["execution_id"].as_str().unwrap().to_owned();
    (calling, id)
}

/// Waits until the service has ended its call and cancelled it at the server.
fn see_cancelled(workspace: &Workspace) {
    eventually("no call is in flight", || {
        (run(workspace, &["ps", "--json"]).stdout.trim() == "[]").then_some(())
    });
    let facts = facts_file(workspace);
    eventually("the server receives the cancellation", || {
        (messages(&facts, "notifications/cancelled").len() == 1).then_some(())
    });
}

/// Every command gives the same output by way of the service and without it. Only a call of a tool that the service
/// lacks starts a server.
#[test]
fn commands_answer_from_the_running_service_with_the_same_output() {
    let workspace = one_server();
    let commands: [(&[&str], i32, &str); 13] = [
        (&["tools", "list"], 0, "echo"),
        (&["tools", "list", "--json"], 0, "echo"),
        (&["tools", "show", "echo"], 0, "echo"),
        (&["tools", "show", "nope"], 1, ""),
        (&["call", "echo", "a=1", "b=x"], 0, "x"),
        (&["call", "fail"], 1, ""),
        (&["call", "nope"], 1, ""),
        (&["servers", "show", "nope"], 2, ""),
        (&["prompts", "list"], 0, "review"),
        (&["prompts", "get", "review", "language=Rust"], 0, "Rust"),
        (&["prompts", "get", "review"], 2, ""),
        (&["resources", "list"], 0, "notes://today"),
        (&["resources", "read", "notes://today"], 0, "buy milk"),
    ];
    let alone = commands.map(|(args, code, shown)| {
        let alone = run(&workspace, args);
        assert!(alone.code == code && alone.stdout.contains(shown), "{args:?}: {alone:?}");
        alone
    });
    let service = Service::start(&workspace, &[]);
    eventually("the server is connected", || {
        run(&workspace, &["servers", "list"]).stdout.contains("ready").then_some(())
    });
    let before = starts(&workspace);
    for ((args, ..), alone) in commands.iter().zip(alone) {
        let beside = run(&workspace, args);
        let stdout = |it: &Finished| without_ids(&it.stdout);
        assert_eq!((beside.code, stdout(&beside)), (alone.code, stdout(&alone)), "{args:?}");
        let problems = [&beside, &alone].map(|it| error_and_remedy(&it.stderr));
        assert_eq!(problems[0], problems[1], "{args:?}: {beside:?} {alone:?}");
    }
    // `nope`: the service may not have read the last change of the files yet, so the command looks for itself.
    assert_eq!(starts(&workspace), before + 1, "a command started a server of its own");
    // --standalone does what was done before.
    assert_eq!(run(&workspace, &["--standalone", "call", "echo"]).code, 0);
    assert_eq!(starts(&workspace), before + 2);
    // The calls are in the same log, under the same caller.
    let log = run(&workspace, &["log", "--json"]).stdout;
    let callers: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["caller"].clone())
        .collect();
    assert!(callers.len() >= 4 && callers.iter().all(|it| it == "cli"), "{callers:?}");
    drop(service);
}

/// The error on standard error and its remedy. Warnings come before it: of a slow disk, for example.
fn error_and_remedy(stderr: &str) -> Vec<&str> {
    let error = stderr.lines().skip_while(|line| !line.starts_with("error: "));
    error.filter(|line| line.starts_with("error: ") || line.contains("help: ")).collect()
}

fn without_ids(text: &str) -> String {
    let lines =
        text.lines().filter(|line| !["execution_id", "_ms\""].iter().any(|it| line.contains(it)));
    lines.collect::<Vec<_>>().join("\n")
}

/// `servers list`, `servers ping` and `status` show how the service's servers are.
#[test]
fn status_and_servers_show_the_service() {
    let workspace = one_server();
    let none = run(&workspace, &["status"]);
    assert!(none.code == 0 && none.stdout.contains("not running"), "{none:?}");
    let service = Service::start(&workspace, &[]);
    eventually("it is connected", || {
        let status = run(&workspace, &["status", "--json"]);
        let status: Value = serde_json::from_str(&status.stdout).unwrap();
        let status = &status["service"];
        let server = &status["servers"][0];
        (server["state"] == "ready" && status["tools"].as_u64() >= Some(4)).then_some(())
    });
    let shown = run(&workspace, &["status"]).stdout;
    assert!(shown.contains("running:") && shown.contains("1 of 1 ready"), "{shown}");
    let pinged = run(&workspace, &["servers", "ping", "--json"]);
    let pinged: Value = serde_json::from_str(&pinged.stdout).unwrap();
    assert_eq!(pinged[0]["ok"], true, "{pinged}");
    assert_eq!(starts(&workspace), 1);
    let config = workspace.read("haft.json").unwrap();
    workspace.write("haft.json", config.replacen('{', "{\"nonsense\": 1, ", 1));
    let shown = eventually("the problem of the files is shown", || {
        let shown = run(&workspace, &["status"]).stdout;
        shown.contains("not loaded:").then_some(shown)
    });
    assert!(shown.contains("has no key `nonsense`"), "{shown}");
    workspace.write("haft.json", config);
    drop(service);
    assert!(run(&workspace, &["status"]).stdout.contains("not running"));
}

/// A call in flight is listed and ended from another terminal; its command reports it.
#[test]
fn ps_lists_the_calls_and_cancel_ends_one() {
    let workspace = one_server();
    let without = run(&workspace, &["ps"]);
    assert!(without.code == 1 && without.stderr.contains("no service"), "{without:?}");
    let _service = Service::start(&workspace, &[]);
    let (calling, id) = long_call(&workspace);
    assert!(run(&workspace, &["ps"]).stdout.contains(&id));
    let unknown = run(&workspace, &["cancel", "zzz"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("no call `zzz`"), "{unknown:?}");
    let cancelled = run(&workspace, &["cancel", &id[..30]]);
    assert_eq!((cancelled.code, cancelled.stdout.contains(&id)), (0, true), "{cancelled:?}");
    let finished = calling.finish();
    assert_eq!(finished.code, 1, "{finished:?}");
    assert!(finished.stderr.to_lowercase().contains("cancelled"), "{}", finished.stderr);
    see_cancelled(&workspace);
}

/// A call that outlasts `shutdown_grace` is ended and answered; the service blames nothing else for it.
#[test]
fn the_end_of_the_service_ends_the_call_of_a_command() {
    let workspace = Workspace::new();
    let config = json!({
        "servers": {"files": fixture(&workspace)}, "api": {"shutdown_grace": "200ms"},
    });
    workspace.write("haft.json", config.to_string());
    let service = Service::start(&workspace, &[]);
    let (calling, _) = long_call(&workspace);
    let ended = service.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(!ended.stderr.contains("a change of the registry hangs"), "{}", ended.stderr);
    let called = calling.finish();
    assert_eq!(called.code, 1, "{}", called.stderr);
    assert!(called.stderr.contains("Haft is shutting down"), "{}", called.stderr);
}

/// Ctrl-C ends the call in the service, and the command ends with 130.
#[test]
fn ctrl_c_cancels_the_call_of_the_service() {
    let workspace = one_server();
    let _service = Service::start(&workspace, &[]);
    let (calling, _) = long_call(&workspace);
    calling.interrupt();
    let finished = calling.finish();
    assert_eq!(finished.code, 130, "{finished:?}");
    see_cancelled(&workspace);
}

/// A command that is killed cancels its call.
#[test]
fn a_command_that_is_gone_cancels_its_call() {
    let workspace = one_server();
    let _service = Service::start(&workspace, &[]);
    let (calling, _) = long_call(&workspace);
    calling.kill();
    calling.finish();
    see_cancelled(&workspace);
}

/// An approval is asked for at the terminal of the command, not in the service.
#[test]
fn approvals_of_the_services_calls_are_asked_at_the_terminal() {
    let workspace = Workspace::new();
    let config = json!({
        "servers": {"files": fixture(&workspace)},
        "tools": [{"name": "echo", "mcp": "files", "approval": "ask"}],
    });
    workspace.write("haft.json", config.to_string());
    let _service = Service::start(&workspace, &[]);
    let refused = run(&workspace, &["call", "echo", "a=1"]);
    assert!(refused.code == 1 && refused.stderr.contains("haft call --yes"), "{refused:?}");
    assert_eq!(run(&workspace, &["call", "echo", "a=1", "--yes"]).code, 0);
    let mut terminal = Terminal::open(&workspace, "\"$haft\" call echo a=2");
    terminal.see("[a]llow, [d]eny? ");
    terminal.enter("a");
    let left = terminal.left();
    assert_eq!(left.code, 0, "{}", left.screen);
    let mut terminal = Terminal::open(&workspace, "\"$haft\" call echo a=3");
    terminal.see("[a]llow, [d]eny? ");
    terminal.press(CTRL_C);
    let left = terminal.left();
    assert!(left.code == 130 && left.is_sane, "{} {}", left.code, left.screen);
    assert_eq!(messages(&facts_file(&workspace), "tools/call").len(), 2);
    assert_eq!(starts(&workspace), 1, "a command started a server of its own");
}

/// Another configuration in the same folder is another one, and the service of this one is not used for it.
#[test]
fn a_service_answers_for_its_own_configuration_only() {
    let workspace = one_server();
    let other = json!({"servers": {"other": fixture(&workspace)}});
    workspace.write("other.json", other.to_string());
    let _service = Service::start(&workspace, &["-c", "other.json"]);
    let listed = run(&workspace, &["tools", "list"]).stdout;
    assert!(listed.contains("files") && !listed.contains("other"), "{listed}");
    let listed = run(&workspace, &["-c", "./other.json", "servers", "list"]).stdout;
    assert!(listed.contains("other") && !listed.contains("configured"), "{listed}");
}

/// The socket is for its user alone. What is no socket, is open to others, or whose service is gone is not used.
#[test]
fn a_socket_that_is_not_surely_ones_own_is_not_used() {
    let workspace = one_server();
    let service = Service::start(&workspace, &[]);
    let path = socket(&workspace);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    let shown = run(&workspace, &["status"]);
    assert!(shown.stdout.contains("not running"), "{shown:?}");
    assert!(shown.stderr.contains("is open to other users"), "{shown:?}");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let real = workspace.path().join("elsewhere.sock");
    std::fs::rename(&path, &real).unwrap();
    symlink(&real, &path).unwrap();
    let shown = run(&workspace, &["status"]);
    assert!(shown.stderr.contains("is not a socket"), "{shown:?}");
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(&real, &path).unwrap();
    assert!(run(&workspace, &["status"]).stdout.contains("running:"));
    assert_eq!(service.end().code, 0);
    assert!(!path.exists(), "the socket is removed with its service");
}

/// Code in a sandbox has the user's id and may see the socket. It must not use the service.
#[test]
fn a_process_in_a_sandbox_cannot_use_the_service() {
    let workspace = one_server();
    let _service = Service::start(&workspace, &[]);
    let inside = |args: &[&str]| {
        let sandbox = ["-U", "--map-current-user", "-p", "-f", env!("CARGO_BIN_EXE_haft")];
        let program = Program::new("unshare", &workspace);
        program.args(&[&sandbox[..], args].concat()).run()
    };
    let version = inside(&["--version"]);
    if version.code != 0 {
        eprintln!("left out, no namespaces here: {}", version.stderr);
        return;
    }
    let shown = inside(&["status"]);
    assert!(shown.stdout.contains("not running"), "{shown:?}");
    // A client that leaves out its own check is refused too.
    let talk = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
                s.settimeout(60); m = b'{\"hello\":{\"version\":\"0.1.0\"}}'; \
                s.sendall(len(m).to_bytes(4, 'big') + m); print('answer', len(s.recv(99)))";
    let path = socket(&workspace).display().to_string();
    let python = |launcher: &[&str]| {
        let words = [launcher, &["python3", "-c", talk, &path]].concat();
        Program::new(words[0], &workspace).args(&words[1..]).run()
    };
    let outside = python(&[]);
    assert!(
        outside.stdout.starts_with("answer ") && !outside.stdout.contains("answer 0"),
        "{outside:?}"
    );
    let inside = python(&["unshare", "-U", "--map-current-user", "-p", "-f"]);
    assert!(!inside.stdout.contains("answer ") || inside.stdout.contains("answer 0"), "{inside:?}");
}

/// The socket of a service that was killed is recognized, by commands and by the next service.
#[test]
fn the_socket_of_a_killed_service_is_recognized() {
    let workspace = one_server();
    let mut service = Service::start(&workspace, &[]);
    let running = service.0.take().unwrap();
    running.kill();
    running.finish();
    let path = socket(&workspace);
    assert!(path.exists());
    let shown = run(&workspace, &["status"]);
    assert!(shown.stdout.contains("not running") && shown.stderr.is_empty(), "{shown:?}");
    assert_eq!(run(&workspace, &["call", "echo"]).code, 0);
    let _service = Service::start(&workspace, &[]);
    assert!(run(&workspace, &["status"]).stdout.contains("running:"));
}

/// Without a service a call starts the server of its tool and no other; a local tool starts none.
#[test]
fn a_call_without_a_service_starts_only_the_server_of_its_tool() {
    let workspace = Workspace::new();
    let facts = |name: &str| workspace.path().join(name);
    let one = |name: &str, tool: &str| {
        server(&json!({"facts": facts(name), "tools": [{"name": tool, "behaves": "text"}]}))
    };
    let config = json!({
        "servers": {"near": one("near", "here"), "far": one("far", "there")},
        "local_tools": [{
            "name": "own", "description": "Own.", "input_schema": {"type": "object"},
            "config": {"command": ["cat"]},
        }],
    });
    workspace.write("haft.json", config.to_string());
    let started = |name: &str| events(&facts(name), "start").len();
    // The first call knows of no server.
    assert_eq!(run(&workspace, &["call", "here"]).code, 0);
    assert_eq!((started("near"), started("far")), (1, 1));
    assert_eq!(run(&workspace, &["call", "here"]).code, 0);
    assert_eq!((started("near"), started("far")), (2, 1));
    assert_eq!(run(&workspace, &["call", "there"]).code, 0);
    assert_eq!((started("near"), started("far")), (2, 2));
    assert_eq!(run(&workspace, &["call", "own", "a=1"]).code, 0);
    assert_eq!((started("near"), started("far")), (2, 2));
    // A tool that no earlier run saw may be anywhere.
    assert_eq!(run(&workspace, &["call", "nope"]).code, 1);
    assert_eq!((started("near"), started("far")), (3, 3));
}

/// A service whose state folder has a long path is reached too.
#[test]
fn a_long_path_of_the_state_folder_is_no_obstacle() {
    let workspace = one_server();
    let long = "d".repeat(90);
    let config =
        json!({"servers": {"files": fixture(&workspace)}, "state_dir": format!("{long}/state")});
    workspace.write("haft.json", config.to_string());
    let _service = Service::start(&workspace, &[]);
    assert!(run(&workspace, &["status"]).stdout.contains("running:"));
}

/// A second service of the same configuration is refused with the process and the address of the first.
#[test]
fn a_second_service_is_refused() {
    let workspace = one_server();
    let service = Service::start(&workspace, &[]);
    let running = service.0.as_ref().unwrap().id();
    eventually("its server starts", || (starts(&workspace) == 1).then_some(()));
    let second = run(&workspace, &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, 1, "{second:?}");
    let process = format!(
        "error: a service of this configuration runs already as process {running} at http://127.0.0.1:"
    );
    assert!(second.stderr.starts_with(&process), "{}", second.stderr);
    let remedy = format!("stop it with `kill {running}`, or add `--standalone`");
    assert!(second.stderr.contains(&remedy), "{}", second.stderr);
    assert_eq!(starts(&workspace), 1, "no server was started");
    // Another one beside it, if that is what the user wants; and afterwards the next one.
    let beside = Service::start(&workspace, &["--standalone"]);
    drop(beside);
    assert_eq!(service.end().code, 0);
    drop(Service::start(&workspace, &[]));
}

/// A call without a terminal whose server asks a person says that the question waits in the inbox, and how to answer it.
#[test]
fn a_call_without_a_terminal_names_its_question() {
    let workspace = Workspace::new();
    let config = json!({"servers": {"files": server(&json!({"tools": ["elicit"]}))}});
    workspace.write("haft.json", config.to_string());
    let _service = Service::start(&workspace, &[]);
    let calling = haft(&workspace, &["call", "elicit"]).start();
    let hint = "the call waits for an answer in the inbox: open it with `haft console`, or send \
                `{\"answer\": ...}` with POST to ";
    let url = eventually("the hint", || {
        let text = calling.stderr_so_far();
        let (_, rest) = text.split_once(hint)?;
        rest.split_once('\n').map(|(url, _)| url.to_owned())
    });
    let mut answer = std::process::Command::new("curl");
    answer.args(["--silent", "--fail", "--noproxy", "*", "-X", "POST", &url]);
    answer.args(["-H", "content-type: application/json", "-d", r#"{"refuse": true}"#]);
    assert!(answer.output().unwrap().status.success(), "{url}");
    let finished = calling.finish();
    assert_eq!(finished.stderr.matches(hint).count(), 1, "{finished:?}");
}
