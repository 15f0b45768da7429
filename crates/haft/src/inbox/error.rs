//! Why there is no answer, and why an answer is not taken.

use std::time::Duration;

use crate::error::{Violation, because, human, sentence};

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Nobody answered in time.
    #[error("nobody answered within {}", human(*after))]
    Expired {
        /// How long it waited.
        after: Duration,
    },
    /// Somebody refused to answer.
    #[error("a person refused to answer{}", because(reason.as_deref()))]
    Refused {
        /// In their words.
        reason: Option<String>,
    },
    /// Nobody can be asked here.
    #[error("there is nobody here who could be asked")]
    Unattended,
    /// Only the client that made the call could be asked, and it cannot.
    #[error(
        "the client that made the call cannot be asked, for it does not declare `elicitation`, and nobody else is \
         here; use a client that does, or `haft serve`, whose inbox people can answer"
    )]
    Formless,
    /// Only the client that made the call could be asked, and it failed.
    #[error("the client that made the call was asked and gave no usable answer: {problem}")]
    Client {
        /// What went wrong there.
        problem: String,
    },
    /// Too many questions wait already.
    #[error("too many questions wait for people already: {reason}, the limit")]
    Full {
        /// Which limit.
        reason: String,
    },
    /// The schema of the answer cannot be used.
    #[error("the schema of the answer cannot be used: {problem}")]
    Schema {
        /// What is wrong with it.
        problem: String,
    },
}

impl NoAnswer {
    /// What to do next.
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Expired { .. } => {
                "go on without the answer or ask again later; `inbox.timeout` says how long a \
                 question waits"
                    .to_owned()
            }
            Self::Refused { .. } => "go on without the answer, or do something else".to_owned(),
            Self::Unattended => {
                "ask where there is a terminal, or through `haft serve`, whose inbox people can see and answer"
                    .to_owned()
            }
            // What else can be done is in the message: a client sees no more than that.
            Self::Formless => "go on without the answer".to_owned(),
            Self::Client { .. } => {
                "go on without the answer or ask again more simply, such as with `options`; or connect the client \
                 to `haft serve`, whose inbox people can see and answer"
                    .to_owned()
            }
            Self::Full { .. } => {
                "answer or refuse what waits: `GET /api/v1/inbox` lists it".to_owned()
            }
            Self::Schema { .. } => "send a JSON Schema (2020-12), or none".to_owned(),
        })
    }
}

/// Why an answer is not taken. The question stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// There is no such question, or not any more.
    #[error("no such question is open")]
    Unknown,
    /// The answer is not one of those that are possible.
    #[error("the answer does not fit: {}", sentence(violations))]
    Invalid {
        /// Every place where it differs.
        violations: Vec<Violation>,
    },
}

impl AnswerError {
    /// There is an answer, and nothing in it.
    pub(crate) fn missing() -> Self {
        let problem = "there is none".to_owned();
        Self::Invalid { violations: vec![Violation { pointer: String::new(), problem }] }
    }
}
