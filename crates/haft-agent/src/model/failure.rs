//! Failures of a model's service, with cause and remedy.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use serde_json::Value;

use super::{ModelError, ModelFailure};
use haft::config::Secret;
use haft_config::redact::{MASK, Redactor};
use haft_text::{beginning, human, printable};

/// Maximum number of characters shown of a service's own message.
const SHOWN_CHARS_MAX: usize = 400;

/// Phrases by which services report that a conversation exceeds the context.
const TOO_LONG: [&str; 14] = [
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "context length",
    "context window",
    "context size",
    "exceed context limit",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "input token count",
    "reduce the length of the messages",
    "exceeds the maximum number of tokens",
    "request_too_large",
];

/// Makes errors of what one service did.
pub(super) struct Failures {
    model: String,
    /// Its address, without secrets.
    address: String,
    /// The location of the key, for remedies.
    key_place: String,
    key: Option<Secret>,
    redactor: Redactor,
    silence_max: Duration,
    /// True if the request contained an image.
    has_images: bool,
}

impl Failures {
    /// `secrets` are those of its address.
    pub(super) fn new(
        model: &str,
        address: &str,
        key_place: String,
        key: Option<Secret>,
        secrets: &[String],
    ) -> Self {
        let key_text = key.iter().map(|key| key.expose().to_owned());
        Self {
            model: model.to_owned(),
            address: address.to_owned(),
            key_place,
            redactor: Redactor::new(key_text.chain(secrets.iter().cloned())),
            key,
            silence_max: Duration::ZERO,
            has_images: false,
        }
    }

    /// Sets if the request contained an image.
    pub(super) fn showing(self, has_images: bool) -> Self {
        Self { has_images, ..self }
    }

    /// Sets the maximum time without data.
    pub(super) fn waiting(self, silence_max: Duration) -> Self {
        Self { silence_max, ..self }
    }

    /// The service returned an error status.
    pub(super) fn status(&self, status: u16, headers: &HeaderMap, body: &str) -> ModelError {
        let said = self.said(body);
        let model = &self.model;
        let lower = body.to_lowercase();
        let (kind, message, remedy) = match status {
            300..400 => {
                let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
                let to = self.shown(to);
                return setup(
                    format!(
                        "{} sends requests on to `{to}`, and the key must not go there",
                        self.address
                    ),
                    Some("if that is the right place, write it as `agent.base_url`".to_owned()),
                );
            }
            401 | 403 => {
                let what = if self.key.is_some() { "refused the key" } else { "wants a key" };
                return setup(
                    format!("the service of `{model}` {what} ({status}): {said}"),
                    Some(format!("look at {}", self.key_place)),
                );
            }
            402 => return self.unpaid(status, &said),
            _ if lower.contains("insufficient_quota") => return self.unpaid(status, &said),
            400..500 if status != 429 && is_too_long(&lower) => return self.too_long(&said),
            413 => return self.too_long(&said),
            400 | 404 | 415 | 422 | 500 if self.has_images && is_about_images(status, &lower) => (
                ModelFailure::Images,
                format!(
                    "the service of `{model}` does not take an image in the conversation ({status}): {said}"
                ),
                Some("`agent.images: false` keeps images from the model".to_owned()),
            ),
            404 => {
                return setup(
                    format!("{} does not know the model `{model}` (404): {said}", self.address),
                    Some("look at `agent.model` and `agent.base_url`".to_owned()),
                );
            }
            429 => (
                passing(headers),
                format!("the service of `{model}` is asked too often (429): {said}"),
                Some("wait a while; `agent.retries` sets how often it is retried".to_owned()),
            ),
            501 | 505 => (
                ModelFailure::Rejected,
                format!("the service of `{model}` cannot do this ({status}): {said}"),
                Some("look at `agent.base_url`".to_owned()),
            ),
            408 | 425 | 500.. => (
                passing(headers),
                format!("the service of `{model}` fails ({status}): {said}"),
                Some("try again in a while".to_owned()),
            ),
            _ => (
                ModelFailure::Rejected,
                format!("the service of `{model}` does not take the request ({status}): {said}"),
                None,
            ),
        };
        ModelError { kind, message, remedy }
    }

