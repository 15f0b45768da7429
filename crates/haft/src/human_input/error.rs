//! Errors of questions and answers.

use std::time::Duration;

use crate::error::{Violation, because, sentence};
use haft_config::Remedy;
use haft_text::human;

/// Reasons why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HumanInputError {
    /// No person answered in time.
    #[error("no answer came within {}", human(*after))]
    Expired {
        /// The timeout.
        after: Duration,
    },
    /// A person refused to answer.
    #[error("a person refused to answer{}", because(reason.as_deref()))]
    Refused {
        /// Their reason.
        reason: Option<String>,
    },
    /// No person can be asked here.
    #[error("no person can be asked here")]
    Unattended,
    /// Only the client could be asked, and it does not support elicitation.
    #[error(
        "the client that made the call cannot be asked: it does not declare `elicitation`; \
         use a client that does, or a service, whose inbox people can answer"
    )]
    Formless,
    /// Only the client could be asked, and the request failed.
    #[error("the client that made the call was asked and gave no usable answer: {problem}")]
    Client {
        /// The failure.
        problem: String,
    },
    /// Too many questions are open.
    #[error("too many questions wait for people already: {reason}, the limit")]
    Full {
        /// The limit.
        reason: String,
    },
    /// The schema of the answer is invalid.
    #[error("the schema of the answer cannot be used: {problem}")]
    Schema {
        /// The problem of the schema.
        problem: String,
    },
}

impl HumanInputError {
    /// The remedy.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Expired { .. } => {
                "continue without the answer or ask again later; `inbox.timeout` sets how long a \
                 question waits"
                    .into()
            }
            Self::Refused { .. } => "continue without the answer, or do something else".into(),
            Self::Unattended => {
                Remedy::UseInbox { alternative: "ask where there is a terminal".to_owned() }
            }
            // The message holds the other remedies, because a client sees only the message.
            Self::Formless => "continue without the answer".into(),
            Self::Client { .. } => Remedy::UseInbox {
                alternative:
                    "continue without the answer or ask again more simply, such as with `options`"
                        .to_owned(),
            },
            Self::Full { .. } => Remedy::ClearInbox,
            Self::Schema { .. } => "send a JSON Schema (2020-12), or none".into(),
        }
    }
}

/// Reasons why an answer is rejected. The question stays open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The question does not exist, or is closed.
    #[error("no such question is open")]
    Unknown,
    /// The answer does not match the options or the schema.
    #[error("the answer does not fit: {}", sentence(violations))]
    Invalid {
        /// Every place where it differs.
        violations: Vec<Violation>,
    },
}

impl AnswerError {
    /// The answer is empty.
    pub(crate) fn missing() -> Self {
        let problem = "there is none".to_owned();
        Self::Invalid { violations: vec![Violation { pointer: String::new(), problem }] }
    }
}
