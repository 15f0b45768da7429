//! The tools that Haft brings itself, on the command line.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::search::SearchServer;
use testkit::{Finished, Program, Workspace, eventually};

use crate::{haft, toolbox};

fn empty() -> Workspace {
    Workspace::with(&[("haft.yaml", "")])
}

/// `haft` as it is out of the box.
fn with_builtins(workspace: &Workspace, args: &[&str]) -> Program {
    haft(workspace, args).with_builtins()
}

fn names(finished: &Finished) -> Vec<String> {
    let tools: Value = serde_json::from_str(&finished.stdout).unwrap();
    let names = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    names.map(ToOwned::to_owned).collect()
}

/// Proves S2-FR-007, S0-53: there without a word in any file, gone with one.
#[test]
fn built_in_tools_are_there_out_of_the_box() {
    let workspace = empty();
    let listed = names(&with_builtins(&workspace, &["tools", "list", "--json"]).run());
    for name in ["code_execution", "web_search"] {
        assert!(listed.iter().any(|listed| listed == name), "{listed:?}");
        let shown = with_builtins(&workspace, &["tools", "show", name, "--json"]).run();
        let tool: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!(tool["kind"], "builtin", "{}", shown.stdout);
        assert!(tool["output_schema"].is_object());
    }
    workspace.write("haft.yaml", "builtin: {web_search: {enabled: false}}");
    let listed = names(&with_builtins(&workspace, &["tools", "list", "--json"]).run());
    assert!(!listed.contains(&"web_search".to_owned()), "{listed:?}");
    workspace.write("haft.yaml", "builtin: {enabled: false}");
    assert_eq!(names(&with_builtins(&workspace, &["tools", "list", "--json"]).run()), [""; 0]);
    let chosen = with_builtins(&toolbox(), &["tools", "list", "--json"]).run();
    assert!(names(&chosen).contains(&"greet".to_owned()), "beside one's own");
}

/// Proves S2-US2-2, S2-US2-3.
#[test]
fn code_runs_and_reports_why_it_failed() {
    let workspace = empty();
    let call = |language: &str, code: &str| {
        let (language, code) = (format!("language={language}"), format!("code={code}"));
        with_builtins(&workspace, &["call", "code_execution", &language, &code]).run()
    };
    let finished = call("python", "print(6*7)");
    let answer: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((finished.code, &answer["stdout"]), (0, &Value::from("42\n")));
    let finished = call("shell", "echo $((6*7))");
    let answer: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((finished.code, &answer["stdout"]), (0, &Value::from("42\n")));
    let finished = call("shell", "echo the cause >&2; exit 3");
    assert_eq!((finished.code, finished.stdout.as_str()), (1, ""));
    let expected = "error: the code ended with exit code 3; stderr:\nthe cause\n  help: correct the code and run it again\n";
    assert!(finished.stderr.starts_with(expected), "{}", finished.stderr);
    assert_eq!(finished.stderr.matches("the cause").count(), 1, "said once");
}

/// Proves S2-FR-007 for `web_search`: the configured provider is queried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_web_is_searched() {
    let server = SearchServer::start().await;
    let workspace = empty();
    let config =
        format!("builtin: {{web_search: {{searxng: {{url: 'http://{}'}}}}}}", server.address);
    workspace.write("haft.yaml", &config);
    let finished = with_builtins(&workspace, &["call", "web_search", "query=rust language"]).run();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let answer: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(answer["results"][0]["url"], "https://www.rust-lang.org/");
    assert_eq!(server.asked().len(), 1);
    server.says(403, "Forbidden");
    let finished = with_builtins(&workspace, &["call", "web_search", "query=other"]).run();
    assert_eq!(finished.code, 1);
    assert!(finished.stderr.contains("`search.formats`"), "{}", finished.stderr);
}

/// A `bwrap` that records its arguments and then behaves as scripted.
fn sandboxed(workspace: &Workspace, bwrap: &str, code: &str) -> Finished {
    let noting = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}/told'\n{bwrap}",
        workspace.path().display()
    );
    let program = workspace.write("bin/bwrap", noting);
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let bin = program.parent().unwrap().display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let code = format!("code={code}");
    let call = ["call", "code_execution", "language=shell", &code, "--json"];
    let program = with_builtins(workspace, &call).env("PATH", &path);
    program.env("OUR_SECRET", "canary").run()
}

fn envelope(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap()
}

const RUNS_IT: &str = "while [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";

