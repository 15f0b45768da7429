//! Why a call fails: the cause first, then the remedy.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::name::NAME_BYTES_MAX;
#[cfg(feature = "mcp")]
use crate::redact::Redactor;

/// The fixed set of error codes. A program may rely on the spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Code {
    /// No tool of that name is offered.
    UnknownTool,
    /// Policy refuses the call.
    Denied,
    /// The arguments do not fit the tool's input schema. The tool did not run.
    ValidationError,
    /// The answer does not fit the tool's output schema. It was not handed on.
    OutputValidationError,
    /// Too many calls are running or waiting.
    Busy,
    /// The tool gave no answer in time and was stopped.
    Timeout,
    /// The caller gave up.
    Cancelled,
    /// The tool ran and failed, or could not be run.
    ToolExecutionError,
    /// What the call needs (a server, the log) is out of reach.
    ServiceUnavailable,
    /// The other side broke the protocol.
    ProtocolError,
    /// The connection was lost after the request was sent; the tool may have run.
    OutcomeUnknown,
    /// Haft is shutting down.
    Stopping,
}

impl Code {
    /// The code as programs read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "UnknownTool",
            Self::Denied => "Denied",
            Self::ValidationError => "ValidationError",
            Self::OutputValidationError => "OutputValidationError",
            Self::Busy => "Busy",
            Self::Timeout => "Timeout",
            Self::Cancelled => "Cancelled",
            Self::ToolExecutionError => "ToolExecutionError",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::ProtocolError => "ProtocolError",
            Self::OutcomeUnknown => "OutcomeUnknown",
            Self::Stopping => "Stopping",
        }
    }
}

/// How every text about a failure on the way to an MCP server begins; models know it by that.
pub const MCP_ERROR: &str = "MCP error: ";

/// Why one call failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// No tool of that name is offered.
    #[error("no tool is named `{tool}`")]
    UnknownTool {
        /// The name that was asked for.
        tool: String,
        /// The nearest name that exists.
        nearest: Option<String>,
    },
    /// The name is longer than any tool's.
    #[error(
        "no tool is named `{tool}`: the name has {bytes} bytes, and names have at most {NAME_BYTES_MAX}"
    )]
    LongName {
        /// The beginning of the name.
        tool: String,
        /// How long it is.
        bytes: usize,
    },
    /// The arguments do not fit the input schema.
    #[error("the arguments of `{tool}` are invalid: {}", sentence(violations))]
    InvalidInput {
        /// The tool that was called.
        tool: String,
        /// Every place where the arguments differ from the schema.
        violations: Vec<Violation>,
    },
    /// The arguments are not an object, not JSON, too deep or repeat a key.
    #[error("the arguments of `{tool}` cannot be read: {problem}")]
    UnreadableInput {
        /// The tool that was called.
        tool: String,
        /// What is wrong with them.
        problem: String,
    },
    /// The answer does not fit the output schema.
    #[error("the answer of `{tool}` does not fit its output schema: {}", sentence(violations))]
    InvalidOutput {
        /// The tool that was called.
        tool: String,
        /// Every place where the answer differs from the schema.
        violations: Vec<Violation>,
    },
    /// A person has to agree to each call of the tool, and nobody did.
    #[error("`{tool}` runs only when a person agrees to the call (`approval: ask`)")]
    ApprovalNeeded {
        /// The tool that was called.
        tool: String,
        /// How whoever called can have it run.
        how: &'static str,
    },
    /// A person was asked to agree to the call and did not.
    #[error("a person refused the call of `{tool}`{}", because(reason.as_deref()))]
    Refused {
        /// The tool that was called.
        tool: String,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// A person was asked to agree to the call, and nobody answered.
    #[error("nobody agreed to the call of `{tool}` within {} (`approval: ask`)", human(*after))]
    Unanswered {
        /// The tool that was called.
        tool: String,
        /// How long the question waited.
        after: Duration,
    },
    /// A limit is reached and the call may not or need not wait.
    #[error("`{tool}` is busy: {reason}")]
    Busy {
        /// The tool that was called.
        tool: String,
        /// Which limit, and how full it is.
        reason: String,
        /// Which setting to change.
        setting: &'static str,
    },
    /// No answer in time.
    #[error("`{tool}` gave no answer within {} and was stopped{}", human(*after), also(diagnosis.as_ref()))]
    Timeout {
        /// The tool that was called.
        tool: String,
        /// The limit that was in force.
        after: Duration,
        /// The MCP server that runs the tool.
        server: Option<String>,
        /// What the tool knows about the reason.
        diagnosis: Option<Diagnosis>,
    },
    /// The caller gave up, or asked for the call to be cancelled.
    #[error("the call of `{tool}` was cancelled")]
    Cancelled {
        /// The tool that was called.
        tool: String,
    },
    /// A backend failed.
    #[error("{failure}")]
    Failed {
        /// The tool that was called.
        tool: String,
        /// What the backend says.
        failure: Box<ToolFailure>,
    },
    /// The execution log cannot be written and `log.on_failure` is `refuse`.
    #[error(
        "the call of `{tool}` was refused because the execution log cannot be written: {problem}"
    )]
    LogUnavailable {
        /// The tool that was called.
        tool: String,
        /// What the operating system says.
        problem: String,
    },
    /// Haft is shutting down.
    #[error("the call of `{tool}` was ended: Haft is shutting down")]
    Stopping {
        /// The tool that was called.
        tool: String,
    },
}

