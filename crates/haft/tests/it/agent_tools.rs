//! The tools the model is offered, and the execution of its calls.

use haft::live::Live;
use haft::{Config, FunctionTool, Runtime, ToolOutput};
use haft_agent::Conversation;
use serde_json::{Value, json};
use testkit::{ModelServer, Step};

use crate::agent_support::{agent, agent_of, ask, say, section};
use crate::mcp_support::{Stage, with};
use crate::support::{Held, until};

fn many(count: usize) -> Value {
    let mut tools: Vec<Value> = (0..count)
        .map(|n| json!({"name": format!("filler_{n}"), "description": format!("Polishes widget number {n}."),
                        "inputSchema": {"type": "object"}}))
        .collect();
    tools.push(json!({"name": "get_weather", "description": "Tells the current weather of a city.",
                      "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}));
    json!({ "tools": tools, "capabilities": {"tools": {}} })
}

/// Proves S2-FR-004: with more tools than `tools_max`, only those that fit the request are offered; a tool that was
/// used stays, and one who lacks something can always ask.
#[tokio::test]
async fn of_a_large_toolbox_the_best_are_offered() {
    let stage = Stage::new();
    let model = ModelServer::openai([
        Step::call("get_weather", json!({"city": "Seoul"})),
        Step::text("sunny"),
        Step::text("polished"),
    ]);
    let settings = json!({"agent": {"tools_max": 8}, "builtin": {}});
    let agent = agent(&stage, &model, [stage.stdio("one", many(200), json!({}))], settings).await;
    let mut conversation = Conversation::new();
    say(&agent, &mut conversation, "What is the weather in Seoul today?").await;
    let first = model.requests()[0].tool_names();
    assert_eq!(first.len(), 8);
    assert!(
        first.contains(&"get_weather".to_owned())
            && first.contains(&"request_human_input".to_owned())
    );
    say(&agent, &mut conversation, "Polish widget number 17.").await;
    let next = model.last_request().tool_names();
    assert_eq!(next.len(), 8);
    for tool in ["filler_17", "get_weather", "request_human_input"] {
        assert!(next.contains(&tool.to_owned()), "{tool} in {next:?}");
    }
}

/// Proves S2-FR-004: the last request decides, however long the earlier ones are; and with room for
/// one tool it is the best one.
#[tokio::test]
async fn the_last_request_decides_which_tools_are_offered() {
    let stage = Stage::new();
    let model = ModelServer::openai([Step::text("a log"), Step::text("sunny")]);
    let settings = json!({"agent": {"tools_max": 1}, "builtin": {}});
    let agent = agent(&stage, &model, [stage.stdio("one", many(200), json!({}))], settings).await;
    let mut conversation = Conversation::new();
    let log = "Polished widget number 3 again.\n".repeat(400);
    say(&agent, &mut conversation, &log).await;
    say(&agent, &mut conversation, "Now tell me the weather of Seoul.").await;
    assert_eq!(model.last_request().tool_names(), ["get_weather"]);
}

/// Proves S2-FR-004: a small toolbox is offered whole.
#[tokio::test]
async fn a_small_toolbox_is_offered_whole() {
    let stage = Stage::new();
    let model = ModelServer::openai([Step::text("yes")]);
    let agent = agent(&stage, &model, [stage.stdio("one", many(30), json!({}))], json!({})).await;
    ask(&agent, "Nothing in particular.").await;
    assert_eq!(model.last_request().tool_names().len(), 31);
}

/// Proves S2-US3-1, S2-US3-2: a tool that is added to the running toolbox is in the next request to the model, one
/// that is removed is not, and calling it is an unknown tool.
#[tokio::test]
async fn the_next_request_has_the_tools_of_now() {
    let stage = Stage::new();
    stage.workspace.write("tools/tools.json", r#"{"tools": []}"#);
    stage.workspace.write("tools/mcp.json", r#"{"mcp_servers": {}}"#);
    let model = ModelServer::openai([
        Step::text("one"),
        Step::text("two"),
        Step::call("hello_world", json!({})),
        Step::by(|asked| Step::text(asked.last_result())),
    ]);
    let own = json!({
        "log": {"dir": stage.path("logs")}, "state_dir": stage.path("state"),
        "registry": {"dir": stage.path("tools")}, "agent": section(&stage, &model, json!({})),
    });
    stage.workspace.write("haft.yaml", own.to_string());
    let options = haft::config::LoadOptions {
        files: vec![stage.path("haft.yaml")],
        cwd: stage.workspace.path().to_path_buf(),
        ..haft::config::LoadOptions::default()
    };
    let runtime = Runtime::start(Config::load(&options).unwrap()).await.unwrap();
    let live = Live::follow(runtime.clone(), options);
    let agent = agent_of(runtime.clone());
    let mut conversation = Conversation::new();
    say(&agent, &mut conversation, "one").await;
    assert!(model.last_request().tool_names().is_empty());
    stage.workspace.write("tools/hello.py", "def run(args):\n    return 'hello'\n");
    let entry = r#"{"tools": [{"name": "hello_world", "description": "Greets.", "type": "local", "input_schema": {"type": "object"},
                    "config": {"script_path": "hello.py"}}]}"#;
    stage.workspace.write("tools/tools.json", entry);
    until(|| runtime.tool("hello_world").is_some()).await;
    say(&agent, &mut conversation, "two").await;
    assert_eq!(model.last_request().tool_names(), ["hello_world"]);
    stage.workspace.write("tools/tools.json", r#"{"tools": []}"#);
    until(|| runtime.tool("hello_world").is_none()).await;
    let told = say(&agent, &mut conversation, "three").await;
    assert!(model.last_request().tool_names().is_empty());
    assert!(told.text().contains("no tool is named `hello_world`"), "{}", told.text());
    live.stop().await;
}

/// Proves S2-FR-013: of the calls in one answer, only those of tools that are `parallel_capable` run at the same
/// time. The answers go back in the order of the calls.
#[tokio::test]
async fn calls_run_together_only_where_their_tools_allow_it() {
    let stage = Stage::new();
    let calls = [
        ("wide", json!({})),
        ("wide", json!({"n": 1})),
        ("narrow", json!({})),
        ("narrow", json!({"n": 1})),
    ];
    let model = ModelServer::openai([Step::calls(calls), Step::text("done")]);
    let (wide, narrow) = (Held::new(), Held::new());
    let rest = with(
        json!({"tools": [{"name": "wide", "parallel_capable": true}, {"name": "narrow"}]}),
        json!({"agent": section(&stage, &model, json!({}))}),
    );
    let builder = stage.builder([], rest).tool(wide.tool("wide")).tool(narrow.tool("narrow"));
    let agent = agent_of(builder.start().await.unwrap());
    let release = async {
        wide.until_running(2).await;
        assert_eq!(narrow.total.load(std::sync::atomic::Ordering::SeqCst), 0);
        wide.release.add_permits(2);
        narrow.until_running(1).await;
        narrow.release.add_permits(2);
    };
    let (told, ()) = tokio::join!(ask(&agent, "go"), release);
    assert_eq!(told.text(), "done");
    assert_eq!((wide.most(), narrow.most()), (2, 1));
    let names: Vec<String> = model.last_request().results().into_iter().map(|it| it.text).collect();
    assert_eq!(names, ["done", "done", "done", "done"]);
}

/// Proves S3-EC-4: so does a long resource, and a long failure.
#[tokio::test]
async fn long_resources_and_failures_reach_the_model_with_a_mark() {
    let stage = Stage::new();
    let model = ModelServer::openai([
        Step::call("read_resource", json!({"uri": "note://long"})),
        Step::call("fail", json!({})),
        Step::text("seen"),
    ]);
    let scenario = json!({
        "tools": [], "resources": [{"uri": "note://long", "name": "long", "text": "word ".repeat(1000)}],
    });
    let rest = with(
        json!({"tools": [{"name": "fail"}], "defaults": {"output_bytes_max": 1000}}),
        json!({"agent": section(&stage, &model, json!({}))}),
    );
    let fail = FunctionTool::new("fail", "d", json!({"type": "object"}), |_, _| async {
        Ok(ToolOutput { is_error: true, ..ToolOutput::from_text("word ".repeat(1000)) })
    });
    let builder = stage.builder([stage.stdio("notes", scenario, json!({}))], rest).tool(fail);
    let agent = agent_of(builder.start().await.unwrap());
    ask(&agent, "go").await;
    let seen = model.last_request().results();
    assert_eq!(seen.len(), 2);
    for (result, logged) in seen.iter().zip(stage.logged()) {
        let text = &result.text;
        assert!(text.contains("4000 of 5000 bytes cut") && text.contains(&logged.execution_id));
        assert!(text.len() < 1200, "{text}");
    }
}

/// Proves S3-EC-4: a truncated result reaches the model with a marker that states how much is
/// missing and where the rest is.
#[tokio::test]
async fn long_answers_reach_the_model_with_a_mark() {
    let stage = Stage::new();
    let model = ModelServer::openai([Step::call("long", json!({})), Step::text("seen")]);
    let rest = json!({
        "tools": [{"name": "long"}], "defaults": {"output_bytes_max": 1000},
        "agent": section(&stage, &model, json!({})),
    });
    let long = FunctionTool::new("long", "d", json!({"type": "object"}), |_, _| async {
        Ok(ToolOutput::from_text("word ".repeat(1000)))
    });
    let agent = agent_of(stage.builder([], rest).tool(long).start().await.unwrap());
    ask(&agent, "go").await;
    let seen = model.last_request().last_result();
    let id = stage.logged()[0].execution_id.clone();
    assert!(
        seen.len() < 1200 && seen.contains("4000 of 5000 bytes cut") && seen.contains(&id),
        "{seen}"
    );
    assert_eq!(stage.logged()[0].session.as_ref().map(String::len), Some(36));
}

/// The note of a cut result names a tool that the model has from then on, and that gives the rest.
#[tokio::test]
async fn a_model_reads_on_in_a_cut_result() {
    let stage = Stage::new();
    let model = ModelServer::openai([
        Step::call("long", json!({})),
        Step::by(|asked| {
            let seen = asked.last_result();
            let arguments = seen.split("`read_output` with ").nth(1).unwrap();
            Step::call_raw("read_output", arguments.split_once(" to read on").unwrap().0)
        }),
        Step::text("seen"),
    ]);
    let rest = json!({
        "tools": [{"name": "long"}], "defaults": {"output_bytes_max": 1000},
        "agent": section(&stage, &model, json!({})),
    });
    let long = FunctionTool::new("long", "d", json!({"type": "object"}), |_, _| async {
        Ok(ToolOutput::from_text((0..300).map(|n| format!("word{n} ")).collect::<String>()))
    });
    let agent = agent_of(stage.builder([], rest).tool(long).start().await.unwrap());
    ask(&agent, "go").await;
    let requests = model.requests();
    let has_tool = |at: usize| requests[at].tool_names().contains(&"read_output".to_owned());
    assert_eq!((has_tool(0), has_tool(1), has_tool(2)), (false, true, true));
    let whole: String = (0..300).map(|n| format!("word{n} ")).collect();
    let part = requests[2].last_result();
    assert!(part.starts_with(&whole[1000..1500]), "{part}");
}
