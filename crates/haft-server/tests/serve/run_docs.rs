//! The commands that the documentation has for runs, executed as they are printed.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::Program;
use testkit::model::{ModelServer, Step};

use crate::agent::{over, questions, workspace};
use crate::served::Served;

/// Only the port is another, and what the words in capitals stand for.
#[tokio::test(flavor = "multi_thread")]
async fn the_commands_for_runs_are_as_printed() {
    let model = ModelServer::openai([
        Step::text("Sunny."),
        Step::call("echo", json!({"city": "Busan"})),
        Step::silence(),
    ]);
    let workspace = workspace(&model, "tools: [{name: echo, approval: ask}]\n");
    // The service has no keys, so there is no approver over HTTP otherwise.
    let config = workspace.read("haft.yaml").unwrap();
    workspace.write("haft.yaml", config.replace("policy: {", "policy: {approvals: caller, "));
    let served = Served::open(workspace);
    let [begin, resume, show, answer, cancel, follow] = &commands()[..] else {
        panic!("{:?}", commands());
    };
    let address = served.url.trim_start_matches("http://");
    let curl = |command: &str, words: &[(&str, &Value)]| {
        let command = words.iter().fold(command.to_owned(), |command, (word, value)| {
            command.replace(word, value.as_str().unwrap())
        });
        let command = command.replace("localhost:7300", address);
        let finished = Program::new("bash", &served.workspace).args(&["-euc", &command]).run();
        assert_eq!(finished.code, 0, "{command}: {}", finished.stderr);
        finished.stdout
    };
    let read = |text: String| serde_json::from_str::<Value>(&text).unwrap();

    let followed = curl(begin, &[]);
    assert!(followed.contains("event: turn.completed"), "{followed}");
    let first = served.get("/api/v1/runs").await.json()["runs"][0].clone();
    assert_eq!(first["text"], "Sunny.");
    let run = read(curl(resume, &[("SESSION", &first["session"])]));
    assert_eq!(run["session"], first["session"]);
    let asked = questions(&served, &run, 1).await;
    assert_eq!(read(curl(show, &[("ID", &run["id"])]))["questions"], json!(asked));
    let answered = read(curl(answer, &[("QUESTION", &asked[0]["id"])]));
    assert_eq!((&answered["id"], &answered["how"]), (&asked[0]["id"], &json!("answered")));
    crate::until(|| model.requests().len() == 3).await;
    assert_eq!(read(curl(cancel, &[("ID", &run["id"])]))["id"], run["id"]);
    let rest = curl(follow, &[("ID", &run["id"])]);
    assert!(rest.starts_with("event: question.asked\nid: 4\n"), "{rest}");
    assert_eq!(over(&served, &run).await["status"], "cancelled");
}

fn commands() -> Vec<String> {
    let docs: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "http-api.md"].iter().collect();
    let docs = std::fs::read_to_string(docs).unwrap();
    let section = docs.split("\n## Runs\n").nth(1).unwrap();
    let block = section.split("```").nth(1).unwrap();
    block.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect()
}
