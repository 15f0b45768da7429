//! `haft run`: what is asked, what is printed, and how it ends.

use serde_json::{Value, json};
use testkit::{ModelServer, Running, Step, Workspace, eventually, is_running};

use crate::agent_support::{CTRL_D, FORMATS, Terminal, answer, asking, count, only, toolbox_with};
use crate::mcp_support::server;
use crate::{haft, run, transcript};

/// A model that repeats its prompt, `times` times.
fn echo(times: usize) -> ModelServer {
    let said = |asked: &testkit::model::AskedModel| Step::text(asked.last_user_text());
    ModelServer::openai((0..times).map(|_| Step::by(said)))
}

/// The prompt comes from the argument, from standard input, or from both.
#[test]
fn a_request_is_given_as_argument_or_piped_in() {
    let model = echo(6);
    let workspace = only(&model, "");
    let said = |args: &[&str], stdin: &str| {
        let finished = asking(&workspace, args).stdin(stdin).run();
        answer(&finished).to_owned()
    };
    assert_eq!(said(&["hello there"], ""), "hello there");
    assert_eq!(said(&[], "from a pipe\n"), "from a pipe");
    assert_eq!(said(&["-"], "from a pipe\n"), "from a pipe");
    let both = said(&["review this"], "+ a line\n- another\n");
    assert_eq!(both, "review this\n\n<stdin>\n+ a line\n- another\n</stdin>");
    // Piped input may be foreign text, so it triggers no read of a resource.
    let mail = said(&["sum up"], "see @files:file:///etc/passwd and @x://y\n");
    assert_eq!(mail, "sum up\n\n<stdin>\nsee @files:file:///etc/passwd and @x://y\n</stdin>");
    assert_eq!(said(&["one", "--system", "Be brief."], ""), "one");
    assert_eq!(model.last_request().system().unwrap().lines().next(), Some("Be brief."));
}

#[test]
fn nothing_to_do_is_said_before_anything_starts() {
    let model = echo(0);
    let workspace = only(&model, "");
    for args in [&[][..], &["-"], &["  "]] {
        let finished = asking(&workspace, args).run();
        assert_eq!((finished.code, finished.stdout.as_str()), (2, ""), "{args:?}");
        assert!(finished.stderr.starts_with("error: there is nothing to do"), "{args:?}");
        assert!(finished.stderr.contains("  help: write `haft run"), "{}", finished.stderr);
    }
    assert!(model.requests().is_empty());
}

/// Proves S1-13 without any file: a folder with nothing in it and a model on the command line are enough.
#[test]
fn an_empty_folder_is_enough() {
    for format in FORMATS {
        let model = ModelServer::start(format, [Step::text("hello")]);
        let workspace = Workspace::new();
        let args = ["hi", "-m", model.model(), "--base-url", &model.url()];
        let finished = asking(&workspace, &args).with_builtins().run();
        assert_eq!((answer(&finished), finished.stderr.as_str()), ("hello", ""));
        let offered = model.last_request().tool_names();
        assert!(offered.contains(&"code_execution".to_owned()), "{offered:?}");
    }
}

fn greeting() -> [Step; 2] {
    [
        Step::call("greet", json!({"name": "Ada"})).saying("I will greet."),
        Step::by(|asked| Step::text(format!("It said {}", asked.last_result()))),
    ]
}

/// Stdout has only the answer; calls are printed on stderr, or not at all.
#[test]
fn calls_are_printed_on_stderr_only() {
    for format in FORMATS {
        let model = ModelServer::start(format, greeting());
        let workspace = toolbox_with(&model, "");
        let finished = asking(&workspace, &["greet Ada"]).run();
        assert_eq!(answer(&finished), r#"It said {"greeting":"Hello, Ada!"}"#);
        let told: Vec<&str> = finished.stderr.lines().collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[0], r#"-> greet {"name":"Ada"}"#);
        assert!(told[1].starts_with("<- ") && told[1].contains("Hello, Ada!"), "{told:?}");
        model.then(greeting());
        let finished = asking(&workspace, &["greet Ada", "-q"]).run();
        assert_eq!(answer(&finished), r#"It said {"greeting":"Hello, Ada!"}"#);
        assert_eq!(finished.stderr, "");
    }
}

/// Text without ids, times and the service's address.
fn stable(workspace: &Workspace, model: &ModelServer, text: &str) -> String {
    workspace.stable(text).replace(&model.url(), "MODEL")
}

/// Each format of the output, whole: for a program that reads it these are promises.
#[test]
fn output_has_the_format_that_is_asked_for() {
    let mut text = String::new();
    for args in [
        &["--output-format", "text"][..],
        &["--output-format", "json"],
        &["--output-format", "stream-json"],
    ] {
        let model = ModelServer::openai(greeting());
        let workspace = toolbox_with(&model, "");
        let finished = asking(&workspace, &[&["greet Ada", "-q"], args].concat()).run();
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
        text += &format!("$ {}\n{}", args.join(" "), stable(&workspace, &model, &finished.stdout));
    }
    insta::assert_snapshot!(text);
    let model = ModelServer::openai(greeting());
    let workspace = toolbox_with(&model, "");
    let finished = asking(&workspace, &["greet Ada", "--json"]).run();
    let object: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&object["end"], &object["steps"]), (&json!("answered"), &json!(2)));
    assert!(finished.stderr.starts_with("-> greet"), "{}", finished.stderr);
}

