//! Validates each event of a stream before genai reads it, because genai trusts its input.
//!
//! A sink of genai receives an event before it is parsed, but cannot reject it, and both happen in
//! one poll. So a rejection is a silent unwind, caught around that poll.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use genai::chat::{
    ChatFrameSink, ChatStream, ChatStreamEvent, FrameCtx, RawFrameRef, StreamEnd, ToolCall, Usage,
};
use haft_bounds::json::Budget;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use super::SILENCES_MAX;
use super::kind::Provider;
use super::tool_calls::{CALLS_MAX, ToolCallAccumulator};

/// Maximum size of one event, and of the padding that genai inserts for gaps in call indices.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// The pieces of one stream.
pub(super) struct Frames {
    /// Others than the named ones may be read as OpenAI's format, where calls are numbered by the service.
    provider: Provider,
    /// Maximum number of values and keys in one event.
    nodes_max: usize,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    frames: u64,
    /// Number of calls that genai has allocated.
    calls: u64,
    /// Bytes that genai copied for gaps: the call after a gap, once for each missing index.
    copied: usize,
    accumulator: ToolCallAccumulator,
    ending: Ending,
}

/// The end of an answer in OpenAI's format. Some services omit the final marker, and genai then
/// reports no end.
#[derive(Default)]
struct Ending {
    reason: Option<String>,
    usage: Option<Usage>,
}

/// Ollama's error in place of an answer.
#[derive(Deserialize)]
struct Failed {
    error: String,
}

/// Reasons why a stream is abandoned.
pub(super) enum StreamError {
    /// The event was rejected, for this reason.
    Refused(String),
    /// Whatever comes, it makes no whole piece.
    Silent,
    /// Only heartbeats arrived for a very long time.
    OnlyAlive,
}

/// The payload of the unwind.
struct Refusal(String);

impl Frames {
    pub(super) fn new(provider: Provider, nodes_max: usize) -> Arc<Self> {
        Arc::new(Self { provider, nodes_max, seen: Mutex::default() })
    }

    /// The next event of the stream. After a [`StreamError`] it must not be called again.
    pub(super) async fn next(
        &self,
        stream: &mut ChatStream,
        silence_max: Duration,
    ) -> Result<Option<genai::Result<ChatStreamEvent>>, StreamError> {
        // Genai itself waits for bytes, however few. Bytes that never become an event time out
        // here, after genai's own timeout, whose reason is more specific.
        let event_timeout = silence_max.saturating_mul(2);
        for _ in 0..SILENCES_MAX / 2 {
            let before = self.count();
            let event = unwound(stream.next());
            match tokio::time::timeout(event_timeout, event).await {
                Ok(event) => return event.map_err(StreamError::Refused),
                // Heartbeats are frames without an event.
                Err(_) if self.count() > before => {}
                Err(_) => return Err(StreamError::Silent),
            }
        }
        Err(StreamError::OnlyAlive)
    }

    /// The calls of an answer in OpenAI's format.
    pub(super) fn take_calls(&self) -> Vec<ToolCall> {
        self.seen.lock().accumulator.take()
    }

    /// The end of an answer in OpenAI's format that ended without its mark; nothing where the rest is missing.
    pub(super) fn take_end(&self) -> Option<StreamEnd> {
        let mut seen = self.seen.lock();
        let Ending { reason, usage } = std::mem::take(&mut seen.ending);
        Some(StreamEnd {
            captured_stop_reason: Some(reason?.into()),
            captured_usage: usage,
            ..StreamEnd::default()
        })
    }

    fn count(&self) -> u64 {
        self.seen.lock().frames
    }

    fn check(&self, data: &str) -> Result<(), String> {
        let mut seen = self.seen.lock();
        seen.frames += 1;
        if data.len() > FRAME_BYTES_MAX {
            return Err(format!("a piece of it has more than {FRAME_BYTES_MAX} bytes"));
        }
        let budget = Budget::nodes(self.nodes_max);
        budget.check(data.as_bytes()).map_err(|excess| format!("a piece of it has {excess}"))?;
        match self.provider {
            Provider::OpenAi | Provider::Other(_) => seen.read(data),
            // Genai takes the line for an end without a reason.
            Provider::Ollama => match serde_json::from_str::<Failed>(data) {
                Ok(Failed { error }) => Err(format!("it reports `{error}`")),
                Err(_) => Ok(()),
            },
            Provider::Anthropic | Provider::Gemini => Ok(()),
        }
    }
}

