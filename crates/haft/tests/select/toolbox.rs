//! Choosing among the tools of a running toolbox.

use haft::select::Decision;
use haft::{Config, FunctionTool, Runtime, ToolOutput};
use serde_json::json;

pub fn function(
    name: &str,
    description: &str,
) -> FunctionTool<impl Fn(serde_json::Value, haft::CallContext) -> Answer + use<>> {
    FunctionTool::new(name, description, json!({"type": "object"}), |_, _| {
        Box::pin(async { Ok(ToolOutput::from_text("done")) }) as Answer
    })
}

type Answer = std::pin::Pin<Box<dyn Future<Output = Result<ToolOutput, haft::ToolFailure>> + Send>>;

/// A folder with two entries in `tools.json`, one of them with examples.
fn folder(beta_examples: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, beta_examples);
    std::fs::write(folder.path().join("mcp.json"), r#"{"mcp_servers": {}}"#).unwrap();
    std::fs::write(folder.path().join("a.py"), "def run(args):\n    return 1\n").unwrap();
    folder
}

fn write(folder: &tempfile::TempDir, beta_examples: &str) {
    let entry = |name: &str, more: &str| {
        format!(
            r#"{{"name": "{name}", "type": "local", "input_schema": {{"type": "object"}}, "description": "System {name}.", "config": {{"script_path": "a.py"}}{more}}}"#
        )
    };
    let beta = format!(r#", "examples": {beta_examples}"#);
    let text = format!(r#"{{"tools": [{}, {}]}}"#, entry("alpha", ""), entry("beta", &beta));
    std::fs::write(folder.path().join("tools.json"), text).unwrap();
}

fn config(folder: &tempfile::TempDir, more: &str) -> Config {
    let dir = folder.path().display();
    let text = format!(
        "registry: {{dir: '{dir}'}}\nlog: {{dir: '{dir}/logs'}}\nstate_dir: '{dir}/state'\n{more}"
    );
    Config::from_yaml(&text).unwrap()
}

async fn first(runtime: &Runtime, request: &str) -> String {
    runtime.select(request, 1).await.remove(0).tool
}

const HOLIDAYS: &str = "how many days of holiday are left for me";

/// Proves S2-FR-004: examples of `tools.json` count, and a change is seen by the next request.
#[tokio::test]
async fn examples_in_tools_json_are_used_and_follow_changes() {
    let folder = folder(r#"["How many holidays do I have left?"]"#);
    let runtime = Runtime::start(config(&folder, "")).await.unwrap();
    assert_eq!(first(&runtime, HOLIDAYS).await, "beta");
    write(&folder, r#"["Water the plants"]"#);
    let alpha = "tools: [{name: alpha, examples: ['How many holidays do I have left?']}]";
    runtime.apply(config(&folder, alpha)).await.unwrap();
    assert_eq!(first(&runtime, HOLIDAYS).await, "alpha");
    assert_eq!(first(&runtime, "please water my plants").await, "beta");
    runtime.shutdown(std::time::Duration::ZERO).await;
}

/// Examples are shown with the other settings, and must be a list of strings.
#[tokio::test]
async fn examples_are_checked_and_shown() {
    let folder = folder("[]");
    let shown =
        haft::config::show::rows(&config(&folder, "tools: [{name: alpha, examples: [One, Two]}]"));
    let row = shown.iter().find(|row| row.path == "tools.alpha.examples").unwrap();
    assert_eq!(row.value, json!(["One", "Two"]));
    let wrong = Config::from_yaml("tools: [{name: alpha, examples: {a: 1}}]").unwrap_err();
    assert!(wrong.to_string().contains("examples"), "{wrong}");
}

/// Tools of Rust programs bring their examples with them.
#[tokio::test]
async fn functions_bring_examples() {
    let folder = folder("[]");
    let config = config(&folder, "tools: [{name: gamma}, {name: delta}]");
    let runtime = Runtime::builder(config)
        .tool(function("gamma", "System C."))
        .tool(function("delta", "System D.").with_examples(&["How many holidays do I have left?"]))
        .start()
        .await
        .unwrap();
    assert_eq!(first(&runtime, HOLIDAYS).await, "delta");
    assert_eq!(runtime.decide("Hello, nice to meet you!", 3).await, Decision::NoTool);
    let Decision::UseTool { ranked } =
        runtime.decide("How many holidays have I left this summer?", 2).await
    else {
        panic!("no tool")
    };
    assert_eq!(ranked.len(), 2);
    runtime.shutdown(std::time::Duration::ZERO).await;
}

/// Among some of the tools, the others do not exist: neither in the ranking nor in whether anything fits.
#[tokio::test]
async fn a_part_of_the_tools_is_chosen_from_as_if_there_were_no_others() {
    let folder = folder("[]");
    let config = config(&folder, "tools: [{name: send_email}, {name: get_weather}]");
    let runtime = Runtime::builder(config)
        .tool(function("send_email", "Sends an email to somebody."))
        .tool(function("get_weather", "Tells the weather of a city."))
        .start()
        .await
        .unwrap();
    let names = |ranked: &[haft::select::Ranked]| -> Vec<String> {
        ranked.iter().map(|it| it.tool.clone()).collect()
    };
    let request = "send an email to my colleague";
    let whole = runtime.choose_among(request, 1, |_, _| true).await;
    assert_eq!((whole.fits, names(&whole.ranked)), (true, vec!["send_email".to_owned()]));
    for _ in 0..2 {
        let part = runtime.choose_among(request, 9, |_, name| name == "get_weather").await;
        assert_eq!((part.fits, names(&part.ranked)), (false, vec!["get_weather".to_owned()]));
        let asked = runtime.choose_among("what is the weather in Seoul?", 9, |server, name| {
            server.is_none() && name == "get_weather"
        });
        assert!(asked.await.fits);
    }
    let nothing = runtime.choose_among(request, 9, |_, _| false).await;
    assert_eq!((nothing.fits, nothing.ranked.len()), (false, 0));
    runtime.shutdown(std::time::Duration::ZERO).await;
}
