//! Registration as a running toolbox shows it: functions in Rust, scripts, the memory on disk.

use std::path::Path;

use haft::registry::KnownTools;
use haft::{
    CallError, Config, FunctionTool, Runtime, StartError, Status, Tool, ToolCall, ToolOutput,
};
use serde_json::{Value, json};
use testkit::LogCapture;

/// A native file whose log and memory lie in `folder`.
fn config(folder: &Path, text: &str) -> Config {
    let (log, state) = (folder.join("logs"), folder.join("state"));
    let text = format!("log: {{dir: {}}}\nstate_dir: {}\n{text}", json!(log), json!(state));
    Config::from_yaml(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// Adds the numbers it is given.
fn sum_numbers() -> impl Tool {
    let schema = json!({
        "type": "object",
        "properties": {"numbers": {"type": "array", "items": {"type": "integer"}}},
        "required": ["numbers"],
    });
    FunctionTool::new("sum_numbers", "Adds numbers.", schema, |args: Value, _| async move {
        let numbers = args["numbers"].as_array().cloned().unwrap_or_default();
        let sum: i64 = numbers.iter().filter_map(Value::as_i64).sum();
        Ok(ToolOutput::from_text(sum.to_string()))
    })
}

/// Proves S0-24, S0-52, S0-55, S0-85: a function without an entry stops the start, with the text
/// and an ERROR in the log.
#[tokio::test]
async fn a_function_without_an_entry_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "tools: [{name: get}, {name: put}]");
    let (heard, guard) = LogCapture::start();
    let started = Runtime::builder(config).tool(sum_numbers()).start().await;
    drop(guard);
    let Err(error) = started else { panic!("it started") };
    let text = "Tool 'sum_numbers' (local tool) is not configured in the toolbox.\n\n\
                Configured tools: [get, put]\n\n\
                Local tools must always be explicitly configured in myai.toolbox.tools.\n\
                To resolve: add an entry with `name: sum_numbers` to the tools in your \
                configuration";
    assert_eq!(error.to_string(), text);
    let StartError::Strict { texts } = error else { panic!("{error:?}") };
    assert_eq!(texts, [text]);
    assert!(heard.lines().contains(&format!("ERROR: {text}")));
    assert!(!folder.path().join("state").exists(), "nothing is remembered");
}

/// Proves S0-24: every function that lacks an entry is named at once.
#[tokio::test]
async fn every_function_without_an_entry_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "");
    let other = FunctionTool::new("now", "The time.", json!({}), |_, _| async {
        Ok(ToolOutput::default())
    });
    let builder = Runtime::builder(config).tool(sum_numbers()).tool(other);
    let Err(StartError::Strict { texts }) = builder.start().await else { panic!("it started") };
    let first_lines: Vec<_> = texts.iter().filter_map(|text| text.lines().next()).collect();
    assert_eq!(
        first_lines,
        [
            "Tool 'sum_numbers' (local tool) is not configured in the toolbox.",
            "Tool 'now' (local tool) is not configured in the toolbox.",
        ]
    );
}

/// Proves S0-23, S0-53, S0-55 (local configured).
#[tokio::test]
async fn a_function_with_an_entry_is_offered_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let entry = "tools:\n  - {name: sum_numbers, max_instances: 20}";
    let config = config(folder.path(), entry);
    let runtime = Runtime::builder(config).tool(sum_numbers()).start().await.unwrap();
    let [info] = &runtime.tools()[..] else { panic!("{:?}", runtime.tools()) };
    let setting = |key: &str, value: Value, origin: &str, from: &str| json!({"key": key, "value": value, "origin": origin, "from": from});
    assert_eq!(
        serde_json::to_value(info).unwrap(),
        json!({
            "name": "sum_numbers",
            "description": "Adds numbers.",
            "source": "local",
            "kind": "function",
            "input_schema": sum_numbers().definition().input_schema,
            "output_schema": null,
            "config_origin": "explicit",
            "config": [
                setting("max_instances", json!(20), "explicit", "haft.yaml:4:40"),
                setting("timeout", json!("30s"), "default", "default"),
                setting("parallel_capable", json!(true), "default", "max_instances above 1"),
                setting("approval", json!("auto"), "default", "default"),
                setting("on_limit", json!("wait"), "default", "default"),
            ],
        })
    );

    let call = ToolCall::new("sum_numbers", &json!({"numbers": [1, 2, 3]}));
    let answer = runtime.call(call).await;
    assert_eq!(answer.status, Status::Success, "{answer:?}");
    assert_eq!(answer.content, [haft::Content::text("6")]);
    runtime.shutdown(std::time::Duration::ZERO).await;
}

