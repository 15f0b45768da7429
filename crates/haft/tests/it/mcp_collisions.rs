//! Two tools with one name, from servers and from here.

use haft::{FunctionTool, StartError, ToolOutput};
use serde_json::{Value, json};
use testkit::LogCapture;

use super::mcp_support::{Server, Stage, answer, call, names, texts};

/// Two servers with the same tool, distinguished by its answer.
fn twins(stage: &Stage) -> [Server; 2] {
    ["first", "second"].map(|name| {
        let result = json!({"content": [{"type": "text", "text": name}], "structuredContent": {"from": name}});
        let tools = json!([{"name": "who", "inputSchema": {"type": "object"}, "result": result}]);
        stage.stdio(name, json!({ "tools": tools }), json!({}))
    })
}

async fn who(stage: &Stage, policy: Value) -> (Vec<String>, Vec<String>, Vec<Value>) {
    let (heard, _guard) = LogCapture::start();
    let runtime = stage.start(twins(stage), policy).await;
    let mut answers = Vec::new();
    for tool in names(&runtime) {
        answers.push(answer(&runtime, &tool, json!({})).await["from"].clone());
    }
    (names(&runtime), heard.from("WARNING"), answers)
}

/// Proves X-7: by default both are offered, the later with a prefix; one WARNING names the tool and both.
#[tokio::test]
async fn the_later_server_is_prefixed_by_default() {
    let stage = Stage::new();
    let (names, warnings, answers) = who(&stage, json!({})).await;
    assert_eq!(names, ["who", "second__who"]);
    assert_eq!(answers, [json!("first"), json!("second")]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in ["'who'", "'first'", "'second'", "tool_prefix: server"] {
        assert!(warnings[0].contains(part), "{warnings:?}");
    }
}

/// Proves S0-69, S0-92, X-7: `last_wins`; one WARNING names the tool and both.
#[tokio::test]
async fn the_later_server_wins_where_that_is_the_rule() {
    let stage = Stage::new();
    let (names, warnings, answers) =
        who(&stage, json!({"defaults": {"on_name_collision": "last_wins"}})).await;
    assert_eq!((names, answers), (vec!["who".to_owned()], vec![json!("second")]));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in ["'who'", "'first'", "'second'"] {
        assert!(warnings[0].contains(part), "{warnings:?}");
    }
}

/// Proves X-7: `first_wins`.
#[tokio::test]
async fn the_first_server_wins_where_that_is_the_rule() {
    let stage = Stage::new();
    let (names, warnings, answers) =
        who(&stage, json!({"defaults": {"on_name_collision": "first_wins"}})).await;
    assert_eq!((names, answers), (vec!["who".to_owned()], vec![json!("first")]));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

/// Proves X-7: `error` does not start.
#[tokio::test]
async fn a_collision_stops_the_start_where_that_is_the_rule() {
    let stage = Stage::new();
    let policy = json!({"defaults": {"on_name_collision": "error"}});
    let refused = stage.builder(twins(&stage), policy).start().await;
    let Err(StartError::Strict { texts }) = refused else { panic!("started") };
    assert_eq!(texts.len(), 1);
    assert!(texts[0].contains("who"), "{texts:?}");
}

/// Proves S0-70, X-7: a server's tool takes the place of a local one only if a file configures it.
#[tokio::test]
async fn a_servers_tool_wins_over_a_local_one_where_that_is_the_rule() {
    let tools = json!({"tools": [{"name": "who"}]});
    assert_eq!(local_and_server(tools.clone()).await, ["who: local", "first__who: first"]);
    let mut last_wins = tools;
    last_wins["defaults"] = json!({"on_name_collision": "last_wins"});
    assert_eq!(local_and_server(last_wins).await, ["who: first"]);
}

/// The answer of each tool, if a local one and one of the server `first` are both named `who`.
async fn local_and_server(policy: Value) -> Vec<String> {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let local: Box<dyn Fn() -> _> = Box::new(|| {
        FunctionTool::new("who", "Here.", json!({"type": "object"}), async |_, _| {
            Ok(ToolOutput::from_text("local"))
        })
    });
    let [first, _] = twins(&stage);
    let runtime = stage.builder([first], policy).tool(local()).start().await.unwrap();
    let mut answers = Vec::new();
    for name in names(&runtime) {
        let answer = call(&runtime, &name, json!({})).await;
        answers.push(format!("{name}: {}", texts(&answer).join(" ")));
    }
    let warnings = heard.from("WARNING");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("'who'") && warnings[0].contains("'first'"), "{warnings:?}");
    answers
}

/// Proves X-7: `tool_prefix: server`.
#[tokio::test]
async fn a_server_may_prefix_all_its_tools() {
    let stage = Stage::new();
    let scenario = json!({"tools": ["echo", "text"]});
    let server = stage.stdio("my server", scenario, json!({"tool_prefix": "server"}));
    let runtime = stage.start([server], json!({})).await;
    assert_eq!(names(&runtime), ["my-server__echo", "my-server__text"]);
    assert_eq!(answer(&runtime, "my-server__echo", json!({"n": 1})).await, json!({"n": 1}));
    assert_eq!(stage.messages("my server", "tools/call")[0]["params"]["name"], json!("echo"));
}
