//! One turn, from the top: add the user message, call the model, run its calls, and repeat until it
//! answers.

use futures_util::StreamExt;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::Agent;
use super::budget::{self, Budget};
use super::calls::Calls;
use super::conversation::Conversation;
use super::event::AgentEvent;
use super::repeat::Repeats;
use crate::model::{
    ChatMessage, ModelCall, ModelError, ModelEvent, ModelFailure, ModelRequest, ModelResult,
    ModelTool, ModelTurn, StopReason, Usage,
};
use haft::Content;
use haft_text::printable;

/// Maximum number of retries with a shorter request.
const AGAIN_MAX: u32 = 5;

/// The result of a turn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Turn {
    /// The model's answer; what there was of it where the turn was broken off.
    pub text: String,
    /// The reason of the end.
    pub end: TurnEnd,
    /// Number of model requests.
    pub steps: u32,
    /// Tokens used.
    pub usage: Usage,
}

/// The reason why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model answered.
    Answered,
    /// Its answer became too long and was cut.
    Length,
    /// It, or its provider, refuses to answer.
    Refused,
    /// The step limit was reached while the model still called tools.
    MaxSteps,
    /// It makes the same call again and again.
    Repetition,
    /// The caller cancelled it.
    Cancelled,
}

impl TurnEnd {
    /// The explanation and remedy for an end without an answer.
    pub fn explained(self) -> Option<&'static str> {
        match self {
            Self::Answered => None,
            Self::Length => Some("the model's answer was cut off; raise `agent.max_output_tokens`"),
            Self::Refused => Some("the model refuses to answer this; ask in another way"),
            Self::MaxSteps => Some(
                "the model still calls tools after the last step; raise `agent.max_steps`, or \
                 say `continue`",
            ),
            Self::Repetition => Some(
                "the model makes the same call again and again; say what is missing, or raise \
                 `agent.repeats_max`",
            ),
            Self::Cancelled => Some("interrupted"),
        }
    }
}

/// Receives events. Must return at once.
pub type Listener<'a> = dyn Fn(AgentEvent) + Send + Sync + 'a;

/// The model's reply to one request.
enum ModelReply {
    Whole(Box<ModelTurn>),
    /// The caller cancelled it; this is the partial text.
    Cut(String),
}

impl Agent {
    /// Runs one turn: adds `said` to the conversation, calls the model and runs its calls until it
    /// answers. The conversation can always be continued. `cancel` ends the turn at once.
    pub async fn turn(
        &self,
        conversation: &mut Conversation,
        said: Vec<Content>,
        tell: &Listener<'_>,
        cancel: &CancellationToken,
    ) -> Result<Turn, ModelError> {
        tell(AgentEvent::TurnStarted { session: conversation.id().to_owned() });
        // A turn is long, and what it holds on its way is much.
        let turn = Box::pin(self.steps(conversation, said, tell, cancel)).await;
        if let Some(problem) = conversation.take_problem() {
            tell(AgentEvent::Warning { message: problem });
        }
        match &turn {
            Ok(Turn { text, end, steps, usage }) => tell(AgentEvent::TurnCompleted {
                text: text.clone(),
                end: *end,
                steps: *steps,
                usage: *usage,
            }),
            Err(error) => tell(AgentEvent::TurnFailed {
                message: error.message.clone(),
                remedy: error.remedy.clone(),
            }),
        }
        turn
    }

    async fn steps(
        &self,
        conversation: &mut Conversation,
        said: Vec<Content>,
        tell: &Listener<'_>,
        cancel: &CancellationToken,
    ) -> Result<Turn, ModelError> {
        let request = text_of(&said);
        conversation.push(ChatMessage::User { content: said }).await;
        let mut repeats = Repeats::new(self.settings.repeats_max);
        let (mut usage, mut last) = (Usage::default(), String::new());
        let ended =
            |text: String, end: TurnEnd, steps: u32, usage: Usage| Turn { text, end, steps, usage };
        for step in 1..=self.settings.max_steps {
            // What was not stored must not be acted on: another process may continue the conversation.
            conversation.require_held()?;
            let tools = self.offer(conversation).await;
            tell(AgentEvent::StepStarted { step, tools: tools.len() });
            let answer = match self.ask(conversation, &tools, tell, cancel).await? {
                ModelReply::Whole(answer) => *answer,
                ModelReply::Cut(text) => {
                    conversation.push_cut(&text).await;
                    return Ok(ended(text, TurnEnd::Cancelled, step, usage));
                }
            };
            usage += answer.usage;
            let ModelTurn { text, calls, provider_state, stop, .. } = answer;
            if !text.is_empty() {
                tell(AgentEvent::TextCompleted { text: text.clone() });
            }
            conversation
                .push(ChatMessage::Assistant {
                    text: text.clone(),
                    calls: calls.clone(),
                    provider_state,
                })
                .await;
            conversation.require_held()?;
            let is_cut = is_cut(&calls, &stop);
            if is_cut {
                let results = calls.iter().map(cut_off).collect();
                conversation.push(ChatMessage::Tools { results }).await;
            }
            if calls.is_empty() || is_cut {
                if let Some(reason) = unexplained(&text, &stop) {
                    return Err(self.stopped(reason));
                }
                let end = match stop {
                    StopReason::Length => TurnEnd::Length,
                    StopReason::Refused => TurnEnd::Refused,
                    StopReason::End | StopReason::Calls | StopReason::Other(_) => TurnEnd::Answered,
                };
                if end == TurnEnd::Answered && text.trim().is_empty() {
                    let message = "the model's answer is empty; ask again".to_owned();
                    tell(AgentEvent::Warning { message });
                }
                return Ok(ended(text, end, step, usage));
            }
            let run =
                Calls { agent: self, session: conversation.id(), request: &request, tell, cancel };
            let results = run.all(&calls, &mut repeats).await;
            conversation.push(ChatMessage::Tools { results }).await;
            last = text;
            if cancel.is_cancelled() {
                return Ok(ended(last, TurnEnd::Cancelled, step, usage));
            }
            if repeats.is_stuck() {
                return Ok(ended(last, TurnEnd::Repetition, step, usage));
            }
        }
        Ok(ended(last, TurnEnd::MaxSteps, self.settings.max_steps, usage))
    }

