//! Tasks through the gateway, with servers behind it that have them.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::fixture::messages;
use testkit::{Program, Workspace, eventually};

use crate::support::{Client, server, workspace};

const TASKS: &str = "io.modelcontextprotocol/tasks";

fn toolbox(era: &str) -> (Workspace, PathBuf) {
    let workspace = workspace(&json!({}));
    let facts = workspace.path().join("tasks.facts");
    let behind = server(&json!({"era": era, "facts": facts, "tools": ["task", "text"]}));
    workspace.write("haft.json", json!({"servers": {"behind": behind}}).to_string());
    (workspace, facts)
}

fn params(extensions: &Value, more: Value) -> Value {
    let mut params = more;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":
            {"elicitation": {}, "extensions": extensions},
    });
    params
}

fn ask(client: &mut Client, method: &str, more: Value) -> Value {
    let mut answer = client.ask(&json!(1), method, &params(&json!({TASKS: {}}), more));
    assert!(answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].take()
}

/// Polls a task until it has this status.
fn wait_for(client: &mut Client, id: &Value, status: &str) -> Value {
    eventually(status, || {
        let state = ask(client, "tasks/get", json!({"taskId": id}));
        (state["status"] == status).then_some(state)
    })
}

fn log(workspace: &Workspace) -> Vec<Value> {
    let log = Program::new(env!("CARGO_BIN_EXE_haft"), workspace).args(&["log", "--json"]).run();
    log.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A task of the server behind, whatever its era, is a task of the client: polled, asked, answered, and one entry in the
/// log.
#[test]
fn a_task_of_a_server_is_a_task_of_the_client() {
    for era in ["legacy", "modern"] {
        let (workspace, facts) = toolbox(era);
        let mut client = Client::start(&workspace);
        let list = ask(&mut client, "tools/list", json!({}));
        assert_eq!(list["tools"][0]["execution"].get("taskSupport"), None, "{list}");
        let arguments = json!({"ms": 200, "ask": true});
        let created =
            ask(&mut client, "tools/call", json!({"name": "task", "arguments": arguments}));
        assert_eq!(created["resultType"], "task", "{created}");
        let id = &created["taskId"];
        let asking = wait_for(&mut client, id, "input_required");
        let (key, question) = asking["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(question["params"]["message"], "What is your name?");
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        let update = json!({"taskId": id, "inputResponses": {key: answer}});
        assert_eq!(ask(&mut client, "tasks/update", update), json!({"resultType": "complete"}));
        let done = wait_for(&mut client, id, "completed");
        let result = &done["result"]["structuredContent"];
        assert_eq!(result["answer"]["content"], json!({"name": "Ada"}), "{era}: {done}");
        assert_eq!(done["result"]["_meta"].get("io.modelcontextprotocol/related-task"), None);
        // The server behind has another id, which the client does not learn.
        let poll = if era == "legacy" { "tasks/result" } else { "tasks/get" };
        assert_ne!(messages(&facts, poll)[0]["params"]["taskId"], *id);
        assert_eq!(log(&workspace).len(), 1);
    }
}

/// A client without the extension waits for the result of the same tool, and a cancelled task is cancelled behind.
#[test]
fn clients_without_tasks_wait_and_cancelled_tasks_end() {
    for era in ["legacy", "modern"] {
        let (workspace, facts) = toolbox(era);
        let mut client = Client::connect(&workspace);
        let done = client.call("task", &json!({"ms": 100}));
        assert_eq!(done["structuredContent"]["task"], "done", "{era}: {done}");

        let mut client = Client::start(&workspace);
        let call = json!({"name": "task", "arguments": {"ms": 600_000}});
        let created = ask(&mut client, "tools/call", call);
        let id = &created["taskId"];
        eventually("the gateway polls", || {
            let polls = messages(&facts, "tasks/get").len();
            (polls >= 2).then_some(())
        });
        ask(&mut client, "tasks/cancel", json!({"taskId": id}));
        wait_for(&mut client, id, "cancelled");
        eventually("the task behind is cancelled", || {
            (messages(&facts, "tasks/cancel").len() == 1).then_some(())
        });
        eventually("both calls are logged", || {
            let log = log(&workspace);
            let cancelled = |it: &&Value| it.to_string().contains("Cancelled");
            (log.len() == 2 && log.iter().filter(cancelled).count() == 1).then_some(())
        });
    }
}