#[test]
fn the_sandbox_is_asked_for_what_it_promises() {
    let workspace = empty();
    workspace.write("haft.yaml", "builtin: {code_execution: {sandbox: bubblewrap}}");
    let finished = sandboxed(&workspace, RUNS_IT, "pwd; env; ls -a; exit 5");
    let error = &envelope(&finished)["error"];
    assert_eq!(error["details"]["exit_code"], 5, "{}", finished.stdout);
    let printed = error["details"]["stdout"].as_str().unwrap();
    assert!(!printed.contains("canary") && printed.contains("HAFT_TREE="), "{printed}");
    let folder = printed.lines().next().unwrap();
    let told = workspace.read("told").unwrap();
    let told = told.replace(folder, "FOLDER");
    let before_bind = "--unshare-all\n--die-with-parent\n--new-session\n--cap-drop\nALL\n--ro-bind\n/\n/\n--dev\n/dev\n--proc\n/proc\n--tmpfs\n/tmp\n";
    assert!(told.starts_with(before_bind), "{told}");
    assert!(told.contains("--bind\nFOLDER\nFOLDER\n--chdir\nFOLDER\n--\n/bin/sh\n"), "{told}");
    assert!(told.ends_with("main.sh\n") && !told.contains("--share-net"), "{told}");

    workspace.write("haft.yaml", "builtin: {code_execution: {sandbox: bubblewrap, network: true}}");
    let finished = sandboxed(&workspace, RUNS_IT, "touch made");
    let answer = envelope(&finished);
    assert_eq!(answer["data"]["exit_code"], 0, "{}", finished.stdout);
    assert_eq!(
        answer["data"]["files"],
        serde_json::json!(["made"]),
        "not what is the sandbox's own"
    );
    assert!(workspace.read("told").unwrap().starts_with("--unshare-all\n--share-net\n"));
}

/// Where the sandbox is missing, nothing runs.
#[test]
fn without_bwrap_no_code_runs() {
    let workspace = empty();
    workspace.write("haft.yaml", "builtin: {code_execution: {sandbox: bubblewrap}}");
    let call = ["call", "code_execution", "language=shell", "code=touch ran", "--json"];
    let path = workspace.path().display().to_string();
    let finished = with_builtins(&workspace, &call).env("PATH", &path).run();
    let error = &envelope(&finished)["error"];
    assert_eq!((finished.code, &error["code"]), (1, &Value::from("ServiceUnavailable")));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("was not run") && message.contains("`bwrap` is in no"), "{message}");
    assert!(error["remedy"].as_str().unwrap().contains("sandbox: none"), "{error}");
}

/// A sandbox that cannot be created runs nothing, whatever its output and exit code.
#[test]
fn without_its_sandbox_code_does_not_run() {
    let workspace = empty();
    workspace.write("haft.yaml", "builtin: {code_execution: {sandbox: bubblewrap}}");
    let refusal = "echo 'bwrap: No permissions to create new namespace' >&2\nexit 1\n";
    for (bwrap, cause) in [
        (refusal, "bwrap: No permissions to create new namespace"),
        ("exit 0\n", "`bwrap` ended without a word"),
    ] {
        let finished = sandboxed(&workspace, bwrap, "touch ran");
        let error = &envelope(&finished)["error"];
        assert_eq!((finished.code, &error["code"]), (1, &Value::from("ServiceUnavailable")));
        let expected =
            format!("the code was not run, because its sandbox could not be made: {cause}");
        assert_eq!(error["message"], expected);
        assert!(error["remedy"].as_str().unwrap().contains("install the package `bubblewrap`"));
    }
}

