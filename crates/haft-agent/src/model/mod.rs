//! A language model, as far as an agent needs one: messages and tools in, events out.

mod adapt;
mod failure;
mod message;
mod provider;
mod retry;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use serde::{Deserialize, Serialize};

use haft::config::agent::AgentConfig;

pub use message::{ChatMessage, ModelCall, ModelResult, ModelTool};
pub use retry::RetryPolicy;

/// Opens the configured model with the configured retry policy. Sends no request: only the settings
/// can fail here.
pub fn open(config: &AgentConfig) -> Result<Arc<dyn ChatModel>, ModelError> {
    open_with(config, RetryPolicy::new(config.retries.value))
}

/// The same with another patience.
pub fn open_with(
    config: &AgentConfig,
    policy: RetryPolicy,
) -> Result<Arc<dyn ChatModel>, ModelError> {
    let model = Arc::new(provider::ServiceModel::new(config)?);
    let turn_timeout = config.turn_timeout.value;
    Ok(Arc::new(retry::RetryingModel { model, policy, turn_timeout }))
}

/// A language model.
pub trait ChatModel: Send + Sync + 'static {
    /// Its name, such as `openai::gpt-5`.
    fn name(&self) -> &str;

    /// Asks the model. Events come as it writes, the last one is [`ModelEvent::Done`]. An error is the
    /// last thing there is. Dropping the stream ends the request.
    fn ask(&self, request: ModelRequest) -> ModelStream;
}

/// The events of an answer.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// One question to a model: everything it is to know.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// The system prompt.
    pub system: Option<String>,
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// The tools it may call.
    pub tools: Vec<ModelTool>,
    /// Maximum number of tokens in the answer.
    pub max_output_tokens: Option<u32>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// Strings that end its answer.
    pub stop_sequences: Vec<String>,
}

/// An event of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// A piece of its answer.
    Text(String),
    /// A piece of its reasoning, if the provider sends it.
    Reasoning(String),
    /// The service failed transiently and the request is retried: the events so far, if any, are
    /// void. Sent before the wait for the next attempt.
    Restarted {
        /// The reason, and the time of the retry.
        reason: String,
    },
    /// It has finished.
    Done(Box<ModelTurn>),
}

/// The complete answer to one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelTurn {
    /// Its answer.
    pub text: String,
    /// Its tool calls, in order.
    pub calls: Vec<ModelCall>,
    /// State that the provider expects back unmodified with the next request.
    pub provider_state: Option<serde_json::Value>,
    /// Tokens used.
    pub usage: Usage,
    /// The stop reason.
    pub stop: StopReason,
}

/// Tokens used by a request.
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

/// The stop reason of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StopReason {
    /// The answer is complete.
    #[default]
    End,
    /// It calls tools.
    Calls,
    /// Its answer became too long.
    Length,
    /// It, or its provider, refuses.
    Refused,
    /// Something else, in the provider's word.
    Other(String),
}

/// The failure of a model request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind of failure.
    pub kind: ModelFailure,
    /// The failure, the item it concerns, and the cause.
    pub message: String,
    /// The remedy.
    pub remedy: Option<String>,
}

/// Kinds of failure that callers distinguish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelFailure {
    /// The model or key is missing, or the key is rejected.
    Setup,
    /// The service cannot be reached, broke off, or fails: it may work in a while.
    Passing {
        /// The retry delay that the service requested.
        retry_after: Option<Duration>,
    },
    /// The service does not take this request, and will not take it later.
    Rejected,
    /// The conversation is longer than the model can read.
    TooLong,
    /// The model accepts no images, or not those it received.
    Images,
    /// The answer is unreadable.
    Unreadable,
}
