//! Tools of a run's model: tools that come and go, servers' tools, sampling, other models.

use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;
use testkit::model::{ModelServer, Step};

use crate::agent::{RUNS, begin, over, path, run, workspace};
use crate::faults::until;
use crate::served::{SERVE, Served, haft};

fn tools_on_disk(served: &Served) -> Vec<Value> {
    let file: Value =
        serde_json::from_str(&served.workspace.read("tools/tools.json").unwrap()).unwrap();
    file["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect()
}

async fn tools_listed(served: &Served) -> Vec<Value> {
    let tools = served.get("/api/v1/tools").await.json()["tools"].clone();
    tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect()
}

/// Proves S2-US3-1 and S2-US3-2 over the API: a tool that is registered during a run is in its next request, a
/// removed one is not, and calling it is an error for the model.
#[tokio::test]
async fn tools_come_and_go_between_two_requests() {
    let wait =
        |answer: &'static str| Step::call("request_human_input", json!({"question": answer}));
    let model = ModelServer::openai([
        wait("before"),
        Step::call("hello_world", json!({"name": "Ada"})),
        wait("between"),
        Step::call("hello_world", json!({"name": "Ada"})),
        Step::text("Gone."),
    ]);
    let workspace = workspace(&model, crate::agent::HUMAN);
    workspace.write(
        "tools/hello_world.py",
        "def run(args):\n    return {'said': f\"Hello {args['name']}\"}\n",
    );
    let served = Served::with_admin(workspace);
    let going = begin(&served, json!({"input": "Say hello."})).await;
    let resume = async || {
        let question = crate::agent::questions(&served, &going, 1).await.remove(0);
        assert_eq!(crate::agent::say(&served, &question, json!("ok")).await.status, 200);
        question["question"].clone()
    };
    let offered = |at: usize| model.requests()[at].tool_names().contains(&"hello_world".to_owned());

    crate::agent::questions(&served, &going, 1).await;
    let entry = json!({"name": "hello_world", "description": "Says hello.", "type": "local",
        "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "config": {"script_path": "hello_world.py"}});
    let added = served.post("/api/v1/tools", &entry.to_string()).await;
    assert_eq!(added.status, 201, "{}", added.text);
    assert!(tools_on_disk(&served).contains(&json!("hello_world")));
    assert!(tools_listed(&served).await.contains(&json!("hello_world")));
    assert_eq!(resume().await, "before");
    until("the second question", async || {
        (served.get(&path(&going)).await.json()["questions"][0]["question"] == "between")
            .then_some(())
    })
    .await;
    assert!(!offered(0) && offered(1) && offered(2));
    assert!(model.requests()[2].last_result().contains("Hello Ada"));

    assert_eq!(served.delete("/api/v1/tools/hello_world").await.status, 204);
    assert!(!tools_on_disk(&served).contains(&json!("hello_world")));
    assert!(!tools_listed(&served).await.contains(&json!("hello_world")));
    assert_eq!(resume().await, "between");
    let run = over(&served, &going).await;
    assert_eq!(run["text"], "Gone.");
    assert!(!offered(3) && !offered(4));
    let told = model.last_request().last_result();
    assert!(told.contains("hello_world") && told.contains("the tools are"), "{told}");
    let last = served.log().pop().unwrap();
    assert_eq!(last["error"]["code"], "UnknownTool");
}

/// A server that is the fixture.
fn fixture(scenario: &Value, sampling: &str) -> Value {
    json!({"command": Fixture::path(), "args": Fixture::stdio_args(scenario), "mode": "dynamic",
        "sampling": sampling})
}

/// Waits until all servers are there.
async fn until_connected(served: &Served) {
    until("every server is connected", async || {
        let servers = served.get("/api/v1/servers").await.json()["servers"].clone();
        servers.as_array()?.iter().all(|server| server["state"] == "ready").then_some(())
    })
    .await;
}

/// Proves S1-1 and S1-13 for `serve`: the tools of every server stand beside the local ones in the request to
/// the model, and it can call them.
#[tokio::test]
async fn the_tools_of_every_server_reach_the_model() {
    let model = ModelServer::openai([
        Step::call("text", json!({})),
        Step::by(|asked| Step::text(asked.last_result())),
    ]);
    let servers = json!({"one": fixture(&json!({"tools": ["text"]}), "deny"),
        "two": fixture(&json!({"tools": ["progress"]}), "deny")});
    let served = Served::open(workspace(&model, &format!("servers: {servers}\n")));
    until_connected(&served).await;
    let run = run(&served, "Say something.").await;
    assert_eq!(run["status"], "completed", "{run}");
    let offered: Vec<Value> =
        model.requests()[0].tool_names().into_iter().map(Value::from).collect();
    let listed = tools_listed(&served).await;
    for name in ["greet", "echo", "fail", "wait", "text", "progress"] {
        let name = json!(name);
        assert!(offered.contains(&name) && listed.contains(&name), "{name} in {offered:?}");
    }
    assert!(listed.iter().all(|tool| offered.contains(tool)), "{listed:?}, {offered:?}");
    assert_eq!(served.log()[0]["status"], "success");
}

/// Proves S1-13: a server that starts only when it is needed is asked for its tools before the model is.
#[tokio::test]
async fn the_tools_of_a_late_server_reach_the_model() {
    let model = ModelServer::openai([Step::text("Seen.")]);
    let mut late = fixture(&json!({"tools": ["progress"]}), "deny");
    late["start"] = json!("lazy");
    let servers = json!({"late": late, "gone": {"command": "no-such-program", "start": "lazy"}});
    let served = Served::open(workspace(&model, &format!("servers: {servers}\n")));
    assert_eq!(run(&served, "What is there?").await["text"], "Seen.");
    let offered = model.last_request().tool_names();
    assert!(offered.contains(&"progress".to_owned()), "{offered:?}");
}

/// Proves S3-EC-9: a server that may asks the configured model; with `ask` a person agrees first.
#[tokio::test]
async fn a_server_asks_the_model_of_the_service() {
    for sampling in ["allow", "ask", "deny"] {
        let model = ModelServer::openai([Step::call("sample", json!({"message": "Say hello."}))]);
        if sampling != "deny" {
            model.then([Step::text("Hello from the model.")]);
        }
        model.then([Step::by(|asked| Step::text(asked.last_result()))]);
        let servers =
            json!({"far": fixture(&json!({"era": "legacy", "tools": ["sample"]}), sampling)});
        let served = Served::open(workspace(&model, &format!("servers: {servers}\n")));
        until_connected(&served).await;
        let going = begin(&served, json!({"input": "Sample."})).await;
        if sampling == "ask" {
            let item = until("a question", async || {
                served.get("/api/v1/inbox").await.json()["items"].as_array()?.first().cloned()
            })
            .await;
            assert_eq!((&item["kind"], &item["server"]), (&json!("sampling"), &json!("far")));
            assert_eq!(model.requests().len(), 1, "the model was asked before a person agreed");
            assert_eq!(crate::agent::say(&served, &item, json!("allow")).await.status, 200);
        }
        let run = over(&served, &going).await;
        let told = run["text"].as_str().unwrap_or_else(|| panic!("{run}"));
        if sampling == "deny" {
            assert!(told.contains("sampling") && model.requests().len() == 2, "{told}");
            continue;
        }
        assert!(told.contains("Hello from the model."), "{sampling}: {told}");
        let sampled = &model.requests()[1];
        assert_eq!(sampled.last_user_text(), "Say hello.");
        assert_eq!(sampled.tool_names(), [] as [&str; 0]);
    }
}

/// Another model in the file is the one of the next run, and of servers that ask from then on.
#[tokio::test]
async fn a_new_model_holds_for_the_next_run() {
    let old = ModelServer::openai([Step::text("old")]);
    let new = ModelServer::anthropic([
        Step::call("sample", json!({"message": "Say hello."})),
        Step::text("sampled anew"),
        Step::by(|asked| Step::text(asked.last_result())),
    ]);
    let servers = json!({"far": fixture(&json!({"era": "legacy", "tools": ["sample"]}), "allow")});
    let served = Served::with_admin(workspace(&old, &format!("servers: {servers}\n")));
    until_connected(&served).await;
    let first = run(&served, "Which?").await;
    assert_eq!((&first["model"], &first["text"]), (&json!("openai::scripted"), &json!("old")));
    let text = served.workspace.read("haft.yaml").unwrap().replace(&old.config(), &new.config());
    served.workspace.write("haft.yaml", text);
    assert_eq!(served.post("/api/v1/reload", "").await.status, 200);
    let second = run(&served, "Which?").await;
    assert_eq!(second["model"], "anthropic::scripted");
    assert!(second["text"].as_str().is_some_and(|text| text.contains("sampled anew")), "{second}");
    assert_eq!(old.requests().len(), 1);
}

/// Mentioned resources are read first and sent to the model. A timeout prevents the run, and other runs continue
/// meanwhile.
#[tokio::test]
async fn a_run_begins_with_what_it_mentions() {
    let model = ModelServer::openai([Step::text("Read."), Step::text("Meanwhile.")]);
    let resources = json!([{"uri": "test://note", "name": "note", "text": "The code is 4711."}]);
    let scenario = json!({"tools": ["text"], "resources": resources});
    let mut silent = fixture(
        &json!({"tools": ["text"], "resources": resources, "silent_on": ["resources/read"]}),
        "deny",
    );
    silent["request_timeout"] = json!("500ms");
    let servers = json!({"near": fixture(&scenario, "deny"), "silent": silent});
    let served = Served::open(workspace(&model, &format!("servers: {servers}\n")));
    until_connected(&served).await;
    run(&served, "What is in @near:test://note?").await;
    let said = Value::from(model.last_request().messages().to_vec()).to_string();
    assert!(said.contains("The code is 4711."), "{said}");
    let hanging = served.post(RUNS, r#"{"input": "And in @silent:test://note?"}"#);
    let (refused, other) = tokio::join!(hanging, run(&served, "Hi"));
    assert_eq!((refused.status, &other["text"]), (400, &json!("Meanwhile.")), "{}", refused.text);
    assert_eq!(served.get(RUNS).await.json()["runs"].as_array().unwrap().len(), 2);
}

/// A service executes code only if a file permits it.
#[tokio::test]
async fn code_execution_is_offered_only_if_a_file_permits_it() {
    for (yaml, is_offered) in
        [("", false), ("builtin: {}\n", false), ("builtin: {code_execution: {}}\n", true)]
    {
        let model = ModelServer::openai([Step::text("Fine.")]);
        let workspace: Workspace = workspace(&model, yaml);
        let program = haft(&workspace, &SERVE).with_builtins();
        let served = Served::run(workspace, None, program);
        run(&served, "Hi").await;
        let offered = model.last_request().tool_names();
        assert_eq!(
            offered.contains(&"code_execution".to_owned()),
            is_offered,
            "{yaml}: {offered:?}"
        );
    }
}