    /// The service sent an error within its answer.
    pub(super) fn event(&self, body: &Value) -> ModelError {
        if body.get("finishReason").is_some() {
            // Genai's form of an empty answer of Gemini.
            return ModelError {
                kind: ModelFailure::Rejected,
                message: format!("the service of `{}` refuses to answer this", self.model),
                remedy: Some("say it in other words".to_owned()),
            };
        }
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
        let text = |key: &str| error[key].as_str().unwrap_or_default().to_lowercase();
        let kinds = format!("{} {} {}", text("type"), text("code"), text("status"));
        let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let status = match status.filter(|code| (400..600).contains(code)) {
            Some(status) => status,
            None if is_too_long(&body.to_string().to_lowercase()) => 400,
            None if kinds.contains("authentication") || kinds.contains("permission") => 401,
            None if kinds.contains("rate_limit") || kinds.contains("exhausted") => 429,
            None if kinds.contains("overloaded") => 529,
            None if kinds.contains("invalid") => 400,
            None => 500,
        };
        self.status(status, &HeaderMap::new(), &body.to_string())
    }

    /// The stream ended before the answer did.
    pub(super) fn broken_off(&self) -> ModelError {
        self.lost("its answer broke off")
    }

    /// The connection was lost while an answer was coming in.
    pub(super) fn lost(&self, cause: &str) -> ModelError {
        ModelError {
            kind: ModelFailure::Passing { retry_after: None },
            message: format!(
                "the connection to the service of `{}` was lost: {}",
                self.model,
                self.shown(cause)
            ),
            remedy: Some("try again; a service that does it often may be overloaded".to_owned()),
        }
    }

    /// The connection failed.
    pub(super) fn unreachable(&self, cause: &str) -> ModelError {
        let remedy = if self.model.starts_with("ollama::") {
            "start it with `ollama serve`, or write where it runs as `agent.base_url`"
        } else {
            "look at `agent.base_url` and whether the service runs"
        };
        ModelError {
            kind: ModelFailure::Passing { retry_after: None },
            message: format!(
                "the service of `{}` cannot be reached at {}: {}",
                self.model,
                self.address,
                self.shown(cause)
            ),
            remedy: Some(remedy.to_owned()),
        }
    }

    /// No data arrived for too long.
    pub(super) fn silent(&self) -> ModelError {
        ModelError {
            kind: ModelFailure::Passing { retry_after: None },
            message: format!(
                "the service of `{}` was silent for {}",
                self.model,
                human(self.silence_max)
            ),
            remedy: Some("raise `agent.request_timeout` if it is only slow".to_owned()),
        }
    }

    /// Only heartbeats arrived.
    pub(super) fn only_alive(&self, silences: u32) -> ModelError {
        ModelError {
            message: format!(
                "the service of `{}` said for {} that it is there, and nothing else",
                self.model,
                human(self.silence_max.saturating_mul(silences))
            ),
            ..self.silent()
        }
    }

    /// The answer is unreadable.
    pub(super) fn unreadable(&self, cause: &str) -> ModelError {
        ModelError {
            kind: ModelFailure::Unreadable,
            message: format!(
                "the answer of the service of `{}` cannot be read: {}",
                self.model,
                self.shown(cause)
            ),
            remedy: Some(
                "look at `agent.base_url` and whether the service speaks this provider's format"
                    .to_owned(),
            ),
        }
    }

    /// The answer exceeds its size limit.
    pub(super) fn too_large(&self, bytes_max: u64) -> ModelError {
        ModelError {
            kind: ModelFailure::Unreadable,
            message: format!(
                "the answer of the service of `{}` has more than {bytes_max} bytes",
                self.model
            ),
            remedy: Some("raise `agent.answer_bytes_max` if the answer is genuine".to_owned()),
        }
    }

    /// The response is not an answer of a model.
    pub(super) fn not_an_answer(&self, content_type: &str, body: &str) -> ModelError {
        let what = if content_type.is_empty() { "no JSON" } else { content_type };
        self.unreadable(&format!("it is {what}: {}", self.said(body)))
    }

    /// The request cannot even be made.
    pub(super) fn unsendable(&self, cause: &str) -> ModelError {
        ModelError {
            kind: ModelFailure::Rejected,
            message: format!("`{}` cannot be asked: {}", self.model, self.shown(cause)),
            remedy: None,
        }
    }

