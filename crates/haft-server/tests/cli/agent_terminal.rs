//! `haft chat` and `haft run` with a person at a terminal: keys, signals, and what is left behind.

use std::process::{Command, Stdio};

use serde_json::json;
use testkit::fixture::messages;
use testkit::{ModelServer, Step, Workspace, eventually, is_running};

use crate::agent_support::{CTRL_C, CTRL_D, FORMATS, Terminal, count, only, toolbox_with};
use crate::haft;
use crate::mcp_support::{assert_all_gone, facts_file, server};

/// Ctrl-C ends the wait for a server that does not answer, in `chat` and in `run`.
#[test]
fn ctrl_c_ends_the_wait_for_a_silent_server() {
    let model = ModelServer::openai([Step::text("still here")]);
    let workspace = Workspace::new();
    let facts = facts_file(&workspace);
    let scenario = json!({
        "facts": facts, "silent_on": ["resources/read", "prompts/get"],
        "prompts": [{"name": "review"}],
        "resources": [{"uri": "notes://today", "name": "today", "text": "buy milk"}], "templates": [],
    });
    let config = json!({
        "servers": {"desk": server(&scenario)},
        "agent": {"model": model.model(), "base_url": model.url(), "retries": 0},
    });
    workspace.write("haft.json", config.to_string());
    let asked = |method: &str, times: usize| {
        eventually("the server is asked", || {
            (messages(&facts, method).len() == times).then_some(())
        });
    };
    let running = haft(&workspace, &["run", "read @notes://today"]).start();
    asked("resources/read", 1);
    running.interrupt();
    let finished = running.finish();
    assert_eq!((finished.code, finished.stdout.as_str()), (130, ""), "{}", finished.stderr);

    let mut terminal = Terminal::open(&workspace, "\"$haft\" chat");
    terminal.see("> ");
    terminal.enter("read @notes://today");
    asked("resources/read", 2);
    terminal.press(CTRL_C);
    terminal.see("[interrupted]");
    terminal.see("> ");
    terminal.enter("/prompt review");
    asked("prompts/get", 1);
    terminal.press(CTRL_C);
    terminal.see("[interrupted]");
    terminal.see("> ");
    terminal.enter("hello");
    terminal.see("still here");
    terminal.see("> ");
    terminal.press(CTRL_D);
    assert_eq!(terminal.left().code, 0);
    assert_all_gone(&facts);
}

/// Ctrl-C cancels an answer, and the chat continues; Ctrl-D leaves.
#[test]
fn ctrl_c_breaks_off_an_answer_and_ctrl_d_leaves() {
    for format in FORMATS {
        let model = ModelServer::start(
            format,
            [Step::text("I begin").then_silent(), Step::silence(), Step::by(count)],
        );
        let workspace = only(&model, "");
        let mut terminal = Terminal::open(&workspace, "\"$haft\" chat");
        terminal.see("> ");
        terminal.enter("first");
        terminal.see("I begin");
        terminal.press(CTRL_C);
        terminal.see("[interrupted]");
        terminal.see("> ");
        terminal.enter("second");
        eventually("the model is asked", || (model.requests().len() == 2).then_some(()));
        terminal.press(CTRL_C);
        terminal.see("[interrupted]");
        terminal.see("> ");
        terminal.enter("third");
        terminal.see(" messages");
        terminal.see("> ");
        terminal.press(CTRL_D);
        let left = terminal.left();
        assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
        let body = model.last_request().body.to_string();
        assert!(body.contains("first") && body.contains("I begin"), "{body}");
    }
}

/// Ctrl-C while a tool hangs ends the tool, and the chat continues.
#[test]
fn ctrl_c_ends_a_hanging_tool() {
    let model = ModelServer::openai([]);
    let workspace = toolbox_with(&model, "");
    let pids = workspace.path().join("pids");
    model.then([Step::call("wait", json!({"pids": pids})), Step::text("as you like")]);
    let mut terminal = Terminal::open(&workspace, "\"$haft\" chat");
    terminal.see("> ");
    terminal.enter("wait");
    let text = eventually("the tool runs", || std::fs::read_to_string(&pids).ok());
    terminal.press(CTRL_C);
    terminal.see("[interrupted]");
    terminal.see("> ");
    for pid in text.split(' ').map(|pid| pid.parse().unwrap()) {
        eventually("the tool ends", || (!is_running(pid)).then_some(()));
    }
    terminal.enter("go on");
    terminal.see("as you like");
    terminal.see("> ");
    terminal.enter("/exit");
    assert_eq!(terminal.left().code, 0);
    assert!(model.last_request().results()[0].text.contains("cancelled"));
}