/// Proves S0-24 (reload): what cannot start does not replace what runs.
#[tokio::test]
async fn a_new_configuration_without_the_entry_leaves_the_old_one_running() {
    let folder = tempfile::tempdir().unwrap();
    let with = config(folder.path(), "tools: [{name: sum_numbers}]");
    let without = config(folder.path(), "tools: []");
    let runtime = Runtime::builder(with).tool(sum_numbers()).start().await.unwrap();
    let refused = runtime.apply(without).await;
    assert!(matches!(refused, Err(StartError::Strict { .. })), "{refused:?}");
    let call = ToolCall::new("sum_numbers", &json!({"numbers": [4]}));
    assert_eq!(runtime.call(call).await.content, [haft::Content::text("4")]);
    runtime.shutdown(std::time::Duration::ZERO).await;
}

/// Proves S0-30 (as a call sees it): a tool that is configured but not there is unknown.
#[tokio::test]
async fn a_configured_tool_that_nothing_provides_is_unknown_to_a_caller() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "tools: [{name: ghost}, {name: sum_numbers}]");
    let (heard, guard) = LogCapture::start();
    let runtime = Runtime::builder(config).tool(sum_numbers()).start().await.unwrap();
    drop(guard);
    let warning = "Tool 'ghost' is configured but nothing provides it: no server and no local tool \
                   has that name";
    assert!(heard.lines().contains(&format!("WARNING: {warning}")));
    let answer = runtime.call(ToolCall::new("ghost", &json!({}))).await;
    let unknown = CallError::UnknownTool { tool: "ghost".to_owned(), nearest: None };
    assert_eq!(answer.error.unwrap().message, unknown.to_string());
    runtime.shutdown(std::time::Duration::ZERO).await;
}

/// A script and a function of one name under a switch; what a call answers, under each name.
async fn script_and_function(rule: &str) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let script = json!({"tools": [{
        "name": "sum_numbers",
        "description": "Says who it is.",
        "type": "local",
        "input_schema": {"type": "object"},
        "config": {"runtime": "command", "command": ["echo", "script"]},
    }]});
    let registry = folder.path().join("registry");
    std::fs::create_dir(&registry).expect("a folder");
    std::fs::write(registry.join("tools.json"), script.to_string()).expect("the tools");
    std::fs::write(registry.join("mcp.json"), "{\"mcp_servers\": {}}").expect("the servers");
    let config = config(
        folder.path(),
        &format!(
            "registry: {{dir: {}}}\ndefaults: {{on_name_collision: {rule}}}\n\
             tools: [{{name: sum_numbers}}]",
            json!(registry)
        ),
    );
    let runtime = Runtime::builder(config).tool(sum_numbers()).start().await.expect("it starts");
    let mut answers = Vec::new();
    for tool in runtime.tools() {
        let call = ToolCall::new(&tool.name, &json!({"numbers": [1, 2]}));
        let answer = runtime.call(call).await;
        let [haft::Content::Text { text }] = &answer.content[..] else { panic!("{answer:?}") };
        answers.push((tool.description, text.trim().to_owned()));
    }
    runtime.shutdown(std::time::Duration::from_secs(5)).await;
    answers
}

/// Proves X-7 (among local tools): what is described is what runs.
#[tokio::test]
async fn of_a_function_and_a_script_of_one_name_the_one_that_is_offered_runs() {
    let answer = |description: &str, text: &str| vec![(description.to_owned(), text.to_owned())];
    assert_eq!(script_and_function("last_wins").await, answer("Says who it is.", "script"));
    assert_eq!(script_and_function("first_wins").await, answer("Adds numbers.", "3"));
    assert_eq!(script_and_function("prefix").await, answer("Says who it is.", "script"));
}

/// Proves S0-38 (a damaged memory): it is a warning, the toolbox starts.
#[tokio::test]
async fn a_damaged_memory_is_a_warning_and_the_toolbox_starts() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("known-tools.json"), "{").unwrap();
    assert!(KnownTools::load(&state).is_err());
    let config = config(folder.path(), "tools: [{name: sum_numbers}]");
    let (heard, guard) = LogCapture::start();
    let runtime = Runtime::builder(config).tool(sum_numbers()).start().await.unwrap();
    drop(guard);
    let expected = format!(
        "WARNING: what earlier runs saw of the servers cannot be read in `{}`: EOF while parsing an object \
         at line 1 column 1",
        state.display()
    );
    assert!(heard.lines().contains(&expected), "{:?}", heard.lines());
    assert_eq!(runtime.tools().len(), 1);
    runtime.shutdown(std::time::Duration::ZERO).await;
}
