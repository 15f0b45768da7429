//! An agent whose events are printed as they happen.
//!
//! Run it with `OPENAI_API_KEY=... cargo run -p haft-agent --example agent_events -- "add 2 and 3"`. `OPENAI_BASE_URL`
//! names another service that has OpenAI's API.

use std::time::Duration;

use haft::{ConfigBuilder, Content, Runtime, ToolFailure};
use haft_agent::model;
use haft_agent::{Agent, AgentEvent, AgentSettings, CancellationToken, Conversation};

/// Adds two numbers.
#[haft::tool]
async fn add(a: i64, b: i64) -> Result<i64, ToolFailure> {
    Ok(a + b)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let question = std::env::args().nth(1).unwrap_or_else(|| "add 2 and 3".to_owned());
    let mut config = ConfigBuilder::new()
        .folder("target/example-agent-events")
        .set("agent.model", "openai::gpt-5");
    if let Ok(url) = std::env::var("OPENAI_BASE_URL") {
        config = config.set("agent.base_url", url);
    }
    let runtime = Runtime::builder(config.build()?).tool(add()).start().await?;
    let config = runtime.config();
    let model = model::open(&config.agent)?;
    let agent = Agent::new(runtime.clone(), model, AgentSettings::from(&*config.agent));

    let listen = |event: AgentEvent| match event {
        AgentEvent::Text { text } => print!("{text}"),
        AgentEvent::ToolStarted { tool, arguments, .. } => println!("> {tool} {arguments}"),
        AgentEvent::ToolCompleted { tool, text, .. } => println!("< {tool}: {text}"),
        _ => {}
    };
    let said = vec![Content::text(question)];
    let cancel = CancellationToken::new();
    let turn = agent.turn(&mut Conversation::new(), said, &listen, &cancel).await?;
    println!("\n{:?} after {} steps", turn.end, turn.steps);
    runtime.shutdown(Duration::from_secs(2)).await;
    Ok(())
}