/// The likely reason of a failure, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// What happened.
    pub problem: String,
    /// What to do next.
    pub remedy: String,
}

fn also(diagnosis: Option<&Diagnosis>) -> String {
    diagnosis.map(|it| format!("; {}", it.problem)).unwrap_or_default()
}

/// One place where a value differs from its schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// JSON pointer to the place; the empty string is the whole value.
    pub pointer: String,
    /// What is wrong there.
    pub problem: String,
}

/// What a backend reports when a tool could not be run or did not finish.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ToolFailure {
    /// The tool ran and failed, or could not be started.
    #[error("{message}")]
    Execution {
        /// What happened to which thing, and why.
        message: String,
        /// What to do next.
        remedy: Option<String>,
        /// Path, exit code, traceback, tail of stderr.
        details: Value,
    },
    /// What the tool needs is out of reach.
    #[error("{message}")]
    Unavailable {
        /// What happened to which thing, and why.
        message: String,
        /// What to do next.
        remedy: Option<String>,
        /// Facts for a program: the server, the tail of its stderr.
        details: Value,
    },
    /// The other side broke the protocol.
    #[error("{message}")]
    Protocol {
        /// What was wrong with which message.
        message: String,
        /// What to do next.
        remedy: Option<String>,
        /// Facts for a program: the server, the tail of its stderr.
        details: Value,
    },
    /// A person the tool asked did not want to answer.
    #[error("{message}")]
    Refused {
        /// Who refused what, and why.
        message: String,
        /// What to do next.
        remedy: Option<String>,
        /// Facts for a program: the reason.
        details: Value,
    },
    /// A person the tool asked did not answer in time.
    #[error("{message}")]
    Expired {
        /// What did not come, and for how long it was waited for.
        message: String,
        /// What to do next.
        remedy: Option<String>,
        /// Facts for a program: how long it was waited for.
        details: Value,
    },
    /// The connection was lost after the request was sent.
    #[error("{message}")]
    OutcomeUnknown {
        /// What happened to which thing.
        message: String,
        /// What to do next, where there is more to do than to look whether it took effect.
        remedy: Option<String>,
        /// Facts for a program: the server, the tail of its stderr.
        details: Value,
    },
}

impl ToolFailure {
    /// A plain execution error without remedy or details.
    pub fn execution(message: impl Into<String>) -> Self {
        Self::Execution { message: message.into(), remedy: None, details: Value::Null }
    }

    /// The same failure with its secrets masked: it may quote what a server said.
    #[cfg(feature = "mcp")]
    pub(crate) fn without_secrets(mut self, redactor: &Redactor) -> Self {
        let (message, details) = match &mut self {
            Self::Execution { message, details, .. }
            | Self::Unavailable { message, details, .. }
            | Self::OutcomeUnknown { message, details, .. }
            | Self::Refused { message, details, .. }
            | Self::Expired { message, details, .. }
            | Self::Protocol { message, details, .. } => (message, details),
        };
        *message = redactor.text(message).into_owned();
        let masked = redactor.json(&details.to_string()).into_owned();
        *details = serde_json::from_str(&masked).unwrap_or(Value::Null);
        self
    }
}

impl CallError {
    /// The code a program acts on.
    pub fn code(&self) -> Code {
        match self {
            Self::UnknownTool { .. } => Code::UnknownTool,
            Self::LongName { .. } | Self::InvalidInput { .. } | Self::UnreadableInput { .. } => {
                Code::ValidationError
            }
            Self::InvalidOutput { .. } => Code::OutputValidationError,
            Self::ApprovalNeeded { .. } | Self::Refused { .. } | Self::Unanswered { .. } => {
                Code::Denied
            }
            Self::Busy { .. } => Code::Busy,
            Self::Timeout { .. } => Code::Timeout,
            Self::Cancelled { .. } => Code::Cancelled,
            Self::LogUnavailable { .. } => Code::ServiceUnavailable,
            Self::Stopping { .. } => Code::Stopping,
            Self::Failed { failure, .. } => match &**failure {
                ToolFailure::Execution { .. } => Code::ToolExecutionError,
                ToolFailure::Unavailable { .. } => Code::ServiceUnavailable,
                ToolFailure::Protocol { .. } => Code::ProtocolError,
                ToolFailure::Refused { .. } => Code::Denied,
                ToolFailure::Expired { .. } => Code::Timeout,
                ToolFailure::OutcomeUnknown { .. } => Code::OutcomeUnknown,
            },
        }
    }

