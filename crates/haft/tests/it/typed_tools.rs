//! Rust functions as tools: typed arguments and results, and the attribute `#[haft::tool]`.

use haft::config::choices::Approval;
use haft::{
    Code, ConfigBuilder, Content, FunctionTool, Runtime, Status, Tool, ToolCall, ToolFailure,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::Bench;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    b: i64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Sum {
    sum: i64,
}

fn add() -> impl Tool {
    FunctionTool::typed("add", "Adds two numbers.", |args: Add| async move {
        let sum = args.a.checked_add(args.b);
        sum.map(|sum| Sum { sum }).ok_or_else(|| ToolFailure::execution("the sum is too large"))
    })
}

/// Repeats a string.
#[haft::tool]
async fn repeat(
    /// The string to repeat.
    text: String,
    #[serde(default = "twice")] times: usize,
) -> Result<String, ToolFailure> {
    Ok(text.repeat(times))
}

fn twice() -> usize {
    2
}

/// Returns no arguments.
///
/// It has a second paragraph.
#[haft::tool(name = "nothing")]
async fn without_arguments() -> Result<Option<bool>, ToolFailure> {
    Ok(None)
}

/// A toolbox whose configuration names no tool.
async fn started(bench: &Bench) -> Runtime {
    let config = ConfigBuilder::new().folder(bench.path()).build().unwrap();
    let builder = Runtime::builder(config).tool(add()).tool(repeat()).tool(without_arguments());
    builder.start().await.unwrap()
}

#[tokio::test]
async fn functions_need_no_entry_in_the_configuration() {
    let bench = Bench::new();
    let runtime = started(&bench).await;
    let tools = runtime.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["add", "repeat", "nothing"]);
    let setting = |key: &str| tools[0].config.iter().find(|it| it.key == key).unwrap();
    assert_eq!(setting("max_instances").value, json!(1));
    assert_eq!(setting("timeout").value, json!("30s"));
}

#[tokio::test]
async fn an_entry_in_the_configuration_wins_over_limits_set_in_rust() {
    let bench = Bench::new();
    let config = bench.config("tools: [{name: repeat, timeout: 3s}]");
    let tool = repeat().with_approval(Approval::Ask).with_max_instances(4);
    let runtime =
        Runtime::builder(config).tool(tool.with_timeout(std::time::Duration::from_secs(9))).start();
    let runtime = runtime.await.unwrap();
    let tools = runtime.tools();
    let setting = |key: &str| {
        let mut settings = tools[0].config.iter();
        settings.find(|it| it.key == key).map(|it| (it.value.clone(), it.from.clone())).unwrap()
    };
    assert_eq!(setting("timeout"), (json!("3s"), "haft.yaml:3:33".to_owned()));
    assert_eq!(setting("max_instances"), (json!(4), "set in Rust".to_owned()));
    assert_eq!(setting("approval"), (json!("ask"), "set in Rust".to_owned()));
}

#[tokio::test]
async fn schemas_and_descriptions_come_from_the_source() {
    let bench = Bench::new();
    let runtime = started(&bench).await;
    let tools = runtime.tools();
    assert_eq!(tools[0].description, "Adds two numbers.");
    assert_eq!(tools[0].input_schema["properties"]["a"]["description"], "The first number.");
    assert_eq!(tools[0].input_schema["required"], json!(["a", "b"]));
    let output = tools[0].output_schema.as_ref().unwrap();
    assert_eq!(output["properties"]["sum"]["type"], "integer");

    assert_eq!(tools[1].description, "Repeats a string.");
    let schema = &tools[1].input_schema;
    assert_eq!(schema["title"], "repeat");
    assert_eq!(schema["properties"]["text"]["description"], "The string to repeat.");
    assert_eq!(schema["properties"]["times"]["default"], 2);
    assert_eq!(schema["required"], json!(["text"]));
    assert_eq!(tools[1].output_schema, None, "a string has no schema");

    assert_eq!(tools[2].description, "Returns no arguments.\n\nIt has a second paragraph.");
    assert_eq!(tools[2].input_schema["type"], "object");
}

#[tokio::test]
async fn results_are_structured_data_or_text() {
    let bench = Bench::new();
    let runtime = started(&bench).await;
    let sum = runtime.call(ToolCall::new("add", &Add { a: 2, b: 3 })).await;
    assert_eq!(sum.data.as_ref().map(|data| data.get()), Some(r#"{"sum":5}"#));
    assert_eq!(sum.parse::<Sum>().unwrap(), Sum { sum: 5 });

    let text = runtime.call(ToolCall::new("repeat", &json!({"text": "ab"}))).await;
    assert_eq!((&text.data.is_none(), &text.content[..]), (&true, &[Content::text("abab")][..]));

    let nothing = runtime.call(ToolCall::new("nothing", &json!({}))).await;
    assert_eq!(nothing.status, Status::Success);
    assert_eq!(nothing.parse::<Option<bool>>().unwrap(), None);
}

#[tokio::test]
async fn arguments_that_do_not_match_are_refused_before_the_function_runs() {
    let bench = Bench::new();
    let runtime = started(&bench).await;
    let cases = [
        ("add", json!({"a": "two", "b": 3}), "/a"),
        ("add", json!({"a": 2}), ""),
        ("repeat", json!({"text": "a", "times": -1}), "/times"),
    ];
    for (tool, arguments, at) in cases {
        let error = runtime.call(ToolCall::new(tool, &arguments)).await.into_result().unwrap_err();
        assert_eq!(error.code, Code::ValidationError, "{error:?}");
        let pointers = error.details["violations"].as_array().unwrap();
        assert!(pointers.iter().any(|it| it["pointer"] == at), "{pointers:?}");
    }
}

#[tokio::test]
async fn a_failure_of_the_function_is_the_error_of_the_call() {
    let bench = Bench::new();
    let runtime = started(&bench).await;
    let call = ToolCall::new("add", &Add { a: i64::MAX, b: 1 });
    let error = runtime.call(call).await.into_result().unwrap_err();
    assert_eq!(error.code, Code::ToolExecutionError);
    assert!(error.message.contains("the sum is too large"), "{error}");
}

/// A number that only serde refuses: its schema has no upper limit.
#[derive(Deserialize, JsonSchema)]
struct Small {
    #[schemars(with = "u64")]
    value: u8,
}

#[tokio::test]
async fn arguments_that_only_the_type_refuses_fail_with_their_cause() {
    let bench = Bench::new();
    let config = ConfigBuilder::new().folder(bench.path()).build().unwrap();
    let tool = FunctionTool::typed("small", "Takes a small number.", |args: Small| async move {
        Ok(args.value)
    });
    let runtime = Runtime::builder(config).tool(tool).start().await.unwrap();
    let call = ToolCall::new("small", &json!({"value": 300}));
    let error = runtime.call(call).await.into_result().unwrap_err();
    assert_eq!(error.code, Code::ToolExecutionError);
    assert!(error.message.contains("the arguments of `small` cannot be used"), "{error}");
    let fits: Value =
        runtime.call(ToolCall::new("small", &json!({"value": 30}))).await.parse().unwrap();
    assert_eq!(fits, json!(30));
}
