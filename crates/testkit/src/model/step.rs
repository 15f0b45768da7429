//! The answer of a scripted model to one request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::request::AskedModel;

/// One line of the script: the answer to one request.
#[derive(Debug, Clone)]
pub struct Step(pub(super) Kind);

#[derive(Clone)]
pub(super) enum Kind {
    Answer(Answer),
    Status { status: u16, body: Option<String>, headers: Vec<(String, String)> },
    Body(String),
    Silence,
    Endless { piece: String, pause: Duration },
    By(Arc<dyn Fn(&AskedModel) -> Step + Send + Sync>),
}

/// One whole answer of a model.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub reasoning: Option<String>,
    pub text: String,
    pub calls: Vec<Call>,
    pub stop: Option<String>,
    pub usage: (u64, u64),
    pub ids: Ids,
    pub end: End,
    pub streamed: bool,
}

/// A tool that the model calls, with its arguments as the text it writes.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub name: String,
    pub arguments: String,
}

/// The ids of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ids {
    /// Each has its own, over the whole script.
    Own,
    /// There are none.
    Missing,
    /// They have some, and all claim to be the first (`index: 0`). OpenAI's format only.
    AllFirst,
}

/// The end of the stream after the last token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Proper,
    /// The connection is lost.
    Lost,
    /// The body ends as if nothing were missing.
    Early,
    /// Only the mark after the end is missing. OpenAI's format only; in others, nothing is.
    Unmarked,
    /// Nothing comes any more.
    Silent,
}

impl End {
    /// Returns true if the answer comes with its end.
    pub(super) fn is_said(self) -> bool {
        matches!(self, Self::Proper | Self::Unmarked)
    }
}

impl Step {
    /// The model answers with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::answer(Answer { text: text.into(), ..Answer::default() })
    }

    /// The model calls one tool. More with [`and_call`](Self::and_call).
    pub fn call(name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        Self::answer(Answer::default()).and_call(name, arguments)
    }

    /// The model calls one tool and writes this text as arguments, JSON or not.
    pub fn call_raw(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let call = Call { name: name.into(), arguments: arguments.into() };
        Self::answer(Answer { calls: vec![call], ..Answer::default() })
    }

    /// The model calls these tools in one answer.
    pub fn calls<'n>(calls: impl IntoIterator<Item = (&'n str, Value)>) -> Self {
        let begin = Self::answer(Answer::default());
        calls.into_iter().fold(begin, |step, (name, arguments)| step.and_call(name, arguments))
    }

    /// The service answers with this status and an error as the format has it.
    pub fn status(status: u16) -> Self {
        Self(Kind::Status { status, body: None, headers: Vec::new() })
    }

    /// The service answers 200 with this body, whatever it is.
    pub fn body(body: impl Into<String>) -> Self {
        Self(Kind::Body(body.into()))
    }

    /// The service takes the request and never answers.
    pub fn silence() -> Self {
        Self(Kind::Silence)
    }

    /// The answer depends on what was asked, such as on [`AskedModel::results`].
    pub fn by(decide: impl Fn(&AskedModel) -> Step + Send + Sync + 'static) -> Self {
        Self(Kind::By(Arc::new(decide)))
    }

    /// The service answers with this again and again, so long apart, and never ends.
    pub fn endless(piece: impl Into<String>, pause: Duration) -> Self {
        Self(Kind::Endless { piece: piece.into(), pause })
    }

    fn answer(answer: Answer) -> Self {
        Self(Kind::Answer(answer))
    }

    /// It calls this tool as well.
    #[must_use]
    pub fn and_call(self, name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        let call = Call { name: name.into(), arguments: arguments.into().to_string() };
        self.with(|answer| answer.calls.push(call))
    }

    /// It writes this text before its calls.
    #[must_use]
    pub fn saying(self, text: impl Into<String>) -> Self {
        self.with(|answer| answer.text = text.into())
    }

    /// It thinks this before everything else.
    #[must_use]
    pub fn thinking(self, text: impl Into<String>) -> Self {
        self.with(|answer| answer.reasoning = Some(text.into()))
    }

    /// It stops for this reason, in the format's word, such as `length` or `max_tokens`.
    #[must_use]
    pub fn stopped_by(self, reason: impl Into<String>) -> Self {
        self.with(|answer| answer.stop = Some(reason.into()))
    }

    /// Sets the token usage; 10 and 5 by default.
    #[must_use]
    pub fn costing(self, input: u64, output: u64) -> Self {
        self.with(|answer| answer.usage = (input, output))
    }

    /// Its calls have no ids (OpenAI's format; Anthropic's always has some,
    /// Gemini's and Ollama's never).
    #[must_use]
    pub fn without_ids(self) -> Self {
        self.with(|answer| answer.ids = Ids::Missing)
    }

    /// All its calls come as number 0, as some services that speak OpenAI's format send them.
    #[must_use]
    pub fn all_first(self) -> Self {
        self.with(|answer| answer.ids = Ids::AllFirst)
    }

    /// The connection is lost after the last token but before the stream's proper end.
    #[must_use]
    pub fn then_lost(self) -> Self {
        self.with(|answer| answer.end = End::Lost)
    }

    /// The body ends there, as if that were all.
    #[must_use]
    pub fn then_over(self) -> Self {
        self.with(|answer| answer.end = End::Early)
    }

    /// The mark that follows the end of a stream is left out, as some services that speak OpenAI's format do.
    #[must_use]
    pub fn without_mark(self) -> Self {
        self.with(|answer| answer.end = End::Unmarked)
    }

    /// Nothing more comes, and the connection stays open.
    #[must_use]
    pub fn then_silent(self) -> Self {
        self.with(|answer| answer.end = End::Silent)
    }

    /// The whole answer as one JSON body, though a stream was asked for.
    #[must_use]
    pub fn not_streamed(self) -> Self {
        self.with(|answer| answer.streamed = false)
    }

    /// The error's body, in place of the format's own.
    #[must_use]
    pub fn with_body(mut self, text: impl Into<String>) -> Self {
        match &mut self.0 {
            Kind::Status { body, .. } => *body = Some(text.into()),
            other => panic!("only a status has such a body, not {other:?}"),
        }
        self
    }

    /// A header of the error, such as `retry-after`.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        match &mut self.0 {
            Kind::Status { headers, .. } => headers.push((name.to_owned(), value.to_owned())),
            other => panic!("only a status has headers, not {other:?}"),
        }
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        match &mut self.0 {
            Kind::Answer(answer) => change(answer),
            other => panic!("{other:?} is no answer of a model"),
        }
        self
    }
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            reasoning: None,
            text: String::new(),
            calls: Vec::new(),
            stop: None,
            usage: (10, 5),
            ids: Ids::Own,
            end: End::Proper,
            streamed: true,
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(answer) => answer.fmt(f),
            Self::Status { status, .. } => write!(f, "status {status}"),
            Self::Body(body) => write!(f, "body {body:?}"),
            Self::Silence => f.write_str("silence"),
            Self::Endless { .. } => f.write_str("no end"),
            Self::By(_) => f.write_str("a function"),
        }
    }
}

/// A string in a few pieces, as a model writes it.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    const PIECE_CHARS: usize = 7;
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(PIECE_CHARS).map_or(rest.len(), |(at, _)| at);
        let (piece, more) = rest.split_at(end);
        pieces.push(piece);
        rest = more;
    }
    pieces
}
