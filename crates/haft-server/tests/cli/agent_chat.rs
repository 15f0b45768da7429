//! `haft chat` over a pipe.

use serde_json::json;
use testkit::{Finished, ModelServer, Step, Workspace};

use crate::agent_support::{FORMATS, count, only, toolbox_with};
use crate::mcp_support::{facts_file, server, transcript};
use crate::{haft, run};

/// Types lines into `haft chat` through a pipe.
fn piped(workspace: &Workspace, lines: &str) -> Finished {
    haft(workspace, &["chat"]).stdin(lines).run()
}

/// Proves S1-13 for `chat`: several turns are one conversation, whose calls the log knows by its id.
#[test]
fn turns_are_one_conversation() {
    for format in FORMATS {
        let model = ModelServer::start(
            format,
            [
                Step::by(count),
                Step::call("greet", json!({"name": "Ada"})),
                Step::by(count),
                Step::by(count),
            ],
        );
        let workspace = toolbox_with(&model, "");
        let finished = piped(&workspace, "one\n\ntwo\nthree\n");
        assert_eq!((finished.code, model.left()), (0, 0), "{}", finished.stderr);
        assert_eq!(finished.stdout, "1 messages\n5 messages\n7 messages\n");
        let greeting = format!("{} with 4 tools; /help shows what there is\n", model.model());
        assert!(finished.stderr.starts_with(&greeting), "{}", finished.stderr);
        let log = run(&workspace, &["log", "--json"]).stdout;
        let call: serde_json::Value = serde_json::from_str(&log).unwrap();
        let sessions = run(&workspace, &["sessions", "list", "--json"]).stdout;
        let sessions: serde_json::Value = serde_json::from_str(&sessions).unwrap();
        assert_eq!((&sessions[0]["id"], &sessions[0]["messages"]), (&call["session"], &json!(8)));
    }
}

/// A server with one of everything.
fn everything(model: &ModelServer) -> Workspace {
    let workspace = Workspace::new();
    let scenario = json!({
        "facts": facts_file(&workspace),
        "tools": ["echo", "text"],
        "prompts": [{
            "name": "review", "description": "Reviews a file.", "arguments": [{"name": "file", "required": true}],
            "messages": [
                {"role": "assistant", "content": {"type": "text", "text": "I review."}},
                {"role": "user", "content": {"type": "text", "text": "Please review it."}},
            ],
        }],
        "resources": [{"uri": "notes://today", "name": "today", "description": "Notes of today.", "text": "buy milk"}],
        "templates": [],
    });
    let config = json!({
        "servers": {"desk": server(&scenario)},
        "agent": {"model": model.model(), "base_url": model.url(), "retries": 0},
    });
    workspace.write("haft.json", config.to_string());
    workspace
}

/// Every word of the chat that is not for the model, with what it shows.
#[test]
fn words_show_what_there_is() {
    let model =
        ModelServer::openai([Step::call("text", json!({})), Step::text("done"), Step::by(count)]);
    let workspace = everything(&model);
    let lines = "/help\n/tools\n/tools text\n/tools nothing such\n/servers\n/prompts\n/resources\n/log\ngo\n/log\n/clear\n\
                 fresh\n/hlep\n/xyzzyx\n/prompt\n/prompt nothing\n/exit\nnever said\n";
    let finished = piped(&workspace, lines);
    assert_eq!((finished.code, model.left()), (0, 0), "{}", finished.stderr);
    insta::assert_snapshot!(without_durations(&transcript(&workspace, &finished)));
}

/// Removes the durations of calls.
fn without_durations(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(" ms: ") {
        Some((before, after)) if before.starts_with("<- ") => format!("<- N ms: {after}"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The messages of a prompt are sent to the model, together with mentioned resources.
#[test]
fn prompts_and_resources_go_to_the_model() {
    for format in FORMATS {
        let model = ModelServer::start(
            format,
            [Step::text("reviewed"), Step::text("read"), Step::text("no")],
        );
        let workspace = everything(&model);
        let lines = "/prompt review file=a.rs\nwhat is in @notes://today?\nask ada@example.com or @nobody\n";
        let finished = piped(&workspace, lines);
        assert_eq!(finished.stdout, "reviewed\nread\nno\n", "{}", finished.stderr);
        let requests = model.requests();
        assert_eq!(requests[0].last_user_text(), "Please review it.");
        assert!(requests[0].body.to_string().contains("I review."));
        assert!(requests[1].body.to_string().contains("buy milk"), "{}", requests[1].body);
        assert_eq!(requests[2].last_user_text(), "ask ada@example.com or @nobody");
    }
}

/// A prompt that ends with the assistant's words sends no request to the model, and the chat reports it.
#[test]
fn a_prompt_that_ends_with_the_assistant_is_explained() {
    let model = ModelServer::openai([Step::by(count)]);
    let text =
        |role: &str, text: &str| json!({"role": role, "content": {"type": "text", "text": text}});
    let scenario = json!({"tools": 0, "prompts": [
        {"name": "role", "messages": [text("user", "Be brief."), text("assistant", "I will.")]},
        {"name": "silent", "messages": []},
    ]});
    let workspace = everything(&model);
    let config = json!({
        "servers": {"one": server(&scenario)},
        "agent": {"model": model.model(), "base_url": model.url(), "retries": 0},
    });
    workspace.write("haft.json", config.to_string());
    let finished = piped(&workspace, "/prompt role\n/prompt silent\ngo\n");
    let expected = "added 2 messages to the conversation; the last one is the assistant's, so the model was not \
                    asked: write what comes next\n\
                    the prompt has no messages; nothing was added to the conversation\n\
                    3 messages\n";
    assert_eq!(finished.stdout, expected, "{}", finished.stderr);
}

/// A model that fails ends the turn and not the chat.
#[test]
fn a_failing_model_does_not_end_the_chat() {
    let model = ModelServer::openai([Step::status(500), Step::text("back")]);
    let workspace = only(&model, "");
    let finished = piped(&workspace, "one\ntwo\n");
    assert_eq!((finished.code, finished.stdout.as_str()), (0, "back\n"));
    assert!(finished.stderr.contains("fails (500)"), "{}", finished.stderr);
    assert!(finished.stderr.contains("  help: "), "{}", finished.stderr);
}

/// A chat is resumed, and reports it.
#[test]
fn a_chat_is_resumed() {
    let model = ModelServer::openai([Step::by(count), Step::by(count)]);
    let workspace = only(&model, "");
    piped(&workspace, "one\n");
    let finished = haft(&workspace, &["chat", "--last"]).stdin("two\n").run();
    assert_eq!(finished.stdout, "3 messages\n");
    assert!(finished.stderr.contains("continuing after 2 messages"), "{}", finished.stderr);
}