/// A model that fails ends the program with a reason and what to do, whatever is printed.
#[test]
fn a_model_that_fails_is_an_error_with_a_remedy() {
    let mut text = String::new();
    for (status, args) in [
        (401, &[][..]),
        (429, &[]),
        (500, &[]),
        (500, &["--json"]),
        (500, &["--output-format", "stream-json"]),
    ] {
        for format in FORMATS {
            let model = ModelServer::start(format, [Step::status(status)]);
            let workspace = only(&model, "");
            let finished = asking(&workspace, &[&["hi"], args].concat()).run();
            assert_eq!(finished.code, 1, "{finished:?}");
            assert!(finished.stderr.contains("\n  help: "), "{}", finished.stderr);
            let shown = stable(&workspace, &model, &transcript(&workspace, &finished));
            text += &format!("$ {status} {format:?} {}\n{shown}\n", args.join(" "));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn without_a_model_the_remedy_names_the_setting() {
    for (name, args) in [("run", &["run", "hi"][..]), ("chat", &["chat"])] {
        let finished = run(&Workspace::new(), args);
        assert_eq!((finished.code, finished.stdout.as_str()), (2, ""), "{name}");
        let remedy = finished.stderr.split("help:").nth(1).expect("a remedy");
        assert!(remedy.contains("--model") && remedy.contains("agent.model"), "{remedy}");
    }
    let finished = run(&Workspace::new(), &["run", "hi", "-m", "nobody::x"]);
    assert_eq!(finished.code, 2, "{}", finished.stderr);
}

#[test]
fn a_turn_of_too_many_steps_fails() {
    let model = ModelServer::openai((0..3).map(|n| Step::call("echo", json!({"n": n}))));
    let workspace = toolbox_with(&model, "");
    let finished = asking(&workspace, &["go", "--max-steps", "2", "-q"]).run();
    assert_eq!((finished.code, finished.stdout.as_str(), model.left()), (1, "", 1));
    assert!(finished.stderr.contains("--max-steps"), "{}", finished.stderr);
    let later = "`haft run --last \"continue\"`";
    assert!(finished.stderr.contains(later), "{}", finished.stderr);
    model.then([Step::call("echo", json!({})), Step::call("echo", json!({"n": 3}))]);
    let finished = asking(&workspace, &["go", "--max-steps", "2", "-q", "--no-session"]).run();
    assert_eq!(finished.code, 1);
    assert!(!finished.stderr.contains("--last"), "{}", finished.stderr);
}

/// The calls in the log.
fn logged(workspace: &Workspace) -> Vec<Value> {
    let log = run(workspace, &["log", "--json"]).stdout;
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Proves S1-5, S2-SC-006 for the agent: a signal while a tool hangs ends the program, and the tool.
#[test]
fn a_signal_ends_a_hanging_tool_and_the_program() {
    for send in [Running::interrupt, Running::terminate] {
        let model = ModelServer::openai([]);
        let workspace = toolbox_with(&model, "");
        let pids = workspace.path().join("pids");
        model.then([Step::call("wait", json!({"pids": pids}))]);
        let asking = asking(&workspace, &["wait"]).start();
        let text = eventually("the tool runs", || std::fs::read_to_string(&pids).ok());
        send(&asking);
        let finished = asking.finish();
        assert_eq!((finished.code, finished.stdout.as_str()), (130, ""), "{}", finished.stderr);
        for pid in text.split(' ').map(|pid| pid.parse().unwrap()) {
            assert!(!is_running(pid), "{pid} still runs");
        }
        let log = logged(&workspace);
        assert_eq!(log.len(), 1, "{log:?}");
        assert_eq!(log[0]["error"]["code"], "Cancelled");
    }
}

/// The same while the model is silent, before its answer and in the middle of it.
#[test]
fn a_signal_ends_the_wait_for_a_silent_model() {
    for step in [Step::silence(), Step::text("I begin").then_silent()] {
        let model = ModelServer::openai([step]);
        let workspace = only(&model, "");
        let asking = asking(&workspace, &["hi"]).start();
        eventually("the model is asked", || model.requests().pop());
        asking.interrupt();
        let finished = asking.finish();
        assert_eq!(finished.code, 130, "{}", finished.stderr);
    }
}

/// Output of a model or a tool cannot control a terminal, and reaches a pipe unmodified.
#[test]
fn escapes_are_harmless_at_a_terminal() {
    let evil = "red \u{1b}[31m\u{202e}title\u{1b}]0;x\u{7}\u{9b}2J end";
    let steps = || [Step::call("echo", json!({"text": evil})).saying(evil), Step::text(evil)];
    let model = ModelServer::openai(steps());
    let workspace = toolbox_with(&model, "");
    let mut terminal = Terminal::open(&workspace, "\"$haft\" run go </dev/null");
    terminal.see("> echo");
    let left = terminal.left();
    assert_eq!(left.code, 0, "{}", left.screen);
    let shown = left.screen.split("exit code").next().unwrap();
    for character in ['\u{1b}', '\u{202e}', '\u{7}', '\u{9b}'] {
        assert!(!shown.contains(character), "{character:?} in {shown:?}");
    }
    assert_eq!(shown.matches(" end").count(), 4, "said, called, answered, said: {shown}");
    model.then(steps());
    let finished = asking(&workspace, &["go"]).run();
    assert_eq!(finished.stdout, format!("{evil}\n"));
    assert!(!finished.stderr.contains('\u{1b}'));
}

/// A conversation is resumed by its id, the beginning of it, or as the last one; or is not stored.
#[test]
fn a_conversation_is_resumed() {
    for format in FORMATS {
        let model = ModelServer::start(format, (0..5).map(|_| Step::by(count)));
        let workspace = only(&model, "");
        let first = asking(&workspace, &["one", "--json"]).run();
        let first: Value = serde_json::from_str(&first.stdout).unwrap();
        let id = first["session"].as_str().unwrap();
        let said = |args: &[&str]| answer(&asking(&workspace, args).run()).to_owned();
        assert_eq!(said(&["two", "--resume", id]), "3 messages");
        assert_eq!(said(&["three", "--resume", &id[..30]]), "5 messages");
        assert_eq!(said(&["alone", "--no-session"]), "1 messages");
        assert_eq!(said(&["four", "--last"]), "7 messages");
        let unknown = asking(&workspace, &["x", "--resume", "nothing"]).run();
        assert_eq!(unknown.code, 1);
        assert!(unknown.stderr.contains("`haft sessions list`"), "{}", unknown.stderr);
        assert_eq!(haft(&workspace, &["run", "x", "--last", "--no-session"]).run().code, 2);
    }
    let model = echo(0);
    let finished = asking(&only(&model, ""), &["x", "--last"]).run();
    assert!(finished.stderr.starts_with("error: no conversation is kept yet\n"));
}

/// Errors of the command line name the flag as it was written.
#[test]
fn wrong_flags_are_named_as_flags() {
    let workspace = Workspace::new();
    let finished = run(&workspace, &["run", "-m", "openai::x", "--base-url", "localhost", "hi"]);
    assert_eq!(finished.code, 2);
    assert!(finished.stderr.contains("`--base-url localhost`"), "{}", finished.stderr);
    let finished = run(&workspace, &["run", "-m", "openai:", "hi"]);
    assert_eq!(finished.code, 2);
    assert!(finished.stderr.contains("openai:"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("HAFT__"), "{}", finished.stderr);
}

/// With stderr closed, the answer is still printed.
#[test]
fn a_lost_stderr_loses_no_answer() {
    let model = ModelServer::openai(greeting());
    let workspace = toolbox_with(&model, "");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "exec \"$0\" run 'Greet Ada' 2> /dev/full", env!("CARGO_BIN_EXE_haft")]);
    let output = command.current_dir(workspace.path()).envs([testkit::TRUSTED]).output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert!(!output.stdout.is_empty());
}

/// An unset variable disables only the entry that needs it, in a run and in a chat; the other tools work.
#[test]
fn an_unset_variable_disables_one_server_in_run_and_chat() {
    let turn = || [Step::call("echo", json!({"a": 1})), Step::text("Done.")];
    let model = ModelServer::openai(turn().into_iter().chain(turn()));
    let workspace = Workspace::new();
    let broken = json!({"command": "x", "env": {"KEY": "${UNSET_FOR_TEST}"}});
    let config = json!({
        "servers": {"desk": server(&json!({"tools": ["echo"]})), "broken": broken},
        "agent": {"model": model.model(), "base_url": model.url(), "retries": 0},
    });
    workspace.write("haft.json", config.to_string());
    let finished = asking(&workspace, &["go"]).run();
    assert_eq!(answer(&finished), "Done.");
    let warning = "Environment variable 'UNSET_FOR_TEST' not found";
    assert!(finished.stderr.contains(warning), "{}", finished.stderr);
    assert!(model.last_request().last_result().contains('1'));

    let mut terminal = Terminal::open(&workspace, "\"$haft\" chat");
    terminal.see("UNSET_FOR_TEST");
    terminal.see("> ");
    terminal.enter("/servers");
    terminal.see("misconfigured");
    terminal.enter("go");
    terminal.see("Done.");
    terminal.press(CTRL_D);
    assert_eq!(terminal.left().code, 0);
    assert_eq!(model.requests().len(), 4);
}