/// Without any file the built-in tools are there, for every command that deals with tools. A named file has to exist,
/// and the error for a missing tool explains that no file was read.
#[test]
fn without_a_file_there_are_the_built_in_tools() {
    let workspace = Workspace::new();
    let run = |args: &[&str]| with_builtins(&workspace, args).run();
    let done = |args: &[&str]| {
        let finished = run(args);
        assert_eq!(finished.code, 0, "{args:?}: {}", finished.stderr);
        finished.stdout
    };
    assert!(done(&["log"]).is_empty());
    assert!(done(&["tools", "list"]).contains("code_execution"));
    assert!(done(&["tools", "show", "web_search"]).contains("input schema"));
    assert!(done(&["explain", "web_search"]).contains("timeout"));
    assert!(done(&["select", "search the web for rust"]).contains("web_search"));
    assert!(done(&["config", "show"]).contains("builtin.code_execution.enabled"));
    let answer = done(&["call", "code_execution", "language=python", "code=print(6*7)", "--json"]);
    assert!(answer.contains(r#""stdout": "42\n""#), "{answer}");
    assert!(done(&["log"]).contains("code_execution"));

    for args in [&["tools", "list"][..], &["call", "web_search", "query=x"], &["log"]] {
        let finished = run(&[&["-c", "missing.yaml"], args].concat());
        assert_eq!(finished.code, 2, "{args:?}");
        assert!(finished.stderr.contains("missing.yaml"), "{}", finished.stderr);
    }
    for args in [&["call", "mine"][..], &["tools", "show", "mine"]] {
        let finished = run(args);
        assert_eq!(finished.code, 1, "{args:?}");
        let why = "no haft.yaml is in this folder and none is named with `-c`";
        assert!(finished.stderr.contains(why), "{}", finished.stderr);
    }
}

/// The operator of a service is informed once that code execution is off and how to enable it.
#[test]
fn a_service_reports_that_code_execution_is_off() {
    let workspace = empty();
    let said = "`code_execution` is left out of what is served; to have it, write `builtin: {code_execution: {}}`";
    let serve = ["--json", "serve", "--listen", "127.0.0.1:0"];
    let serving = with_builtins(&workspace, &serve).start();
    serving.line();
    eventually("it says so", || serving.stderr_so_far().contains(said).then_some(()));
    serving.terminate();
    let finished = serving.finish();
    assert_eq!(
        (finished.code, finished.stderr.matches(said).count()),
        (0, 1),
        "{}",
        finished.stderr
    );

    workspace.write("haft.yaml", "builtin: {code_execution: {}}");
    let serving = with_builtins(&workspace, &serve).start();
    serving.line();
    serving.terminate();
    let finished = serving.finish();
    assert!(finished.code == 0 && !finished.stderr.contains("left out"), "{}", finished.stderr);
}

/// A killed process leaves its code's folder, and the next one removes it; folders in use stay.
#[test]
fn folders_that_were_left_behind_are_removed() {
    let workspace = Workspace::new();
    let old = std::time::SystemTime::now() - std::time::Duration::from_mins(10);
    let folder = |name: &str| {
        let path = workspace.path().join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("left"), "").unwrap();
        let folder = std::fs::File::open(&path).unwrap();
        folder.set_modified(old).unwrap();
        (path, folder)
    };
    let (left, _) = folder("haft-code-left");
    let (used, lock) = folder("haft-code-used");
    lock.try_lock().unwrap();
    let (other, _) = folder("haft-other");
    testkit::eventually("it is removed", || {
        // One that was half removed is new again.
        let _ = std::fs::File::open(&left).and_then(|folder| folder.set_modified(old));
        let args = ["call", "code_execution", "language=shell", "code=echo done"];
        let program =
            with_builtins(&workspace, &args).env("TMPDIR", &workspace.path().display().to_string());
        assert_eq!(program.run().code, 0);
        (!left.exists()).then_some(())
    });
    assert!(used.join("left").exists() && other.join("left").exists());
}

/// Built-in tools declare what they do, and code in a sandbox declares less than code without one.
#[test]
fn built_in_tools_declare_their_behaviour() {
    let workspace = empty();
    let hints = |name: &str| {
        let shown = with_builtins(&workspace, &["tools", "show", name, "--json"]).run();
        let tool: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert!(tool["title"].is_string(), "{tool}");
        tool["annotations"].clone()
    };
    let code = |destructive: bool, open_world: bool| {
        json!({"readOnlyHint": false, "destructiveHint": destructive, "idempotentHint": false,
               "openWorldHint": open_world})
    };
    assert_eq!(hints("code_execution"), code(true, true));
    assert_eq!(hints("web_search"), json!({"readOnlyHint": true, "openWorldHint": true}));
    assert_eq!(
        hints("request_human_input"),
        json!({"readOnlyHint": true, "idempotentHint": false, "openWorldHint": false})
    );
    workspace.write("haft.yaml", "builtin: {code_execution: {sandbox: bubblewrap}}");
    assert_eq!(hints("code_execution"), code(false, false));
    workspace.write("haft.yaml", "builtin: {code_execution: {sandbox: bubblewrap, network: true}}");
    assert_eq!(hints("code_execution"), code(false, true));
}

/// A boolean switches one built-in tool off, for the command line too.
#[test]
fn one_built_in_tool_can_be_switched_off() {
    let workspace = Workspace::with(&[("haft.yaml", "builtin: {web_search: false}\n")]);
    let listed = crate::haft(&workspace, &["tools", "list", "--json"]).with_builtins().run();
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(
        listed.stdout.contains("code_execution") && !listed.stdout.contains("web_search"),
        "{}",
        listed.stdout
    );
}