/// At the prompt, the first Ctrl-C explains how to leave, and the second leaves.
#[test]
fn ctrl_c_at_the_prompt_leaves_when_it_comes_twice() {
    let model = ModelServer::openai([Step::text("still here")]);
    let workspace = only(&model, "");
    let mut terminal = Terminal::open(&workspace, "\"$haft\" chat");
    terminal.see("> ");
    terminal.press("half a li");
    terminal.see("half a li");
    terminal.press(CTRL_C);
    terminal.see("Ctrl-C again, Ctrl-D or /exit leaves");
    terminal.see("> ");
    terminal.enter("hello");
    terminal.see("still here");
    for _ in 0..2 {
        terminal.see("> ");
        terminal.press(CTRL_C);
    }
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
}

fn signal(name: &str, pid: &str) {
    let sent = Command::new("kill").args([name, pid]).stdout(Stdio::null()).status().unwrap();
    assert!(sent.success());
}

/// `haft` at a terminal, with the id of its process.
fn with_pid(workspace: &Workspace, line: &str) -> (Terminal, String) {
    let line = format!("sh -c 'echo \"pid $$.\"; exec \"$haft\" {line}'");
    let mut terminal = Terminal::open(workspace, &line);
    terminal.see("pid ");
    let pid = terminal.see(".");
    (terminal, pid)
}

/// SIGTERM ends the chat wherever it is, and the terminal is as it was: the shell that follows reads lines and shows
/// what is typed.
#[test]
fn sigterm_leaves_the_terminal_as_it_was() {
    let model = ModelServer::openai([Step::silence()]);
    let workspace = only(&model, "");
    let (mut terminal, pid) = with_pid(&workspace, "chat");
    terminal.see("> ");
    signal("-TERM", &pid);
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
    let (on, off) = (left.screen.rfind("\u{1b}[?2004h"), left.screen.rfind("\u{1b}[?2004l"));
    assert!(off > on, "the terminal is told: {:?}", left.screen);

    let (mut terminal, pid) = with_pid(&workspace, "chat");
    terminal.see("> ");
    terminal.enter("hello");
    eventually("the model is asked", || model.requests().pop());
    signal("-TERM", &pid);
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
}

/// A terminal that is closed ends the chat.
#[test]
fn a_closed_terminal_ends_the_chat() {
    let model = ModelServer::openai([Step::silence()]);
    let workspace = only(&model, "");
    for is_asking in [false, true] {
        let (mut terminal, pid) = with_pid(&workspace, "chat");
        terminal.see("> ");
        if is_asking {
            terminal.enter("hello");
            eventually("the model is asked", || model.requests().pop());
        }
        drop(terminal);
        let pid = pid.parse().unwrap();
        eventually("the chat ends", || (!is_running(pid)).then_some(()));
    }
}

/// The same while a question waits for its answer, in `run` as well.
#[test]
fn sigterm_at_a_question_leaves_the_terminal_as_it_was() {
    let question = || Step::call("request_human_input", json!({"question": "Which city?"}));
    let model = ModelServer::openai([question(), question()]);
    let workspace = only(&model, "");
    let (mut terminal, pid) = with_pid(&workspace, "run go");
    terminal.see("your answer");
    signal("-TERM", &pid);
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (130, true), "{}", left.screen);
    let (mut terminal, pid) = with_pid(&workspace, "chat");
    terminal.see("> ");
    terminal.enter("go");
    terminal.see("your answer");
    signal("-TERM", &pid);
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
}

/// A window that changes its size changes nothing else.
#[test]
fn a_window_may_change_its_size() {
    let model = ModelServer::openai([Step::text("still here")]);
    let workspace = only(&model, "");
    let (mut terminal, pid) = with_pid(&workspace, "chat");
    terminal.see("> ");
    signal("-WINCH", &pid);
    terminal.enter("hello");
    terminal.see("still here");
    terminal.see("> ");
    terminal.press(CTRL_D);
    assert_eq!(terminal.left().code, 0);
}

/// The input history is kept for the next start, readable by its owner only.
#[test]
fn what_was_typed_is_remembered() {
    use std::os::unix::fs::PermissionsExt;
    let model =
        ModelServer::openai([Step::text("one"), Step::by(|it| Step::text(it.last_user_text()))]);
    let workspace = only(&model, "");
    let chat = "\"$haft\" chat";
    let mut terminal = Terminal::open(&workspace, chat);
    terminal.see("> ");
    terminal.enter("remember this");
    terminal.see("one");
    terminal.see("> ");
    terminal.press(CTRL_D);
    terminal.left();
    let file = workspace.path().join(".haft/sessions/history");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    let mut terminal = Terminal::open(&workspace, chat);
    terminal.see("> ");
    terminal.press("\u{1b}[A");
    terminal.see("remember this");
    terminal.enter("");
    terminal.see("remember this");
    terminal.see("> ");
    terminal.press(CTRL_D);
    terminal.left();
    assert_eq!(model.last_request().last_user_text(), "remember this");
}

