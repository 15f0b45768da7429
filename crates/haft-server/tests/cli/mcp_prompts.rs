//! `haft prompts`.

use serde_json::{Value, json};
use testkit::fixture::messages;

use crate::mcp_support::{broken, facts_file, server, server_with, three, transcript, workspace};
use crate::run;

/// Proves S3-US4-2, S3-FR-014: prompts of every server that answers, and who did not.
#[test]
fn prompts_are_listed() {
    let workspace = three();
    let finished = run(&workspace, &["prompts", "list"]);
    assert_eq!(finished.code, 0);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    let finished = run(&workspace, &["prompts", "list", "--json", "--server", "good"]);
    let prompts: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(
        prompts[0],
        json!({"server": "good", "name": "greeting", "description": "Greets a person.",
            "arguments": [{"name": "name", "description": "Who.", "required": true}]})
    );
    let none = run(&workspace, &["prompts", "list", "--server", "late"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, "no prompts\n"));
    let failed = run(&workspace, &["prompts", "list", "--server", "bad"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (3, "no prompts\n"));
}

/// Proves S0-12: one prompt is kept, and one that is missing is a warning.
#[test]
fn prompts_named_in_the_configuration_are_kept() {
    let settings = json!({"prompts": ["plain", "absent"]});
    let workspace = workspace(&json!({"s": server_with(&json!({}), settings)}));
    let finished = run(&workspace, &["prompts", "list"]);
    assert_eq!(finished.code, 0);
    assert!(finished.stdout.contains("plain") && !finished.stdout.contains("greeting"));
    let warning = "WARNING: MCP server 's': it has no prompt `absent`, which `prompts` asks for";
    assert!(finished.stderr.contains(warning), "{}", finished.stderr);
}

/// Proves S3-FR-014: `load_prompts: false` sends no `prompts/list`.
#[test]
fn prompts_can_be_left_out() {
    let workspace = workspace(&json!({}));
    let facts = facts_file(&workspace);
    let one = server_with(&json!({"facts": facts}), json!({"load_prompts": false}));
    workspace.write("haft.json", json!({"servers": {"s": one}}).to_string());
    assert_eq!(run(&workspace, &["prompts", "list"]).stdout, "no prompts\n");
    assert_eq!(messages(&facts, "tools/list").len(), 1);
    assert!(messages(&facts, "prompts/list").is_empty());
}

/// Proves S3-US3-6: a prompt becomes messages with role and content.
#[test]
fn a_prompt_is_filled_in() {
    let prompts = json!([{
        "name": "review",
        "description": "Reviews code.",
        "arguments": [{"name": "language", "required": true}, {"name": "code", "required": true}, {"name": "tone"}],
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "Review this:\nfn main() {}"}},
            {"role": "assistant", "content": {"type": "image", "data": "QUJD", "mimeType": "image/png"}},
        ],
    }]);
    let workspace = workspace(&json!({"s": server(&json!({"prompts": prompts}))}));
    workspace.write("main.rs", "fn main() {}\n");
    let args = ["prompts", "get", "review", "language=Rust", "code=@main.rs"];
    let finished = run(&workspace, &args);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    let finished = run(&workspace, &[&args[..], &["--json"]].concat());
    let messages: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(messages[1]["content"][0]["mime_type"], json!("image/png"));
}

/// A prompt's arguments are strings, also if they look like numbers.
#[test]
fn arguments_of_prompts_are_texts() {
    let workspace = workspace(&json!({"s": server(&json!({}))}));
    let finished = run(&workspace, &["prompts", "get", "greeting", "name=3"]);
    assert_eq!(finished.stdout, "user: prompt \"greeting\" with {\"name\":\"3\"}\n");
}

/// Every wrong request has a remedy.
#[test]
fn wrong_prompts_are_refused_with_a_remedy() {
    let prompts = json!({"prompts": [{"name": "shared"},
        {"name": "needs", "arguments": [{"name": "a", "required": true}, {"name": "b", "required": true}]}]});
    let refusing = json!({"prompts": [{"name": "shared"}, {"name": "own"}],
        "errors_on": {"prompts/get": {"code": -32602, "message": "no such style"}}});
    let workspace = workspace(&json!({"one": server(&prompts), "two": server(&refusing)}));
    let mut text = String::new();
    let lines: [(&[&str], i32); 8] = [
        (&["shared"], 2),
        (&["needs", "a=1"], 2),
        (&["needs", "a"], 2),
        (&["needs", "a=1", "a=2"], 2),
        (&["needs", "a=@nowhere"], 2),
        (&["sharde"], 1),
        (&["own"], 1),
        (&["shared", "--server", "three"], 2),
    ];
    for (line, code) in lines {
        let finished = run(&workspace, &[&["prompts", "get"], line].concat());
        assert_eq!(finished.code, code, "{line:?}: {}", finished.stderr);
        text += &format!("$ haft prompts get {}\n{}", line.join(" "), finished.stderr);
    }
    insta::assert_snapshot!(text);
    let one = run(&workspace, &["prompts", "get", "shared", "--server", "one"]);
    assert_eq!(one.code, 0, "{}", one.stderr);
}

/// A prompt that may belong to a server that failed: exit code 3, with that server's reason.
#[test]
fn a_missing_prompt_names_the_server_that_could_not_be_asked() {
    let workspace = workspace(&json!({"s": server(&json!({})), "bad": broken()}));
    let finished = run(&workspace, &["prompts", "get", "elsewhere"]);
    assert_eq!(finished.code, 3);
    insta::assert_snapshot!(transcript(&workspace, &finished));
}