    fn stopped(&self, reason: &str) -> ModelError {
        ModelError {
            kind: ModelFailure::Rejected,
            message: format!(
                "`{}` said nothing and stopped: {}",
                self.model.name(),
                printable(reason)
            ),
            remedy: Some("ask again, or in other words".to_owned()),
        }
    }

    /// Sends a request to the model; retries with less of the conversation if it is too long, and
    /// without images if the model rejects them.
    async fn ask(
        &self,
        conversation: &mut Conversation,
        tools: &[ModelTool],
        tell: &Listener<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelReply, ModelError> {
        let system = self.system();
        let mut tokens = conversation.tokens_max(self.settings.context_tokens);
        for again in 0.. {
            let budget = Budget::new(tokens, &system, tools);
            let messages = budget::fit(&conversation.sent(), &budget)?;
            let request = ModelRequest {
                system: Some(system.clone()),
                messages,
                tools: tools.to_vec(),
                max_output_tokens: self.settings.max_output_tokens,
                ..ModelRequest::default()
            };
            let error = match self.listen(request, tell, cancel).await {
                Ok(heard) => {
                    // Only what was answered is known to be read.
                    conversation.reads_at_most(tokens);
                    return Ok(heard);
                }
                Err(error) if again >= AGAIN_MAX => return Err(error),
                Err(error) => error,
            };
            let how = match error.kind {
                ModelFailure::TooLong => {
                    tokens = budget.halved(&conversation.sent());
                    "with less of the conversation"
                }
                ModelFailure::Images if conversation.hide_images() => "without images",
                _ => return Err(error),
            };
            tell(AgentEvent::Warning { message: format!("{}; asking again {how}", error.message) });
        }
        Err(budget::too_long())
    }

    async fn listen(
        &self,
        request: ModelRequest,
        tell: &Listener<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelReply, ModelError> {
        let mut events = self.model.ask(request);
        let mut heard = String::new();
        loop {
            let event = tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(ModelReply::Cut(heard)),
                event = events.next() => event,
            };
            match event {
                Some(Ok(ModelEvent::Text(text))) => {
                    heard.push_str(&text);
                    tell(AgentEvent::Text { text });
                }
                Some(Ok(ModelEvent::Reasoning(text))) => tell(AgentEvent::Reasoning { text }),
                Some(Ok(ModelEvent::Restarted { reason })) => {
                    heard.clear();
                    tell(AgentEvent::Restarted { reason });
                }
                Some(Ok(ModelEvent::Done(turn))) => return Ok(ModelReply::Whole(turn)),
                Some(Err(error)) => return Err(error),
                None => {
                    return Err(ModelError {
                        kind: ModelFailure::Unreadable,
                        message: format!(
                            "`{}` stopped without finishing its answer",
                            self.model.name()
                        ),
                        remedy: Some("ask again".to_owned()),
                    });
                }
            }
        }
    }
}

/// The reason of an empty answer, if it is an unusual one.
fn unexplained<'s>(text: &str, stop: &'s StopReason) -> Option<&'s str> {
    match stop {
        StopReason::Other(reason) if text.trim().is_empty() => Some(reason),
        StopReason::Other(_)
        | StopReason::End
        | StopReason::Calls
        | StopReason::Length
        | StopReason::Refused => None,
    }
}

/// Returns true if the model stopped in the middle of a call, whose arguments are then incomplete.
fn is_cut(calls: &[ModelCall], stop: &StopReason) -> bool {
    let is_whole = |call: &ModelCall| serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok();
    *stop == StopReason::Length && calls.last().is_some_and(|call| !is_whole(call))
}

/// Every call has an answer, also one that was never made.
fn cut_off(call: &ModelCall) -> ModelResult {
    let reason = "not called: your answer was too long and ended before its last call was whole";
    ModelResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: vec![Content::text(reason)],
        is_error: true,
    }
}

/// The words of a message.
pub(super) fn text_of(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Content::Text { text } => Some(text.as_str()),
        Content::Image { .. } | Content::Audio { .. } | Content::Resource { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