impl Seen {
    /// Parses an event exactly as genai does, so that no spelling of it (escapes, a repeated key)
    /// differs between the two. Genai reports invalid JSON.
    fn read(&mut self, data: &str) -> Result<(), String> {
        let Ok(frame) = serde_json::from_str::<Value>(data) else { return Ok(()) };
        if let Some(reason) = frame.pointer("/choices/0/finish_reason").and_then(Value::as_str) {
            self.ending.reason = Some(reason.to_owned());
        }
        if let Ok(usage) = Usage::deserialize(&frame["usage"]) {
            self.ending.usage = Some(usage);
        }
        let calls = frame.pointer("/choices/0/delta/tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.accumulator.push(call)?;
            let Some(number) = call["index"].as_u64() else { continue };
            // Genai makes room for every number up to the highest one named.
            if number >= CALLS_MAX as u64 {
                return Err(format!(
                    "it numbers a call {number}, and there are at most {CALLS_MAX}"
                ));
            }
            let gap = usize::try_from(number.saturating_sub(self.calls)).unwrap_or(usize::MAX);
            self.copied = self.copied.saturating_add(gap.saturating_mul(data.len()));
            if self.copied > FRAME_BYTES_MAX {
                return Err("it leaves out too many numbers of calls".to_owned());
            }
            self.calls = self.calls.max(number + 1);
        }
        Ok(())
    }
}

impl ChatFrameSink for Frames {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        if let Err(why) = self.check(frame.data) {
            // Unlike a panic, this runs no hook, because Haft is not at fault.
            resume_unwind(Box::new(Refusal(why)));
        }
    }
}

/// Awaits a future of genai and catches its unwind. A panic of genai's own counts too: the answer
/// caused it, and the stream is abandoned either way.
pub(super) async fn unwound<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let caught = AssertUnwindSafe(future).catch_unwind().await;
    caught.map_err(|payload: Box<dyn Any + Send>| match payload.downcast::<Refusal>() {
        Ok(refusal) => refusal.0,
        Err(_) => "reading it failed unexpectedly".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use haft_bounds::json::NODES_MAX;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_piece_of_very_many_values_is_refused_whatever_the_provider() {
        let many = json!({"a": vec![0; NODES_MAX]}).to_string();
        for provider in [Provider::OpenAi, Provider::Anthropic, Provider::Gemini, Provider::Ollama]
        {
            let refused = Frames::new(provider, NODES_MAX).check(&many).unwrap_err();
            assert_eq!(refused, "a piece of it has more than 100000 values and keys");
            Frames::new(provider, 2 * NODES_MAX).check(&many).unwrap();
        }
    }

    fn frame(calls: &Value) -> String {
        json!({"choices": [{"delta": {"tool_calls": calls}}]}).to_string()
    }

    fn call(index: u64, bytes: usize) -> Value {
        json!({"index": index, "function": {"name": "a", "arguments": "x".repeat(bytes)}})
    }

    #[test]
    fn numbers_that_cost_memory_are_refused() {
        let frames = || Frames::new(Provider::OpenAi, NODES_MAX);
        for good in [
            frame(&json!([call(0, 9), call(1, 9), call(0, 9)])),
            frame(&json!([call(1, 1 << 20)])),
            frame(&json!([{"index": -1}, {"index": "4294967295"}, {}, 3])),
            frame(&json!({"index": 4_294_967_295_u32})),
            r#"{"choices": [], "usage": null}"#.to_owned(),
            "[DONE]".to_owned(),
        ] {
            assert_eq!(frames().check(&good), Ok(()), "{good:.200}");
        }
        for bad in [
            frame(&json!([call(u64::from(u32::MAX), 0)])),
            frame(&json!([call(0, 0), call(CALLS_MAX as u64, 0)])),
            frame(&json!([call(999, 1 << 20)])),
            // Another spelling of the same.
            frame(&json!([call(5000, 0)])).replace("index", r"\u0069ndex"),
            frame(&json!([call(5000, 0)])).replace("{\"index\"", "{\"index\":0,\"index\""),
        ] {
            frames().check(&bad).unwrap_err();
            Frames::new(Provider::Anthropic, NODES_MAX).check(&bad).unwrap();
        }
        // Gaps count over all pieces.
        let gaps = frames();
        let ended =
            (1..500).find_map(|at| gaps.check(&frame(&json!([call(at * 2, 1 << 17)]))).err());
        assert_eq!(ended.as_deref(), Some("it leaves out too many numbers of calls"));
    }

    #[test]
    fn a_piece_has_a_limit() {
        let piece = "x".repeat(FRAME_BYTES_MAX);
        Frames::new(Provider::Gemini, NODES_MAX).check(&piece).unwrap();
        Frames::new(Provider::Gemini, NODES_MAX).check(&format!("{piece}x")).unwrap_err();
    }
}
