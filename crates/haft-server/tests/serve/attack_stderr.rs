//! The standard error of a shared server may quote the calls of others: only an admin reads it.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;

use crate::attack_secrets::readable;
use crate::faults::until;
use crate::served::{Served, answer};

/// A line that a server printed for another caller.
const FOREIGN: &str = "foreign-line-of-another-call";
const LAST: &str = "the-last-line";

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    let printed = format!("{FOREIGN}\n{LAST}\n");
    let server = |name: &str, scenario: Value| {
        // Command lines are visible to all users, so the scenario comes from a file.
        let path = workspace.write(&format!("{name}.json"), scenario.to_string());
        json!({"command": Fixture::path(), "args": ["stdio", "--script", path],
            "reconnect": {"attempts": 0}})
    };
    let shared = json!({"tools": ["text", "crash"], "start": {"stderr": printed}});
    let dying = json!({"start": {"stderr": printed, "exit": 1}});
    let config = json!({"servers": {
        "shared": server("shared", shared), "dying": server("dying", dying),
    }});
    workspace.write("haft.yaml", config.to_string());
    workspace
}

async fn as_caller(served: &Served, key: &str, path: &str) -> String {
    answer(served.request_as(key, Method::GET, path)).await.text
}

#[tokio::test]
async fn a_call_key_reads_no_standard_error() {
    let (served, keys) =
        Served::with_keys(workspace(), &[("me", Scope::Admin), ("agent", Scope::Call)]);
    let agent = &keys[1];
    let is_down = || async {
        let dying = served.get("/api/v1/servers/dying").await.json();
        (dying["state"] == "unavailable").then_some(dying)
    };
    let printed = |text: &str| text.contains(FOREIGN) || text.contains(LAST);
    let dying = until("the server is down", is_down).await;
    assert!(dying["reason"].as_str().unwrap().ends_with(&format!("last words: {LAST}")), "{dying}");
    let tail = served.get("/api/v1/servers/shared").await.json()["stderr_tail"].clone();
    assert_eq!(tail, json!(format!("{FOREIGN}\n{LAST}\n")));
    for path in readable(&served).await {
        let text = as_caller(&served, agent, &path).await;
        assert!(!printed(&text), "{path}: {text}");
    }
    // No key at all is needed here.
    let ready = answer(served.request_as("", Method::GET, "/readyz")).await.text;
    assert!(!printed(&ready), "{ready}");
}

#[tokio::test]
async fn a_caller_gets_the_last_line_of_a_process_that_died_under_its_call() {
    let (served, keys) =
        Served::with_keys(workspace(), &[("me", Scope::Admin), ("agent", Scope::Call)]);
    let agent = &keys[1];
    let call = async |tool: &str| {
        let path = format!("/api/v1/tools/{tool}/call");
        let request = served.request_as(agent, Method::POST, &path);
        answer(request.header("content-type", "application/json").body("{}")).await.json()
    };
    let works = async || (call("text").await["status"] == "success").then_some(());
    until("the server is ready", works).await;
    let died = call("crash").await;
    assert_eq!(died["error"]["code"], "OutcomeUnknown", "{died}");
    assert_eq!(died["error"]["details"], json!({"server": "shared", "stderr": LAST}));
    // It is not connected again, and the next call was not there when it died.
    let later = call("text").await;
    assert_eq!(later["error"]["details"], json!({"server": "shared"}), "{later}");
    assert!(!later.to_string().contains(LAST), "{later}");
    let log = served.log().into_iter().map(|entry| entry.to_string()).collect::<String>();
    assert!(!log.contains(FOREIGN) && log.contains(LAST), "{log}");
}
