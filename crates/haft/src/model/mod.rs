//! A language model, as far as an agent needs one: messages and tools in, events out.

mod adapt;
mod failure;
mod message;
mod patience;
mod provider;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use serde::{Deserialize, Serialize};

use crate::config::agent::AgentConfig;

pub use message::{ChatMessage, ModelCall, ModelResult, ModelTool};
pub use patience::Patience;

/// The model that is configured, as patient as the configuration says. Nobody is asked yet: what can be
/// wrong here are the settings.
pub fn open(config: &AgentConfig) -> Result<Arc<dyn ChatModel>, ModelError> {
    open_with(config, Patience::new(config.retries.value))
}

/// The same with another patience.
pub fn open_with(
    config: &AgentConfig,
    patience: Patience,
) -> Result<Arc<dyn ChatModel>, ModelError> {
    let model = Arc::new(provider::ServiceModel::new(config)?);
    let turn_timeout = config.turn_timeout.value;
    Ok(Arc::new(patience::Patient { model, patience, turn_timeout }))
}

/// A language model.
pub trait ChatModel: Send + Sync + 'static {
    /// Its name, such as `openai::gpt-5`.
    fn name(&self) -> &str;

    /// Asks the model. Events come as it writes, the last one is [`ModelEvent::Done`]. An error is the
    /// last thing there is. Dropping the stream ends the request.
    fn ask(&self, request: ModelRequest) -> ModelStream;
}

/// What a model says, as it says it.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// One question to a model: everything it is to know.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// What it is told before everything else.
    pub system: Option<String>,
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// The tools it may call.
    pub tools: Vec<ModelTool>,
    /// How many tokens it may write.
    pub max_output_tokens: Option<u32>,
    /// How freely it writes.
    pub temperature: Option<f64>,
    /// Texts that end its answer.
    pub stop_sequences: Vec<String>,
}

/// A part of what a model says.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// A piece of its answer.
    Text(String),
    /// A piece of what it thinks, where it tells.
    Reasoning(String),
    /// The service failed for a passing reason and the request is made again: what was told so far, if
    /// anything, is void. It comes before the wait for the next try.
    Restarted {
        /// Why, and when it is asked again.
        reason: String,
    },
    /// It has finished.
    Done(Box<ModelTurn>),
}

/// Everything a model said to one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelTurn {
    /// Its answer.
    pub text: String,
    /// The tools it wants to call, in its order.
    pub calls: Vec<ModelCall>,
    /// What the provider wants to see again with the next request, word for word.
    pub kept: Option<serde_json::Value>,
    /// What it cost.
    pub usage: Usage,
    /// Why it stopped.
    pub stop: StopReason,
}

/// What a request cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StopReason {
    /// It had nothing more to say.
    #[default]
    End,
    /// It wants to call tools.
    Calls,
    /// Its answer became too long.
    Length,
    /// It, or its provider, refuses.
    Refused,
    /// Something else, in the provider's word.
    Other(String),
}

/// Why a model gave no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure it is.
    pub kind: ModelFailure,
    /// What happened to which thing, and why.
    pub message: String,
    /// What to do next.
    pub remedy: Option<String>,
}

/// Kinds of failure, as far as anybody acts on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelFailure {
    /// There is no model, no key, or the key is refused.
    Setup,
    /// The service cannot be reached, broke off, or fails: it may work in a while.
    Passing {
        /// When the service says to come again.
        retry_after: Option<Duration>,
    },
    /// The service does not take this request, and will not take it later.
    Rejected,
    /// The conversation is longer than the model can read.
    TooLong,
    /// The model takes no pictures, or not the ones it was sent.
    Pictures,
    /// What came back cannot be understood.
    Unreadable,
}
