//! Helpers for the agent's tests: a scripted model, a toolbox, and the events of a turn.

use std::sync::Mutex;

use haft::{Content, Runtime};
use haft_agent::model::{ModelError, open};
use haft_agent::{Agent, AgentEvent, AgentSettings, Conversation, Turn};
use serde_json::{Value, json};
use testkit::ModelServer;
use testkit::model::Format;
use tokio_util::sync::CancellationToken;

use crate::mcp_support::{Server, Stage, with};

/// Whole conversations are tried in both.
pub const FORMATS: [Format; 2] = [Format::OpenAi, Format::Anthropic];

/// The `agent` section that uses a scripted model, with more settings.
pub fn section(stage: &Stage, server: &ModelServer, settings: Value) -> Value {
    stage.workspace.write("key", "sk-test\n");
    let own = json!({
        "model": server.model(), "base_url": server.url(), "api_key_file": stage.path("key"), "retries": 0,
    });
    with(own, settings)
}

/// An agent with these servers; `rest` is the rest of the configuration, whose `agent` is added to.
pub async fn agent(
    stage: &Stage,
    server: &ModelServer,
    servers: impl IntoIterator<Item = Server>,
    mut rest: Value,
) -> Agent {
    let settings = rest.get("agent").cloned().unwrap_or_else(|| json!({}));
    rest["agent"] = section(stage, server, settings);
    let runtime = stage.start(servers, rest).await;
    agent_of(runtime)
}

/// The agent of a toolbox whose configuration names a model.
pub fn agent_of(runtime: Runtime) -> Agent {
    let config = runtime.config();
    let model = open(&config.agent).unwrap();
    Agent::new(runtime, model, AgentSettings::from(&*config.agent))
}

/// A turn and its events.
pub struct Followed {
    pub turn: Result<Turn, ModelError>,
    pub events: Vec<AgentEvent>,
}

impl Followed {
    /// The model's final text.
    pub fn text(&self) -> &str {
        match &self.turn {
            Ok(turn) => &turn.text,
            Err(error) => panic!("{error}"),
        }
    }

    /// Tool, whether it failed, and its text, for each call that is over.
    pub fn calls(&self) -> Vec<(&str, bool, &str)> {
        let completed = self.events.iter().filter_map(|event| match event {
            AgentEvent::ToolCompleted { tool, is_error, text, .. } => {
                Some((tool.as_str(), *is_error, text.as_str()))
            }
            _ => None,
        });
        completed.collect()
    }
}

/// Sends a message and waits for the end of the turn.
pub async fn say(agent: &Agent, conversation: &mut Conversation, text: &str) -> Followed {
    let events = Mutex::new(Vec::new());
    let tell = |event| events.lock().unwrap().push(event);
    let cancel = CancellationToken::new();
    let turn = agent.turn(conversation, vec![Content::text(text)], &tell, &cancel).await;
    Followed { turn, events: events.into_inner().unwrap() }
}

/// Sends a message in a new conversation.
pub async fn ask(agent: &Agent, text: &str) -> Followed {
    say(agent, &mut Conversation::new(), text).await
}