    /// What to do next.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::UnknownTool { nearest: Some(nearest), .. } => {
                Some(format!("did you mean `{nearest}`? `haft tools list` shows every tool"))
            }
            Self::UnknownTool { .. } | Self::LongName { .. } => {
                Some("`haft tools list` shows every tool".into())
            }
            Self::InvalidInput { tool, .. } => {
                Some(format!("`haft tools show {tool}` shows the input schema"))
            }
            Self::UnreadableInput { .. } => {
                Some("send one JSON object, each key once, such as {\"city\": \"Seoul\"}".into())
            }
            Self::InvalidOutput { tool, .. } => Some(format!(
                "mend the tool or its `output_schema`; `haft log --tool {tool}` shows what it answered"
            )),
            Self::ApprovalNeeded { how, .. } => {
                Some(format!("{how}, or set `approval: auto` for the tool"))
            }
            Self::Refused { .. } => Some("do without it, or ask them what they would allow".into()),
            Self::Unanswered { .. } => Some(
                "call again when somebody looks at the inbox, raise `inbox.timeout`, or set \
                 `approval: auto` for the tool"
                    .into(),
            ),
            Self::Busy { setting, .. } => {
                Some(format!("try again later, or raise `{setting}` in the configuration"))
            }
            Self::Timeout { diagnosis: Some(diagnosis), .. } => Some(diagnosis.remedy.clone()),
            Self::Timeout { tool, server, diagnosis: None, .. } => {
                let look = server.as_ref().map(|server| {
                    format!(", or look at its server: `haft servers show {server}`")
                });
                Some(format!(
                    "raise `timeout` for `{tool}` (`haft explain {tool}` shows where it is set){}",
                    look.unwrap_or_default()
                ))
            }
            Self::Cancelled { .. } => None,
            Self::LogUnavailable { .. } => Some(
                "make room or fix the permissions of `log.dir`, or set `log.on_failure: degrade` to \
                 run tools without a record"
                    .into(),
            ),
            Self::Stopping { .. } => Some("call again when Haft is back".into()),
            Self::Failed { failure, .. } => match &**failure {
                ToolFailure::Execution { remedy, .. }
                | ToolFailure::Unavailable { remedy, .. }
                | ToolFailure::Refused { remedy, .. }
                | ToolFailure::Expired { remedy, .. }
                | ToolFailure::Protocol { remedy, .. } => remedy.clone(),
                ToolFailure::OutcomeUnknown { remedy, .. } => {
                    let check = "check whether the tool took effect before you call it again";
                    Some(remedy.clone().unwrap_or_else(|| check.to_owned()))
                }
            },
        }
    }

    /// Facts for a program.
    pub fn details(&self) -> Value {
        match self {
            Self::InvalidInput { violations, .. } | Self::InvalidOutput { violations, .. } => {
                json!({ "violations": violations })
            }
            Self::Timeout { after, .. } => json!({ "timeout_ms": millis(*after) }),
            Self::Failed { failure, .. } => match &**failure {
                ToolFailure::Execution { details, .. }
                | ToolFailure::Unavailable { details, .. }
                | ToolFailure::Refused { details, .. }
                | ToolFailure::Expired { details, .. }
                | ToolFailure::Protocol { details, .. }
                | ToolFailure::OutcomeUnknown { details, .. } => details.clone(),
            },
            Self::UnknownTool { .. }
            | Self::LongName { .. }
            | Self::UnreadableInput { .. }
            | Self::ApprovalNeeded { .. }
            | Self::Refused { .. }
            | Self::Unanswered { .. }
            | Self::Busy { .. }
            | Self::Cancelled { .. }
            | Self::LogUnavailable { .. }
            | Self::Stopping { .. } => Value::Null,
        }
    }
}

/// The innermost error says what happened; those around it only where.
pub fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Whole milliseconds, saturating: no duration here comes near the limit.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A duration the way the configuration spells it: `30s`, `500ms`, `1.5s`.
pub fn human(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis.is_multiple_of(1000) {
        format!("{}s", millis / 1000)
    } else if millis < 1000 {
        format!("{millis}ms")
    } else {
        format!("{}s", duration.as_secs_f64())
    }
}

/// A reason as the end of a sentence.
pub(crate) fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

pub(crate) fn sentence(violations: &[Violation]) -> String {
    let shown: Vec<String> = violations
        .iter()
        .take(5)
        .map(|Violation { pointer, problem }| match pointer.as_str() {
            "" => problem.clone(),
            pointer => format!("at `{pointer}`: {problem}"),
        })
        .collect();
    let more = violations.len().saturating_sub(shown.len());
    let tail = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{tail}", shown.join("; "))
}
