//! People whom the agent asks: for what it lacks, and whether a call may be made.

use std::sync::{Mutex, mpsc};

use serde_json::{Value, json};
use testkit::fixture::Fixture;
use testkit::model::AskedModel;
use testkit::{DEADLINE, ModelServer, Step, eventually};

use crate::agent_support::{CTRL_C, CTRL_D, FORMATS, Terminal, answer, asking, only, toolbox_with};
use crate::run;

fn asked_back(options: &Value) -> [Step; 2] {
    let arguments = json!({"question": "Which city?", "options": options});
    [
        Step::call("request_human_input", arguments),
        Step::by(|asked| Step::text(format!("Then it is {}.", asked.last_result()))),
    ]
}

/// Proves S2-SC-005, S2-FR-006: a task that lacks something is asked about at the terminal, and what is typed goes
/// back to the model.
#[test]
fn a_person_at_the_terminal_is_asked() {
    for format in FORMATS {
        let model = ModelServer::start(format, asked_back(&json!([])));
        let workspace = only(&model, "");
        let mut terminal = Terminal::open(&workspace, "\"$haft\" run 'Book a hotel'");
        terminal.see("Which city?");
        terminal.see("your answer (empty to refuse): ");
        terminal.enter("Seoul");
        terminal.see("Then it is ");
        let left = terminal.left();
        assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
        assert!(model.last_request().last_result().contains("Seoul"));
        let offered = model.last_request().tool_names();
        assert!(offered.contains(&"request_human_input".to_owned()), "{offered:?}");
    }
}

/// Proves S2-FR-006: options are shown with numbers, and a number is enough; what does not fit is asked again.
#[test]
fn options_are_chosen_by_number() {
    let model = ModelServer::openai(asked_back(&json!(["Seoul", "Paris"])));
    let workspace = only(&model, "");
    let mut terminal = Terminal::open(&workspace, "\"$haft\" run 'Book a hotel'");
    terminal.see("  1. Seoul");
    terminal.see("  2. Paris");
    terminal.see("your answer");
    terminal.enter("7");
    terminal.see("the answer does not fit");
    terminal.see("your answer");
    terminal.enter("2");
    let left = terminal.left();
    assert_eq!(left.code, 0, "{}", left.screen);
    assert!(model.last_request().last_result().contains("Paris"), "{}", left.screen);
}

/// Proves S2-FR-006: a refusal reaches the model; Ctrl-C at the question ends the turn.
#[test]
fn a_question_can_be_refused_or_broken_off() {
    let model = ModelServer::openai(asked_back(&json!([])));
    let workspace = only(&model, "");
    let mut terminal = Terminal::open(&workspace, "\"$haft\" run 'Book a hotel'");
    terminal.see("your answer");
    terminal.enter("");
    let left = terminal.left();
    assert_eq!(left.code, 0, "{}", left.screen);
    assert!(model.last_request().last_result().contains("refused"), "{}", left.screen);
    model.then(asked_back(&json!([])));
    let mut terminal = Terminal::open(&workspace, "\"$haft\" run 'Book a hotel'");
    terminal.see("your answer");
    terminal.press(CTRL_C);
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane, model.left()), (130, true, 1), "{}", left.screen);
}

/// Proves S2-FR-006: without a person, the model is informed, and the run continues.
#[test]
fn without_a_person_the_model_is_informed() {
    // The recipient of a webhook cannot answer.
    let told = "inbox: {webhook: 'http://127.0.0.1:9/questions', timeout: 2s}\n";
    for (format, yaml) in FORMATS.into_iter().flat_map(|format| [(format, ""), (format, told)]) {
        let model = ModelServer::start(format, asked_back(&json!([])));
        let workspace = only(&model, yaml);
        let finished = asking(&workspace, &["Book a hotel"]).with_builtins().run();
        let said = "no person can be asked here";
        assert!(answer(&finished).contains(said), "{}", finished.stdout);
        assert!(finished.stderr.contains(said), "{}", finished.stderr);
    }
}

const APPROVED: &str = "tools: [{name: echo, approval: ask}]";