    fn unpaid(&self, status: u16, said: &str) -> ModelError {
        setup(
            format!("the account for `{}` has nothing left ({status}): {said}", self.model),
            Some("look at the plan and the bills of the account".to_owned()),
        )
    }

    fn too_long(&self, said: &str) -> ModelError {
        ModelError {
            kind: ModelFailure::TooLong,
            message: format!("the conversation is too long for `{}`: {said}", self.model),
            remedy: Some("lower `agent.context_tokens`, or begin a new conversation".to_owned()),
        }
    }

    /// The service's own words.
    fn said(&self, body: &str) -> String {
        let text = serde_json::from_str::<Value>(body).ok().and_then(|body| message_of(&body));
        match text {
            Some(text) => self.shown(&text),
            None if body.trim_start().starts_with('<') => {
                let title = title_of(body).unwrap_or("without a title");
                format!("a page in HTML, {}", self.shown(title))
            }
            None if body.trim().is_empty() => "it gives no reason".to_owned(),
            None => self.shown(body),
        }
    }

    /// A foreign text: with the key masked, printable, and truncated.
    fn shown(&self, text: &str) -> String {
        let text = match &self.key {
            Some(key) => text.replace(key.expose(), MASK),
            None => text.to_owned(),
        };
        let text = self.redactor.text(&text);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = printable(&text);
        let short = beginning(&text, SHOWN_CHARS_MAX);
        if short.len() < text.len() { format!("{short}…") } else { short.to_owned() }
    }
}

fn setup(message: String, remedy: Option<String>) -> ModelError {
    ModelError { kind: ModelFailure::Setup, message, remedy }
}

fn is_too_long(lower: &str) -> bool {
    // A string of another field, such as a name, does not concern the length of the conversation.
    let is_long_content = lower.contains("string too long") && lower.contains("content");
    is_long_content || TOO_LONG.iter().any(|words| lower.contains(words))
}

fn is_about_images(status: u16, lower: &str) -> bool {
    let names = ["image", "picture", "vision", "multimodal"].iter().any(|it| lower.contains(it));
    // The name of a model, or a failure of the service, may have any of these words.
    names && (matches!(status, 400 | 415 | 422) || lower.contains("support"))
}

fn passing(headers: &HeaderMap) -> ModelFailure {
    ModelFailure::Passing { retry_after: retry_after(headers, Timestamp::now()) }
}

/// The retry delay: milliseconds (OpenAI), seconds or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number >= 0.0);
    if let Some(millis) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Some(seconds) = number(after) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(after).ok()?;
    Duration::try_from(date.timestamp().duration_since(now)).ok()
}

/// The human-readable message of a service.
fn message_of(body: &Value) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").unwrap_or(body);
    let places = [&error["message"], error, &body["message"], &body["detail"]];
    let text = places.into_iter().find_map(Value::as_str)?;
    Some(text.to_owned())
}

fn title_of(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once("<title>")?;
    let (title, _) = rest.split_once("</title>")?;
    Some(title.trim()).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_to_come_again_is_read_in_all_its_spellings() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (name, value, seconds) in [
            ("retry-after-ms", "1500", Some(1.5)),
            ("retry-after", "20", Some(20.0)),
            ("retry-after", "Thu, 01 Jan 2026 00:01:00 GMT", Some(60.0)),
            ("retry-after", "Thu, 01 Jan 2020 00:01:00 GMT", None),
            ("retry-after", "-3", None),
            ("retry-after", "soon", None),
            ("x-other", "3", None),
        ] {
            let headers = [(name.parse().unwrap(), value.parse().unwrap())];
            let headers: HeaderMap = HeaderMap::from_iter(headers);
            assert_eq!(retry_after(&headers, now).map(|it| it.as_secs_f64()), seconds, "{value}");
        }
    }

    #[test]
    fn services_say_what_is_wrong_in_many_places() {
        for (body, text) in [
            (r#"{"error": {"message": "a"}}"#, Some("a")),
            (r#"[{"error": {"message": "b"}}]"#, Some("b")),
            (r#"{"error": "c"}"#, Some("c")),
            (r#"{"message": "d"}"#, Some("d")),
            (r#"{"detail": "e"}"#, Some("e")),
            ("{}", None),
            ("[]", None),
        ] {
            assert_eq!(message_of(&serde_json::from_str(body).unwrap()).as_deref(), text);
        }
    }
}
