//! Limits the part of a conversation that the model receives. Omitted parts stay in the
//! conversation itself.

use std::borrow::Cow;

use crate::model::{ChatMessage, ModelError, ModelFailure, ModelResult, ModelTool};
use haft::Content;

/// Bytes per token of ASCII text. Other characters count as one token each.
const BYTES_PER_TOKEN: usize = 4;
/// Approximate cost of an image.
const IMAGE_TOKENS: usize = 1_500;
/// Bytes of base64 audio per token.
const AUDIO_BYTES_PER_TOKEN: usize = 1_000;
/// Cost of a message besides its text.
const MESSAGE_TOKENS: usize = 8;
/// Number of bytes kept of a shortened tool result.
const KEPT_BYTES: usize = 300;

/// Maximum number of tokens for the messages of a request.
pub(super) struct Budget {
    /// For everything.
    all: usize,
    /// Tokens of the system prompt and the tools.
    fixed: usize,
}

impl Budget {
    pub(super) fn new(all: usize, system: &str, tools: &[ModelTool]) -> Self {
        let tool = |tool: &ModelTool| {
            tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.input_schema.to_string())
        };
        Self { all, fixed: tokens(system) + tools.iter().map(tool).sum::<usize>() }
    }

    fn left(&self) -> usize {
        self.all.saturating_sub(self.fixed)
    }

    /// There is no room for any message.
    fn no_room(&self) -> ModelError {
        ModelError {
            kind: ModelFailure::TooLong,
            message: format!(
                "the tools and the system text alone have about {} tokens, and the model is sent at most {}",
                self.fixed, self.all
            ),
            remedy: Some(
                "lower `agent.tools_max`, or raise `agent.context_tokens` if the model can read more"
                    .to_owned(),
            ),
        }
    }

    /// Half the tokens of the sent messages, for a model with a smaller context than declared.
    pub(super) fn halved(&self, messages: &[ChatMessage]) -> usize {
        let said = messages.iter().map(cost).sum::<usize>();
        self.fixed + said.min(self.left()) / 2
    }
}

/// The conversation is too long, whatever is left out.
pub(super) fn too_long() -> ModelError {
    ModelError {
        kind: ModelFailure::TooLong,
        message: "what was said last is longer than the model may read".to_owned(),
        remedy: Some(
            "say less at once, or raise `agent.context_tokens` if the model can read more"
                .to_owned(),
        ),
    }
}

/// The messages as they are sent. Of one that is too long, the oldest tool results are shortened first, then
/// the oldest turns are left out, then the newest tool results are shortened.
pub(super) fn fit(
    messages: &[ChatMessage],
    budget: &Budget,
) -> Result<Vec<ChatMessage>, ModelError> {
    let limit = budget.left();
    if limit == 0 {
        return Err(budget.no_room());
    }
    let mut fitted = messages.to_vec();
    let mut total: usize = fitted.iter().map(cost).sum();
    let newest = fitted.iter().rposition(|it| matches!(it, ChatMessage::Tools { .. }));
    let is_current = newest.is_some_and(|at| at + 1 == fitted.len());
    let old_results = if is_current { newest } else { Some(fitted.len()) };
    for message in fitted.iter_mut().take(old_results.unwrap_or_default()) {
        shorten_results(message, KEPT_BYTES, limit, &mut total);
    }
    drop_turns(&mut fitted, limit, &mut total);
    if total > limit && is_current {
        shorten_newest(&mut fitted, limit, &mut total);
    }
    if total > limit { Err(too_long()) } else { Ok(fitted) }
}

/// Shortens the results of a message one by one until everything fits.
fn shorten_results(message: &mut ChatMessage, kept: usize, limit: usize, total: &mut usize) {
    let ChatMessage::Tools { results } = message else { return };
    for result in results {
        if *total <= limit {
            return;
        }
        let before = result_cost(result);
        result.content = vec![Content::text(shortened(result, kept))];
        *total = *total - before.min(*total) + result_cost(result);
    }
}

fn shorten_newest(messages: &mut [ChatMessage], limit: usize, total: &mut usize) {
    let Some(ChatMessage::Tools { results }) = messages.last_mut() else { return };
    let here: usize = results.iter().map(result_cost).sum();
    let room = limit.saturating_sub(total.saturating_sub(here));
    let each = (room / results.len().max(1)).saturating_sub(2 * MESSAGE_TOKENS) * BYTES_PER_TOKEN;
    for result in results.iter_mut().filter(|result| result_cost(result) * BYTES_PER_TOKEN > each) {
        // Half, because non-ASCII characters cost more than a byte's share.
        result.content = vec![Content::text(shortened(result, each / 2))];
    }
    let after: usize = results.iter().map(result_cost).sum();
    *total = *total - here.min(*total) + after;
}

/// Omits the oldest whole turns, with a note. The last user message always stays.
fn drop_turns(messages: &mut Vec<ChatMessage>, limit: usize, total: &mut usize) {
    let is_user = |message: &ChatMessage| matches!(message, ChatMessage::User { .. });
    let note = |dropped: usize| {
        ChatMessage::user(format!("[{dropped} earlier messages are left out here]"))
    };
    let mut dropped = 0;
    // The note has to fit too.
    while *total + if dropped > 0 { cost(&note(dropped)) } else { 0 } > limit {
        let Some(next) = messages.iter().skip(1).position(is_user) else { break };
        let gone: usize = messages.drain(..=next).map(|message| cost(&message)).sum();
        dropped += next + 1;
        *total -= gone.min(*total);
    }
    if dropped > 0 {
        *total += cost(&note(dropped));
        messages.insert(0, note(dropped));
    }
}

