//! Runs of keys with a list of tools or servers: the list, the rules and the rate hold inside.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;

use testkit::model::{AskedModel, ModelServer, Step};

use crate::agent::{RUNS, over, path};
use crate::served::{Answer, SERVE, Served, answer, create_key, haft, toolbox};

/// The toolbox with a model, a rule, and a server with a tool, resources and instructions.
fn workspace(model: &ModelServer) -> Workspace {
    let workspace = toolbox();
    let scenario = json!({"tools": ["text"], "instructions": "Far away."});
    let servers =
        json!({"far": {"command": Fixture::path(), "args": Fixture::stdio_args(&scenario)}});
    let rule = json!({
        "name": "small", "match": {"tool": "echo", "when": "args.n > 5"}, "effect": "deny",
        "reason": "large numbers are not echoed",
    });
    let policy = json!({"allowed_commands": ["cat"], "rules": [rule]});
    let yaml = format!(
        "registry: {{dir: tools}}\nbuiltin: {{enabled: false}}\npolicy: {policy}\nservers: {servers}\n{}",
        model.config()
    );
    workspace.write("haft.yaml", yaml);
    workspace
}

fn served(model: &ModelServer, limits: &[&str]) -> (Served, String) {
    let workspace = workspace(model);
    let admin = create_key(&workspace, "me", Scope::Admin);
    let create = ["--json", "keys", "create", "--scope", "call", "--name", "small"];
    let created = haft(&workspace, &[&create, limits].concat()).run();
    assert_eq!(created.code, 0, "{}", created.stderr);
    let created: Value = serde_json::from_str(&created.stdout).unwrap();
    let key = created["key"].as_str().unwrap().to_owned();
    let program = haft(&workspace, &SERVE);
    (Served::run(workspace, Some(admin), program), key)
}

async fn post(served: &Served, key: &str, input: &str) -> Answer {
    let request = served.request_as(key, Method::POST, RUNS);
    let body = json!({"input": input}).to_string();
    answer(request.header("content-type", "application/json").body(body)).await
}

/// The model is offered the tools of the key's list, hears nothing of other servers, and a call beyond the list, a rule
/// or the rate fails.
#[tokio::test]
async fn a_run_sees_what_its_key_sees() {
    let model = ModelServer::openai([
        Step::call("fail", json!({})),
        Step::call("echo", json!({"n": 9})),
        Step::call("echo", json!({"n": 1})),
        Step::call("read_resource", json!({"uri": "test://static-text", "server": "far"})),
        Step::call("list_resources", json!({})),
        Step::call("echo", json!({"n": 2})),
        Step::text("Done."),
    ]);
    let limits = ["--tools", "echo,greet", "--rate", "1/h", "--burst", "4"];
    let (served, key) = served(&model, &limits);
    let run = post(&served, &key, "Look at @test://static-text").await;
    assert_eq!(run.status, 400, "a hidden server does not exist: {}", run.text);
    let run = post(&served, &key, "Go.").await;
    assert_eq!(run.status, 202, "{}", run.text);
    let run = run.json();
    assert_eq!(over(&served, &run).await["text"], "Done.");
    let asked = model.requests();
    for request in &asked {
        let mut names = request.tool_names();
        names.sort_unstable();
        assert_eq!(names, ["echo", "greet"]);
        assert!(!request.system().unwrap().contains("Far away."));
    }
    let results: Vec<String> = asked[1..].iter().map(AskedModel::last_result).collect();
    assert!(results[0].contains("UnknownTool") && !results[0].contains("wait"), "{results:#?}");
    assert!(results[1].contains("large numbers are not echoed"), "{results:#?}");
    assert!(results[2].contains("\"n\":1"), "{results:#?}");
    assert!(results[3].contains("no server lists the resource"), "{results:#?}");
    assert!(results[4].contains("there are no resources"), "{results:#?}");
    assert!(results[5].contains("RateLimited"), "{results:#?}");

    // The run is its key's own, and the rest of the service stays closed to it.
    let get = async |path: &str| answer(served.request_as(&key, Method::GET, path)).await.status;
    assert_eq!(get(&path(&run)).await, 200);
    assert_eq!(get(RUNS).await, 200);
    for path in ["/api/v1/conversations", "/api/v1/servers", "/api/v1/status"] {
        assert_eq!(get(path).await, 403, "{path}");
    }
}

/// A list of servers shows their tools, resources and instructions.
#[tokio::test]
async fn a_run_of_a_key_with_servers_uses_their_resources() {
    let model = ModelServer::openai([
        Step::call("read_resource", json!({"uri": "test://static-text"})),
        Step::text("Done."),
    ]);
    let (served, key) = served(&model, &["--servers", "far"]);
    let run = post(&served, &key, "Look at @test://static-text").await;
    assert_eq!(run.status, 202, "{}", run.text);
    over(&served, &run.json()).await;
    let mut names = model.last_request().tool_names();
    names.sort_unstable();
    assert_eq!(names, ["list_resources", "read_resource", "text"]);
    assert!(model.last_request().system().unwrap().contains("Far away."));
    let read = model.last_request().last_result();
    assert!(!read.contains("no server"), "{read}");
}
