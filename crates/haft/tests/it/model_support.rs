//! Helpers for the tests of models.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use haft_agent::model::{
    ChatMessage, ChatModel, ModelError, ModelEvent, ModelRequest, ModelTool, ModelTurn,
    RetryPolicy, open_with,
};
use serde_json::{Value, json};
use testkit::ModelServer;

use crate::config_support::native;

/// The key that the tests' services get. It does not look like one, so only who knows it can mask it.
pub const KEY: &str = "quiet-otter-47";

/// The model of a scripted server, with these lines under `agent`, tried again without waiting.
pub fn model(server: &ModelServer, lines: &str) -> Arc<dyn ChatModel> {
    open(&format!("{}{}", server.config(), indented(lines))).unwrap()
}

/// The model of a configuration; both keys are set.
pub fn open(config: &str) -> Result<Arc<dyn ChatModel>, ModelError> {
    open_in(config, &[("OPENAI_API_KEY", KEY), ("ANTHROPIC_API_KEY", KEY)])
}

/// The same with these variables.
pub fn open_in(
    config: &str,
    environment: &[(&str, &str)],
) -> Result<Arc<dyn ChatModel>, ModelError> {
    let config = native(config, environment).unwrap().agent;
    let retry = RetryPolicy::new(config.retries.value);
    open_with(&config, RetryPolicy { wait_first: Duration::ZERO, ..retry })
}

pub fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("  {}\n", line.trim_start())).collect()
}

/// A question with one message.
pub fn question(text: &str) -> ModelRequest {
    ModelRequest { messages: vec![ChatMessage::user(text)], ..ModelRequest::default() }
}

/// A tool with one optional and one required argument.
pub fn weather() -> ModelTool {
    ModelTool {
        name: "get_weather".to_owned(),
        description: "Tells the weather.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
            "required": ["city"],
        }),
    }
}

/// All events of the model.
pub async fn events(
    model: &Arc<dyn ChatModel>,
    request: ModelRequest,
) -> Vec<Result<ModelEvent, ModelError>> {
    model.ask(request).collect().await
}

/// The final turn.
pub async fn turn(model: &Arc<dyn ChatModel>, request: ModelRequest) -> ModelTurn {
    match events(model, request).await.pop() {
        Some(Ok(ModelEvent::Done(turn))) => *turn,
        other => panic!("the model did not finish: {other:?}"),
    }
}

/// The failure.
pub async fn failure(model: &Arc<dyn ChatModel>, request: ModelRequest) -> ModelError {
    match events(model, request).await.pop() {
        Some(Err(error)) => error,
        other => panic!("the model did not fail: {other:?}"),
    }
}

/// The arguments of a call, read.
pub fn read(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap()
}