fn shortened(result: &ModelResult, kept: usize) -> String {
    let texts: Vec<Cow<'_, str>> = result.content.iter().map(Content::as_text).collect();
    let text = texts.join("\n");
    let end = text.floor_char_boundary(kept);
    if end == text.len() {
        return text;
    }
    format!("{}\n[{} of {} bytes are left out here]", &text[..end], text.len() - end, text.len())
}

/// About how many tokens a message has.
fn cost(message: &ChatMessage) -> usize {
    MESSAGE_TOKENS
        + match message {
            ChatMessage::User { content } => content.iter().map(block_cost).sum(),
            ChatMessage::Assistant { text, calls, provider_state } => {
                let call = |call: &crate::model::ModelCall| {
                    MESSAGE_TOKENS + tokens(&call.name) + tokens(&call.arguments)
                };
                let provider_state = provider_state
                    .as_ref()
                    .map_or(0, |provider_state| tokens(&provider_state.to_string()));
                tokens(text) + calls.iter().map(call).sum::<usize>() + provider_state
            }
            ChatMessage::Tools { results } => results.iter().map(result_cost).sum(),
        }
}

fn result_cost(result: &ModelResult) -> usize {
    MESSAGE_TOKENS + result.content.iter().map(block_cost).sum::<usize>()
}

fn block_cost(block: &Content) -> usize {
    match block {
        Content::Image { .. } => IMAGE_TOKENS,
        Content::Audio { data, .. } => data.len() / AUDIO_BYTES_PER_TOKEN + 1,
        Content::Text { .. } | Content::Resource { .. } => tokens(&block.as_text()),
    }
}

/// Approximate number of tokens of a string.
fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().filter(|it| !it.is_ascii()).count();
    ascii.div_ceil(BYTES_PER_TOKEN) + others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelCall;

    fn called(id: &str, size: usize) -> [ChatMessage; 2] {
        let call = ModelCall { id: id.into(), name: "t".into(), arguments: "{}".into() };
        let result = ModelResult {
            call_id: id.into(),
            name: "t".into(),
            content: vec![Content::text("x".repeat(size))],
            is_error: false,
        };
        let asked =
            ChatMessage::Assistant { text: String::new(), calls: vec![call], provider_state: None };
        [asked, ChatMessage::Tools { results: vec![result] }]
    }

    fn sizes(messages: &[ChatMessage]) -> Vec<usize> {
        let size = |message: &ChatMessage| match message {
            ChatMessage::Tools { results } => Some(results[0].content[0].as_text().len()),
            _ => None,
        };
        messages.iter().filter_map(size).collect()
    }

    fn budget(all: usize) -> Budget {
        Budget::new(all, "", &[])
    }

    #[test]
    fn the_oldest_results_are_shortened_first_and_the_newest_stays_whole() {
        let mut messages = vec![ChatMessage::user("go")];
        for id in ["a", "b", "c"] {
            messages.extend(called(id, 4000));
        }
        assert_eq!(sizes(&fit(&messages, &budget(10_000)).unwrap()), [4000, 4000, 4000]);
        let fitted = sizes(&fit(&messages, &budget(2_500)).unwrap());
        assert!(fitted[0] < 400, "{fitted:?}");
        assert_eq!(fitted[1..], [4000, 4000]);
        let fitted = sizes(&fit(&messages, &budget(1_300)).unwrap());
        assert!(fitted[0] < 400 && fitted[1] < 400, "{fitted:?}");
        assert_eq!(fitted[2], 4000);
    }

    #[test]
    fn then_old_turns_are_left_out_and_said_to_be() {
        let mut messages = Vec::new();
        for turn in 0..50 {
            messages.push(ChatMessage::user(format!("{turn} {}", "word ".repeat(100))));
            messages.push(ChatMessage::Assistant {
                text: "yes".into(),
                calls: Vec::new(),
                provider_state: None,
            });
        }
        let fitted = fit(&messages, &budget(1_000)).unwrap();
        assert!(fitted.len() < 20, "{}", fitted.len());
        let ChatMessage::User { content } = &fitted[0] else { panic!("{:?}", fitted[0]) };
        assert!(content[0].as_text().contains("earlier messages are left out"));
        assert_eq!(fitted.last(), messages.last());
    }

    #[test]
    fn whatever_the_limit_the_note_about_old_turns_fits_too() {
        let messages: Vec<ChatMessage> = (0..20)
            .map(|turn| ChatMessage::user(format!("{turn} {}", "word ".repeat(20))))
            .collect();
        for limit in 60..400 {
            let fitted = fit(&messages, &budget(limit)).unwrap();
            assert!(fitted.iter().map(cost).sum::<usize>() <= limit, "{limit}");
        }
    }

    #[test]
    fn the_newest_results_are_shortened_where_nothing_else_helps() {
        let mut messages = vec![ChatMessage::user("go")];
        messages.extend(called("a", 40_000));
        let fitted = fit(&messages, &budget(1_000)).unwrap();
        assert!(fitted.iter().map(cost).sum::<usize>() <= 1_000);
        assert!(sizes(&fitted)[0] > 500);
    }

    #[test]
    fn what_cannot_fit_is_refused() {
        let messages = [ChatMessage::user("x".repeat(100_000))];
        assert_eq!(fit(&messages, &budget(1_000)).unwrap_err().kind, ModelFailure::TooLong);
    }
}