/// Without a session, no input history is kept.
#[test]
fn without_a_session_nothing_is_remembered() {
    let model = ModelServer::openai([Step::text("one")]);
    let workspace = only(&model, "");
    let mut terminal = Terminal::open(&workspace, "\"$haft\" chat --no-session");
    terminal.see("> ");
    terminal.enter("a secret");
    terminal.see("one");
    terminal.see("> ");
    terminal.press(CTRL_D);
    assert_eq!(terminal.left().code, 0);
    assert_eq!(workspace.read(".haft/sessions/history"), None);
}

/// Ctrl-C works after a question that expired without an answer.
#[test]
fn ctrl_c_works_after_a_question_expired() {
    let model = ModelServer::openai([
        Step::call("request_human_input", json!({"question": "Which city?"})),
        Step::silence(),
    ]);
    let workspace = only(&model, "inbox: {timeout: 200ms}");
    let mut terminal = Terminal::open(&workspace, "\"$haft\" run go");
    terminal.see("the question is over");
    eventually("the model is asked", || (model.requests().len() == 2).then_some(()));
    assert!(model.last_request().last_result().contains("no answer came"));
    terminal.press(CTRL_C);
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (130, true), "{}", left.screen);
}

/// Where the answer goes into a file, questions are shown at the terminal and nowhere else.
#[test]
fn questions_stay_out_of_a_file_with_the_answer() {
    let model = ModelServer::openai([
        Step::call("request_human_input", json!({"question": "Which city?"})),
        Step::text("booked"),
    ]);
    let workspace = only(&model, "");
    let mut terminal = Terminal::open(&workspace, "\"$haft\" run go > answer");
    terminal.see("your answer");
    terminal.enter("Seoul");
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
    assert_eq!(workspace.read("answer").as_deref(), Some("booked\n"));
}

/// In a chat, an agreement for good holds for the turns that follow.
#[test]
fn always_holds_for_the_whole_chat() {
    let turn = || [Step::call("echo", json!({"n": 1})), Step::text("echoed")];
    let model = ModelServer::openai(turn().into_iter().chain(turn()));
    let workspace = toolbox_with(&model, "tools: [{name: echo, approval: ask}]");
    let mut terminal = Terminal::open(&workspace, "\"$haft\" chat");
    terminal.see("> ");
    terminal.enter("go");
    terminal.see("[d]eny? ");
    terminal.enter("w");
    terminal.see("echoed");
    terminal.see("> ");
    terminal.enter("again");
    terminal.see("echoed");
    terminal.see("> ");
    terminal.press(CTRL_D);
    let left = terminal.left();
    assert_eq!(left.screen.matches("May `echo` run?").count(), 1, "{}", left.screen);
    let history = workspace.read(".haft/sessions/history").unwrap();
    assert_eq!(history, "#V2\ngo\nagain\n", "answers to questions are not remembered");
}

/// At a terminal Markdown is styled, Tab completes commands, tools and resources, `/model` shows the model, and the wait
/// for the model is shown with its time.
#[test]
fn a_chat_styles_completes_and_shows_what_it_waits_for() {
    let table = "| Tea | Cost |\n|---|--:|\n| green | 3 |\n";
    let answer = &format!("# Title\n\nsome **bold** text\n\n{table}");
    let model = ModelServer::openai([Step::text(answer.as_str()), Step::silence()]);
    let workspace = Workspace::new();
    let notes = json!({
        "tools": ["echo"], "templates": [],
        "resources": [{"uri": "notes://today", "name": "today", "text": "buy milk"}],
    });
    let config = json!({
        "servers": {"desk": server(&notes)},
        "agent": {"model": model.model(), "base_url": model.url(), "retries": 0},
    });
    workspace.write("haft.json", config.to_string());
    let mut terminal = Terminal::open(&workspace, "\"$haft\" --color always chat");
    terminal.see("> ");
    terminal.press("/mod\t\r");
    terminal.see(model.model());
    terminal.press("/tools ec\t\r");
    terminal.see("desk");
    terminal.press("read @no\t");
    terminal.see("@notes://today");
    terminal.press("\r");
    terminal.see("\u{1b}[1m\u{1b}[4mTitle\u{1b}[0m");
    terminal.see("\u{1b}[1mbold\u{1b}[0m");
    terminal.see("\u{1b}[2m─────  ────\u{1b}[0m\r\ngreen     3\r\n");
    terminal.enter("and now?");
    terminal.see("waiting for the model, ");
    terminal.press(CTRL_C);
    terminal.see("[interrupted]");
    terminal.press(CTRL_D);
    let left = terminal.left();
    assert!(left.code == 0 && left.is_sane, "{} {}", left.code, left.screen);
    assert!(model.requests()[0].last_user_text().contains("buy milk"));
    // Without colours, and in a pipe, the answer stays as the model wrote it.
    model.then([Step::text(answer.as_str())]);
    let piped = haft(&workspace, &["run", "once more"]).run();
    assert_eq!(piped.stdout, *answer, "{}", piped.stderr);
}