fn two_calls() -> [Step; 3] {
    [
        Step::call("echo", json!({"n": 1})),
        Step::call("echo", json!({"n": 2})),
        Step::by(|asked| {
            Step::text(asked.results().into_iter().map(|it| it.text + "; ").collect::<String>())
        }),
    ]
}

/// A call that needs approval is not made if no person can approve it, and the model is informed; `--yes` approves.
#[test]
fn without_a_person_calls_that_need_approval_are_denied() {
    for format in FORMATS {
        let model = ModelServer::start(format, two_calls());
        let workspace = toolbox_with(&model, APPROVED);
        let denied = asking(&workspace, &["go"]).run();
        assert_eq!(
            answer(&denied).matches("only when a person agrees").count(),
            2,
            "{}",
            denied.stdout
        );
        assert!(denied.stderr.contains("! "), "{}", denied.stderr);
        let hint = "warning: 2 calls denied: no person could be asked, because standard input is not a terminal\n  \
                    help: `--yes` agrees";
        assert!(denied.stderr.contains(hint), "{}", denied.stderr);
        model.then(two_calls());
        let quiet = asking(&workspace, &["go", "-q"]).run();
        assert_eq!(quiet.stderr, "");
        model.then(two_calls());
        let allowed = asking(&workspace, &["go", "--yes", "-q"]).run();
        assert_eq!(answer(&allowed), r#"{"n":1}; {"n":2};"#);
    }
}

/// A tool's own entry can demand approval.
#[test]
fn tools_json_can_ask_for_approval() {
    let model = ModelServer::openai([]);
    let workspace = toolbox_with(&model, "");
    let tools = workspace.read("tools/tools.json").unwrap();
    let asking =
        tools.replacen("\"type\": \"local\"", "\"type\": \"local\", \"approval\": \"ask\"", 1);
    assert_ne!(asking, tools);
    workspace.write("tools/tools.json", asking);
    let finished = run(&workspace, &["call", "greet", "name=Ada"]);
    assert_eq!(finished.code, 1);
    assert!(finished.stderr.contains("runs only when a person agrees"), "{}", finished.stderr);
    assert_eq!(run(&workspace, &["call", "greet", "name=Ada", "--yes"]).code, 0);
}

/// At a terminal a person allows one call, all of them, or none.
#[test]
fn a_person_at_the_terminal_approves_calls() {
    let model = ModelServer::openai([]);
    let workspace = toolbox_with(&model, APPROVED);
    let hint = "[a]llow, al[w]ays, [d]eny? ";
    let asked = |answers: &[&str]| {
        model.then(two_calls());
        let mut terminal = Terminal::open(&workspace, "\"$haft\" run go");
        for answer in answers {
            terminal.see("May `echo` run?");
            terminal.see("{\"n\":");
            terminal.see(hint);
            terminal.enter(answer);
        }
        let left = terminal.left();
        assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
        assert_eq!(
            left.screen.matches("May `echo` run?").count(),
            answers.len(),
            "{}",
            left.screen
        );
        model.last_request().results().into_iter().map(|it| it.text).collect::<Vec<_>>()
    };
    assert_eq!(asked(&["a", "a"]), [r#"{"n":1}"#, r#"{"n":2}"#]);
    assert_eq!(asked(&["w"]), [r#"{"n":1}"#, r#"{"n":2}"#]);
    let told = asked(&["d", "a"]);
    assert!(told[0].contains("refused") || told[0].contains("denied"), "{told:?}");
    assert_eq!(told[1], r#"{"n":2}"#);
}

/// One permanent approval is enough for calls that were made together; a number, which has no meaning here, does not
/// approve.
#[test]
fn calls_made_together_are_agreed_to_once_and_never_by_number() {
    let together = || Step::calls([("echo", json!({"n": 1})), ("echo", json!({"n": 2}))]);
    let model = ModelServer::openai([together(), Step::text("both")]);
    let workspace =
        toolbox_with(&model, "tools: [{name: echo, approval: ask, parallel_capable: true}]");
    let mut terminal = Terminal::open(&workspace, "\"$haft\" run go");
    terminal.see("[d]eny? ");
    terminal.enter("2");
    terminal.see("the answer does not fit");
    terminal.see("[d]eny? ");
    terminal.enter("w");
    terminal.see("both");
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
    assert_eq!(left.screen.matches("May `echo` run?").count(), 1, "{}", left.screen);
}

/// Output during typing appears above the line, which is shown again below.
#[test]
fn output_during_typing_appears_above_the_line() {
    const ONCE_THERE: &str = "import os, time\n\ndef run(args):\n    while not os.path.exists('go'):\n        \
                              time.sleep(0.01)\n    return {'greeting': 'Hello!'}\n";
    let together = Step::calls([("greet", json!({"name": "Ada"})), ("echo", json!({"n": 2}))]);
    let model = ModelServer::openai([together, Step::text("both")]);
    let settings = "tools: [{name: echo, approval: ask, parallel_capable: true}]";
    let workspace = toolbox_with(&model, settings);
    workspace.write("tools/greet.py", ONCE_THERE);
    let mut terminal = Terminal::open(&workspace, "\"$haft\" run go");
    terminal.see("[d]eny? ");
    terminal.press("de");
    terminal.see("e");
    workspace.write("go", "");
    terminal.see("<- greet, ");
    let told = terminal.see("\n");
    assert!(told.contains("Hello!") && !told.contains("[d]eny?"), "{told}");
    terminal.see("[d]eny? de");
    terminal.enter("ny");
    terminal.see("both");
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
    let denied =
        model.last_request().results().into_iter().filter(|it| it.text.contains("refused"));
    assert_eq!(denied.count(), 1, "{}", left.screen);
}

/// Input for a question that is over answers no other question, least of all an approval.
#[test]
fn a_line_for_a_question_that_is_over_approves_nothing() {
    let question = json!({"question": "Wipe the cache? y/n", "timeout": 1});
    let model = ModelServer::openai([
        Step::call("request_human_input", question),
        Step::call("greet", json!({"name": "Ada"})),
        Step::text("done"),
    ]);
    let workspace = toolbox_with(&model, "tools: [{name: greet, approval: ask}]");
    let mut terminal = Terminal::open(&workspace, "\"$haft\" run 'go'");
    terminal.see("your answer");
    terminal.press("a");
    terminal.see("no answer came within 1s");
    terminal.see("May `greet` run?");
    terminal.press("\r");
    terminal.see("[d]eny? ");
    terminal.enter("d");
    let left = terminal.left();
    assert_eq!(left.code, 0, "{}", left.screen);
    assert!(model.last_request().last_result().contains("refused the call"), "{}", left.screen);
}

/// A model that calls `echo` after the sender fires.
fn waiting_call() -> (Step, mpsc::Sender<()>) {
    let (go, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let step = Step::by(move |_| {
        wait.lock().unwrap().recv_timeout(DEADLINE).expect("somebody lets it");
        Step::call("echo", json!({"n": 1}))
    });
    (step, go)
}

/// Input typed before a question approves nothing: neither whole lines nor the beginning of one.
#[test]
fn what_was_typed_before_the_question_approves_nothing() {
    for typed in ["a", "yes", "w"] {
        let (call, go) = waiting_call();
        let model = ModelServer::openai([call, Step::text("done")]);
        let workspace = toolbox_with(&model, APPROVED);
        let mut terminal = Terminal::open(&workspace, "\"$haft\" run go");
        eventually("the model is asked", || (model.requests().len() == 1).then_some(()));
        terminal.enter(typed);
        terminal.press("ye");
        terminal.see(&format!("{typed}\r\nye"));
        go.send(()).unwrap();
        terminal.see("May `echo` run?");
        terminal.see("[d]eny? ");
        terminal.enter("d");
        let left = terminal.left();
        assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
        let told = model.last_request().last_result();
        assert!(told.contains("refused the call"), "{told}\n{}", left.screen);
    }
}

/// In a chat, lines typed ahead are the next prompts, and answer no question in between.
#[test]
fn what_was_typed_ahead_waits_for_the_next_prompt() {
    let (call, go) = waiting_call();
    let second = Step::call("echo", json!({"n": 2}));
    let model = ModelServer::openai([call, second, Step::text("not echoed")]);
    model.then([Step::text("received one"), Step::text("received two")]);
    let workspace = toolbox_with(&model, APPROVED);
    let mut terminal = Terminal::open(&workspace, "\"$haft\" chat");
    terminal.see("> ");
    terminal.enter("go");
    eventually("the model is asked", || (model.requests().len() == 1).then_some(()));
    for line in ["w", "a"] {
        terminal.enter(line);
        terminal.see(&format!("{line}\r\n"));
    }
    go.send(()).unwrap();
    for _ in 0..2 {
        terminal.see("[d]eny? ");
        terminal.enter("d");
    }
    terminal.see("received two");
    terminal.see("> ");
    terminal.press(CTRL_D);
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
    let requests = model.requests();
    assert!(requests[2].results().iter().all(|it| it.text.contains("refused the call")));
    let said = [requests[3].last_user_text(), requests[4].last_user_text()];
    assert_eq!(said, ["w", "a"], "{}", left.screen);
}

/// Several lines typed during an answer are sent one after the other, and an unfinished line can be continued.
#[test]
fn lines_typed_during_an_answer_are_all_sent() {
    let (call, go) = waiting_call();
    let model = ModelServer::openai([call, Step::text("echoed")]);
    model.then([
        Step::text("received one"),
        Step::text("received two"),
        Step::text("received three"),
    ]);
    let workspace = toolbox_with(&model, "");
    let mut terminal = Terminal::open(&workspace, "\"$haft\" chat");
    terminal.see("> ");
    terminal.enter("go");
    eventually("the model is asked", || (model.requests().len() == 1).then_some(()));
    terminal.press("one\rtwo\rthr");
    terminal.see("two\r\nthr");
    go.send(()).unwrap();
    terminal.see("received two");
    terminal.see("> ");
    terminal.see("thr");
    terminal.enter("ee");
    terminal.see("received three");
    terminal.see("> ");
    terminal.press(CTRL_D);
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
    let said: Vec<String> = model.requests()[2..].iter().map(AskedModel::last_user_text).collect();
    assert_eq!(said, ["one", "two", "three"], "{}", left.screen);
}

/// Ctrl-D at a question ends only the input for it, and the model is informed.
#[test]
fn ctrl_d_at_a_question_gives_no_answer() {
    let model = ModelServer::openai(asked_back(&json!([])));
    let workspace = only(&model, "");
    let mut terminal = Terminal::open(&workspace, "\"$haft\" run 'Book a hotel'");
    terminal.see("your answer");
    terminal.press(CTRL_D);
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
    let told = model.last_request().last_result();
    assert!(told.contains("input ended (Ctrl-D)"), "{told}");
}

/// Proves S3-EC-9: a form is filled in field by field; what does not fit is asked for again, and an empty line is
/// the default or leaves the field out.
#[test]
fn a_form_is_filled_in_field_by_field() {
    let schema = json!({
        "type": "object", "required": ["name", "nights"],
        "properties": {
            "name": {"type": "string", "title": "Full name", "description": "As in \u{202e}the\u{9b} passport"},
            "nights": {"type": "integer", "minimum": 1},
            "room": {"type": "string", "enum": ["single", "double"], "default": "double"},
            "meals": {"type": "array", "items": {"type": "string", "enum": ["breakfast", "lunch"]}},
            "note": {"type": "string"},
        },
    });
    let arguments = json!({"question": "Who comes?", "schema": schema});
    let model = ModelServer::openai([]);
    let workspace = only(&model, "");
    let line = format!("\"$haft\" call request_human_input '{arguments}' --json");
    let mut terminal = Terminal::open(&workspace, &line);
    terminal.see("Who comes?");
    terminal.see("As in \\u{202e}the\\u{9b} passport");
    terminal.see("Full name (text; required, empty to refuse): ");
    terminal.enter("Ada");
    terminal.see("nights (whole number; required, empty to refuse): ");
    terminal.enter("two");
    terminal.see("that does not fit: a whole number");
    terminal.see("nights (");
    terminal.enter("0");
    terminal.see("that does not fit: the value is less than the minimum of 1");
    terminal.see("nights (");
    terminal.enter("2");
    terminal.see("  2. double");
    terminal.see("room (one of these; empty for double): ");
    terminal.enter("1");
    terminal.see("meals (some of these, with commas between; empty to leave it out): ");
    terminal.enter("lunch, 1");
    terminal.see("note (text; empty to leave it out): ");
    terminal.enter("");
    terminal.see("\"answer\"");
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
    let shown: String = left.screen.split_whitespace().collect();
    assert!(
        shown.contains(r#""name":"Ada","nights":2,"room":"single","meals":["lunch","breakfast"]}"#),
        "{}",
        left.screen
    );
    assert!(!left.screen.contains(['\u{202e}', '\u{9b}']), "{}", left.screen);
}

/// An unsupported form is requested as JSON, and its schema is shown safely and completely.
#[test]
fn a_schema_is_shown_without_control_characters() {
    let schema = json!({"type": "array", "description": "evil \u{202e}\u{9b}2J"});
    let arguments = json!({"question": "Which?", "schema": schema});
    let model = ModelServer::openai([]);
    let workspace = only(&model, "");
    let line = format!("\"$haft\" call request_human_input '{arguments}' --json");
    let mut terminal = Terminal::open(&workspace, &line);
    terminal.see("as JSON that fits ");
    terminal.see("evil \\u202e\\u009b2J");
    terminal.see("your answer");
    terminal.enter("[1]");
    let left = terminal.left();
    assert_eq!(left.code, 0, "{}", left.screen);
    assert!(!left.screen.contains(['\u{202e}', '\u{9b}']), "{}", left.screen);
}

/// `haft call` at a terminal asks before it runs a tool that needs approval, as `haft run` does.
#[test]
fn a_call_is_approved_at_the_terminal() {
    let model = ModelServer::openai([]);
    let workspace = toolbox_with(&model, APPROVED);
    for (answer, code) in [("a", 0), ("d", 1)] {
        let mut terminal = Terminal::open(&workspace, "\"$haft\" call echo n=1");
        terminal.see("May `echo` run?");
        terminal.see("[a]llow, [d]eny? ");
        terminal.enter(answer);
        let left = terminal.left();
        assert_eq!((left.code, left.is_sane), (code, true), "{}", left.screen);
    }
    let terminal = Terminal::open(&workspace, "\"$haft\" call echo n=1 --yes");
    let left = terminal.left();
    assert_eq!((left.code, left.screen.contains("May `echo`")), (0, false), "{}", left.screen);
}

/// Proves S3-EC-9: a server's question during `haft call` comes to the person at the terminal, who may also end
/// the call instead.
#[test]
fn a_server_asks_the_person_who_calls() {
    let scenario = json!({"tools": ["elicit"]});
    let server = json!({"far": {
        "command": Fixture::path(), "args": Fixture::stdio_args(&scenario), "mode": "dynamic",
    }});
    let model = ModelServer::openai([]);
    let workspace = only(&model, &format!("servers: {server}"));
    let line = "\"$haft\" call elicit message='Your name?'";
    let mut terminal = Terminal::open(&workspace, line);
    terminal.see("`far` asks: Your name?");
    terminal.see("name (text; required, empty to refuse): ");
    terminal.enter("Ada");
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (0, true), "{}", left.screen);
    assert!(left.screen.contains("accept"), "{}", left.screen);
    let mut terminal = Terminal::open(&workspace, line);
    terminal.see("name (text");
    terminal.press(CTRL_C);
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (130, true), "{}", left.screen);
}

/// The end of a command is printed completely and last, even if a question is open.
#[test]
fn the_end_is_reported_although_a_question_is_open() {
    let model = ModelServer::openai([]);
    let workspace = only(&model, "");
    let line = "\"$haft\" call request_human_input '{\"question\": \"Which?\", \"timeout\": 1}'";
    let mut terminal = Terminal::open(&workspace, line);
    terminal.see("your answer");
    terminal.press("half an ans");
    terminal.see("error: no answer came within 1s");
    terminal.see("execution ");
    let left = terminal.left();
    assert_eq!((left.code, left.is_sane), (1, true), "{}", left.screen);
}
