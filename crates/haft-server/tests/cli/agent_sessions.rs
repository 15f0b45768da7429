//! `haft sessions`: the conversations that are kept.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::{ModelServer, Step, Workspace};

use crate::agent_support::{answer, asking, only, toolbox_with};
use crate::{run, transcript};

/// Two conversations, one of them with a call.
fn talked() -> (Workspace, Vec<String>) {
    let model = ModelServer::openai([
        Step::call("greet", json!({"name": "Ada"})).saying("I will greet."),
        Step::text("Greeted \u{1b}[31mAda."),
        Step::call("fail", json!({})),
        Step::text("It failed."),
    ]);
    let workspace = toolbox_with(&model, "");
    for request in ["Greet Ada,\nplease", "Fail"] {
        assert_eq!(asking(&workspace, &[request, "-q"]).run().code, 0);
    }
    let listed = run(&workspace, &["sessions", "list", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let ids = listed.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned());
    (workspace, ids.collect())
}

#[test]
fn conversations_are_listed_and_shown() {
    let (workspace, ids) = talked();
    let mut text = String::new();
    for args in [
        &["sessions", "list"][..],
        &["sessions", "list", "--json"],
        &["sessions", "show", &ids[1]],
        &["sessions", "show", &ids[0], "--json"],
    ] {
        let finished = run(&workspace, args);
        text += &format!("$ {}\n{}\n", args.join(" "), transcript(&workspace, &finished));
    }
    assert!(!text.contains('\u{1b}'), "{text}");
    // Tables have the minute.
    let minute = regex::Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d").unwrap();
    insta::assert_snapshot!(minute.replace_all(&workspace.stable(&text), "TIME"));
}

#[test]
fn conversations_are_deleted() {
    let (workspace, ids) = talked();
    let finished = run(&workspace, &["sessions", "rm", &ids[0]]);
    assert_eq!((finished.code, finished.stdout), (0, format!("deleted {}\n", ids[0])));
    let left = run(&workspace, &["sessions", "list", "--json"]).stdout;
    assert!(left.contains(&ids[1]) && !left.contains(&ids[0]));
    let finished = run(&workspace, &["sessions", "rm", &ids[1], "--json"]);
    let deleted: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(deleted, json!({"id": ids[1], "outcome": "deleted"}));
    insta::assert_snapshot!(transcript(&workspace, &run(&workspace, &["sessions", "list"])));
    assert_eq!(run(&workspace, &["sessions", "list", "--json"]).stdout, "[]\n");
}

/// An id that means none or several is refused, and nothing is deleted.
#[test]
fn an_id_that_means_none_or_several_is_refused() {
    let (workspace, _) = talked();
    let mut text = String::new();
    for word in ["show", "rm"] {
        // Ids begin with their time, and so alike.
        for id in ["0", "nothing", "../history", ""] {
            let finished = run(&workspace, &["sessions", word, id]);
            assert_eq!((finished.code, finished.stdout.as_str()), (1, ""), "{word} {id}");
            text += &format!("$ {word} {id}\n{}", finished.stderr);
        }
    }
    insta::assert_snapshot!(text);
    let left = run(&workspace, &["sessions", "list", "--json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&left).unwrap().as_array().unwrap().len(), 2);
}

/// A folder without conversations is not an error.
#[test]
fn no_conversations_is_not_an_error() {
    let finished = run(&Workspace::new(), &["sessions", "list"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
    assert!(finished.stdout.contains("`haft chat` begins one"), "{}", finished.stdout);
}

/// Two programs in one conversation would answer each other's calls: the second is refused.
#[test]
fn one_program_at_a_time_uses_a_conversation() {
    let model = ModelServer::openai([Step::text("one"), Step::silence(), Step::text("two")]);
    let workspace = only(&model, "");
    assert_eq!(answer(&asking(&workspace, &["first"]).run()), "one");
    let first = asking(&workspace, &["--last", "second"]).start();
    testkit::eventually("the model is asked", || (model.requests().len() == 2).then_some(()));
    let refused = asking(&workspace, &["--last", "third"]).run();
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("is in use by another process"), "{}", refused.stderr);
    first.interrupt();
    assert_eq!(first.finish().code, 130);
    assert_eq!(answer(&asking(&workspace, &["--last", "fourth"]).run()), "two");
}

/// A conversation in use by another program is not deleted.
#[test]
fn a_conversation_in_use_is_not_deleted() {
    let model = ModelServer::openai([Step::text("one"), Step::silence()]);
    let workspace = only(&model, "");
    assert_eq!(answer(&asking(&workspace, &["first"]).run()), "one");
    let id = Kept::only(&workspace).id;
    let first = asking(&workspace, &["--last", "second"]).start();
    testkit::eventually("the model is asked", || (model.requests().len() == 2).then_some(()));
    let refused = run(&workspace, &["sessions", "rm", &id]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{}", refused.stderr);
    assert!(refused.stderr.contains("is in use by another process"), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("end the program that uses it, or wait for it"),
        "{}",
        refused.stderr
    );
    first.interrupt();
    assert_eq!(first.finish().code, 130);
    assert_eq!(run(&workspace, &["sessions", "rm", &id]).code, 0);
}

/// Unreadable lines of a conversation's file are reported when it is resumed or shown.
#[test]
fn damaged_lines_are_reported() {
    let model = ModelServer::openai([Step::text("one"), Step::text("two"), Step::text("three")]);
    let workspace = only(&model, "");
    assert_eq!(answer(&asking(&workspace, &["first"]).run()), "one");
    let Kept { id, path } = Kept::only(&workspace);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 5]).unwrap();
    let warning = "a line of the conversation in ";
    let shown = run(&workspace, &["sessions", "show", &id]);
    assert!(shown.stdout.contains("first") && !shown.stdout.contains("one"), "{}", shown.stdout);
    assert!(shown.stderr.contains(warning), "{}", shown.stderr);
    let resumed = asking(&workspace, &["--last", "second"]).run();
    assert_eq!(answer(&resumed), "two");
    assert_eq!(resumed.stderr.matches(warning).count(), 1, "{}", resumed.stderr);
    let talked = crate::haft(&workspace, &["chat", "--last"]).stdin("third\n").run();
    assert_eq!(answer(&talked), "three");
    assert_eq!(talked.stderr.matches(warning).count(), 1, "{}", talked.stderr);
}

/// Without a configured model, the error names the conversation's model.
#[test]
fn a_conversation_names_its_model() {
    let model = ModelServer::openai([Step::text("one")]);
    let workspace = only(&model, "");
    assert_eq!(answer(&asking(&workspace, &["first"]).run()), "one");
    let id = Kept::only(&workspace).id;
    workspace.write("haft.yaml", "");
    let name = format!("`-m {}`", model.model());
    for args in [&["--last", "second"][..], &["--resume", &id[..13], "second"]] {
        let refused = asking(&workspace, args).run();
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{}", refused.stderr);
        assert!(refused.stderr.contains("no model is configured"), "{}", refused.stderr);
        assert!(refused.stderr.contains(&name), "{}", refused.stderr);
    }
    let unknown = asking(&workspace, &["--resume", "nothing", "second"]).run();
    assert!(unknown.stderr.contains("no conversation `nothing`"), "{}", unknown.stderr);
}

/// The file of the one conversation there is.
struct Kept {
    id: String,
    path: PathBuf,
}

impl Kept {
    fn only(workspace: &Workspace) -> Self {
        let listed = run(workspace, &["sessions", "list", "--json"]).stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let id = listed[0]["id"].as_str().unwrap().to_owned();
        let path = workspace.path().join(format!(".haft/sessions/{id}.jsonl"));
        Self { id, path }
    }
}
