//! A test of an agent with a scripted model: no key, no network, the same result each time.
//!
//! Run it with `cargo run -p haft-agent --example scripted_model`.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream;
use haft::{ConfigBuilder, Content, Runtime, ToolFailure};
use haft_agent::model::{
    ChatModel, ModelCall, ModelEvent, ModelRequest, ModelStream, ModelTurn, StopReason,
};
use haft_agent::{Agent, AgentSettings, CancellationToken, Conversation};
use parking_lot::Mutex;

/// A model that returns the next turn of its script to each request.
struct ScriptedModel(Mutex<VecDeque<ModelTurn>>);

impl ChatModel for ScriptedModel {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn ask(&self, _request: ModelRequest) -> ModelStream {
        let next = self.0.lock().pop_front();
        let turn = next.unwrap_or_default();
        Box::pin(stream::iter([Ok(ModelEvent::Done(Box::new(turn)))]))
    }
}

/// Adds two numbers.
#[haft::tool]
async fn add(a: i64, b: i64) -> Result<i64, ToolFailure> {
    Ok(a + b)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = ConfigBuilder::new().folder("target/example-scripted-model").build()?;
    let runtime = Runtime::builder(config).tool(add()).start().await?;

    let call = ModelCall {
        id: "1".to_owned(),
        name: "add".to_owned(),
        arguments: r#"{"a": 2, "b": 3}"#.to_owned(),
    };
    let calls = ModelTurn { calls: vec![call], stop: StopReason::Calls, ..ModelTurn::default() };
    let answers = ModelTurn { text: "It is 5.".to_owned(), ..ModelTurn::default() };
    let model = Arc::new(ScriptedModel(Mutex::new([calls, answers].into())));

    let settings = AgentSettings::from(&*runtime.config().agent);
    let agent = Agent::new(runtime, model, settings);
    let said = vec![Content::text("add 2 and 3")];
    let cancel = CancellationToken::new();
    let turn = agent.turn(&mut Conversation::new(), said, &|_| {}, &cancel).await?;
    assert_eq!((turn.text.as_str(), turn.steps), ("It is 5.", 2));
    println!("{}", turn.text);
    Ok(())
}
