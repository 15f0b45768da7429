//! `Envelope::into_result` and `Envelope::parse`: a call's result as a Rust `Result`.

use haft::{Code, ConfigBuilder, Envelope, FunctionTool, Runtime, ToolCall, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::Bench;

/// Returns its argument `data` as structured data, `text` as text, or nothing.
fn answer() -> impl haft::Tool {
    FunctionTool::new("answer", "Answers.", json!({"type": "object"}), |args, _| async move {
        Ok(match (args.get("data"), args["text"].as_str()) {
            (Some(data), _) => ToolOutput::from_json(data).unwrap(),
            (None, Some(text)) => ToolOutput::from_text(text),
            (None, None) => ToolOutput::default(),
        })
    })
    .with_default_limits()
}

async fn called(arguments: Value) -> Envelope {
    let bench = Bench::new();
    let config = ConfigBuilder::new().folder(bench.path()).build().unwrap();
    let runtime = Runtime::builder(config).tool(answer()).start().await.unwrap();
    runtime.call(ToolCall::new("answer", &arguments)).await
}

#[derive(Debug, PartialEq, Deserialize)]
struct Weather {
    temp: f64,
}

#[tokio::test]
async fn structured_data_becomes_the_type() {
    let envelope = called(json!({"data": {"temp": 21.5}})).await.into_result().unwrap();
    assert_eq!(envelope.error, None);
    assert_eq!(envelope.parse::<Weather>().unwrap(), Weather { temp: 21.5 });
}

#[tokio::test]
async fn json_in_a_text_becomes_the_type() {
    let envelope = called(json!({"text": r#"{"temp": 4}"#})).await;
    assert_eq!(envelope.parse::<Weather>().unwrap(), Weather { temp: 4.0 });
}

#[tokio::test]
async fn a_text_becomes_a_string_whatever_it_contains() {
    for text in ["Hello, Ada!", "5", "null"] {
        let envelope = called(json!({ "text": text })).await;
        assert_eq!(envelope.parse::<String>().unwrap(), text);
    }
}

#[tokio::test]
async fn a_result_of_another_form_is_an_error_that_names_the_execution() {
    let envelope = called(json!({"data": {"temp": "warm"}})).await;
    let id = envelope.execution_id.clone();
    let error = envelope.parse::<Weather>().unwrap_err();
    assert_eq!(error.code, Code::OutputValidationError);
    assert!(error.message.starts_with("the result of `answer` has another form: "), "{error}");
    assert!(error.remedy.unwrap().to_string().contains(&id));

    let error = called(json!({"text": "no weather"})).await.parse::<Weather>().unwrap_err();
    assert_eq!(error.code, Code::OutputValidationError);
}

#[tokio::test]
async fn the_error_of_a_call_passes_through_unmodified() {
    let bench = Bench::new();
    let config = ConfigBuilder::new().folder(bench.path()).build().unwrap();
    let runtime = Runtime::builder(config).tool(answer()).start().await.unwrap();
    let envelope = runtime.call(ToolCall::new("anwser", &json!({}))).await;
    let expected = envelope.error.clone().unwrap();
    assert_eq!(envelope.clone().into_result().unwrap_err(), expected);
    assert_eq!(envelope.parse::<Weather>().unwrap_err(), expected);
    assert_eq!(expected.code, Code::UnknownTool);
}
