//! Errors of a call: the cause first, then the remedy.

use std::time::Duration;

use haft_text::human;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use haft_config::schema::Violation;

use crate::limit_reached::LimitReached;
use haft_config::Remedy;
use haft_config::redact::Redactor;
use haft_text::name::NAME_BYTES_MAX;

/// The fixed set of error codes. A program may rely on the spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Code {
    /// No tool of that name is offered.
    UnknownTool,
    /// The policy denies the call.
    Denied,
    /// The arguments do not match the tool's input schema. The tool did not run.
    ValidationError,
    /// The output does not match the tool's output schema. It was discarded.
    OutputValidationError,
    /// Too many calls are running or waiting.
    Busy,
    /// The key, the server or the tool has reached its rate or its quota.
    RateLimited,
    /// The tool gave no answer in time and was stopped.
    Timeout,
    /// The caller cancelled the call.
    Cancelled,
    /// The tool ran and failed, or could not be run.
    ToolExecutionError,
    /// A dependency of the call (a server, the log) is unavailable.
    ServiceUnavailable,
    /// The peer violated the protocol.
    ProtocolError,
    /// The connection was lost after the request was sent; the tool may have run.
    OutcomeUnknown,
    /// The definition of the tool is not the approved one. The tool did not run.
    DefinitionChanged,
    /// Haft is shutting down.
    Stopping,
}

impl Code {
    /// Every code.
    ///
    /// ```
    /// assert!(haft::Code::ALL.contains(&haft::Code::Timeout));
    /// ```
    pub const ALL: [Self; 14] = [
        Self::UnknownTool,
        Self::Denied,
        Self::ValidationError,
        Self::OutputValidationError,
        Self::Busy,
        Self::RateLimited,
        Self::Timeout,
        Self::Cancelled,
        Self::ToolExecutionError,
        Self::ServiceUnavailable,
        Self::ProtocolError,
        Self::OutcomeUnknown,
        Self::DefinitionChanged,
        Self::Stopping,
    ];

    /// The section of the documentation about this code.
    ///
    /// ```
    /// assert_eq!(haft::Code::Timeout.docs(), "docs/troubleshooting.md#timeout");
    /// ```
    pub fn docs(self) -> String {
        format!("docs/troubleshooting.md#{}", self.as_str().to_lowercase())
    }

    /// The code as a string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "UnknownTool",
            Self::Denied => "Denied",
            Self::ValidationError => "ValidationError",
            Self::OutputValidationError => "OutputValidationError",
            Self::Busy => "Busy",
            Self::RateLimited => "RateLimited",
            Self::Timeout => "Timeout",
            Self::Cancelled => "Cancelled",
            Self::ToolExecutionError => "ToolExecutionError",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::ProtocolError => "ProtocolError",
            Self::OutcomeUnknown => "OutcomeUnknown",
            Self::DefinitionChanged => "DefinitionChanged",
            Self::Stopping => "Stopping",
        }
    }
}

/// The stage that a call reached before it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// The tool did not run.
    Refused(CallRefusal),
    /// The tool had its turn, or the caller or Haft ended the call.
    #[default]
    Failed,
    /// The tool may have taken effect; its answer was lost.
    OutcomeUnknown,
}

/// Why a call did not reach its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallRefusal {
    /// No tool of that name is offered.
    UnknownTool,
    /// The name or the arguments cannot be read.
    Unreadable,
    /// The arguments do not fit the input schema.
    Invalid,
    /// No person approved the call.
    NotApproved,
    /// A rule denies the call.
    Denied,
    /// The definition of the tool is not the approved one.
    DefinitionChanged,
    /// A limit is reached.
    Busy,
    /// A rate or a quota is reached. Calls can pass again after this time.
    RateLimited(Duration),
    /// The call could not be recorded.
    NotLogged,
}

/// The JSON-RPC error that an MCP server answered a call with.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcFailure {
    /// The code.
    pub code: i64,
    /// The message, as the server wrote it.
    pub message: String,
    /// The data, if there is any.
    pub data: Option<Value>,
}

/// Prefix of every message about a failed MCP server; models recognize it.
pub(crate) const MCP_ERROR: &str = "MCP error: ";

/// The reasons why a call fails.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No tool of that name is offered.
    #[error("no tool is named `{tool}`")]
    UnknownTool {
        /// The requested name.
        tool: String,
        /// The nearest existing name.
        nearest: Option<String>,
    },
    /// The name is longer than any tool's.
    #[error(
        "no tool is named `{tool}`: the name has {bytes} bytes, and names have at most {NAME_BYTES_MAX}"
    )]
    LongName {
        /// The beginning of the name.
        tool: String,
        /// Its length.
        bytes: usize,
    },
    /// The arguments do not match the input schema.
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
        /// The parse error.
        problem: String,
    },
    /// The output does not match the output schema.
    #[error("the answer of `{tool}` does not fit its output schema: {}", sentence(violations))]
    InvalidOutput {
        /// The tool that was called.
        tool: String,
        /// Every place where the output differs from the schema.
        violations: Vec<Violation>,
    },
    /// Each call of the tool needs approval, and none was given.
    #[error("`{tool}` runs only when a person agrees to the call (`approval: ask`)")]
    ApprovalNeeded {
        /// The tool that was called.
        tool: String,
        /// The way for this caller to get approval.
        how: &'static str,
    },
    /// A person denied the call.
    #[error("a person refused the call of `{tool}`{}", because(reason.as_deref()))]
    Refused {
        /// The tool that was called.
        tool: String,
        /// The reason they gave.
        reason: Option<String>,
    },
    /// No person answered the approval request in time.
    #[error("no person approved the call of `{tool}` within {} (`approval: ask`)", human(*after))]
    Unanswered {
        /// The tool that was called.
        tool: String,
        /// The timeout of the question.
        after: Duration,
    },
    /// The definition of the tool is not the one that the lock file approves.
    #[error("`{tool}` is blocked: its definition {}", differs(approved.as_deref()))]
    DefinitionChanged {
        /// The tool that was called.
        tool: String,
        /// Its server.
        server: String,
        /// Its name on the server.
        name: String,
        /// The hash of the approved definition; `None` if there is none.
        approved: Option<String>,
        /// The hash of the current definition.
        current: String,
    },
    /// A limit is reached and the call cannot wait.
    #[error("`{tool}` is busy: {reason}")]
    Busy {
        /// The tool that was called.
        tool: String,
        /// The limit and its current use.
        reason: String,
        /// The setting that controls the limit.
        setting: &'static str,
    },
    /// A rate or a quota is reached.
    #[error("`{tool}` was not called: {reached}")]
    RateLimited {
        /// The tool that was called.
        tool: String,
        /// The limit.
        reached: Box<LimitReached>,
    },
    /// The counts of a quota cannot be read, so it is unknown if it is used up.
    #[error("`{tool}` was not called: its quota cannot be checked: `{path}`: {problem}")]
    QuotaUnknown {
        /// The tool that was called.
        tool: String,
        /// The file of the counts.
        path: String,
        /// The error of reading it.
        problem: String,
    },
    /// No answer in time.
    #[error("`{tool}` gave no answer within {} and was stopped{}", human(*after), also(diagnosis.as_ref()))]
    Timeout {
        /// The tool that was called.
        tool: String,
        /// The timeout that applied.
        after: Duration,
        /// The MCP server that runs the tool.
        server: Option<String>,
        /// The likely reason, from the tool.
        diagnosis: Option<Diagnosis>,
    },
    /// The caller cancelled the call.
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
        /// The failure that the backend reported.
        failure: Box<ToolFailure>,
    },
    /// The execution log cannot be written and `log.on_failure` is `refuse`.
    #[error(
        "the call of `{tool}` was refused because the execution log cannot be written: {problem}"
    )]
    LogUnavailable {
        /// The tool that was called.
        tool: String,
        /// The error of the operating system.
        problem: String,
    },
    /// A rule of the operator denies the call.
    #[error("the call of `{tool}` is denied by the rule `{rule}`{}", ruled(reason.as_deref(), problem.as_deref()))]
    DeniedByRule {
        /// The tool that was called.
        tool: String,
        /// The rule.
        rule: String,
        /// The reason that the rule gives.
        reason: Option<String>,
        /// The reason why the rule could not be evaluated.
        problem: Option<String>,
    },
    /// A rule of the operator requires approval of the call, and none was given.
    #[error("the rule `{rule}` lets `{tool}` run only when a person agrees to the call{}", because(reason.as_deref()))]
    RuleAsks {
        /// The tool that was called.
        tool: String,
        /// The rule.
        rule: String,
        /// The reason that the rule gives.
        reason: Option<String>,
        /// The way for this caller to get approval.
        how: &'static str,
    },
    /// Haft is shutting down.
    #[error("the call of `{tool}` was ended: Haft is shutting down")]
    Stopping {
        /// The tool that was called.
        tool: String,
    },
}

/// The likely reason of a failure, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The reason.
    pub problem: String,
    /// The remedy.
    pub remedy: Box<Remedy>,
}

/// The end of a sentence about a definition that is not the approved one.
fn differs(approved: Option<&str>) -> &'static str {
    match approved {
        Some(_) => "differs from the one that `haft.lock` approves",
        None => "is not approved in `haft.lock`",
    }
}

fn approval_remedy(server: &str, name: &str) -> Remedy {
    Remedy::ApproveDefinition { server: server.to_owned(), name: name.to_owned() }
}

fn also(diagnosis: Option<&Diagnosis>) -> String {
    diagnosis.map(|it| format!("; {}", it.problem)).unwrap_or_default()
}

/// A failure that a backend reports for a tool that could not run or did not finish.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ToolFailure {
    /// The tool ran and failed, or could not be started.
    #[error("{message}")]
    Execution {
        /// The failure, the item it concerns, and the cause.
        message: String,
        /// The remedy.
        remedy: Option<Box<Remedy>>,
        /// Path, exit code, traceback, tail of stderr.
        details: Value,
    },
    /// The MCP server answered with a JSON-RPC error.
    #[error("{message}")]
    Rejected {
        /// The failure, the item it concerns, and the cause.
        message: String,
        /// The remedy.
        remedy: Option<Box<Remedy>>,
        /// The server.
        server: String,
        /// Its error.
        error: Box<RpcFailure>,
    },
    /// The MCP server did not answer in time.
    #[error("{message}")]
    NoResponse {
        /// The missing response, and the time it was waited for.
        message: String,
        /// The remedy.
        remedy: Option<Box<Remedy>>,
        /// The server.
        server: String,
        /// The time that it had.
        after: Duration,
    },
    /// A dependency of the tool is unavailable.
    #[error("{message}")]
    Unavailable {
        /// The failure, the item it concerns, and the cause.
        message: String,
        /// The remedy.
        remedy: Option<Box<Remedy>>,
        /// Facts for a program: the server, the tail of its stderr.
        details: Value,
    },
    /// The peer violated the protocol.
    #[error("{message}")]
    Protocol {
        /// The invalid message and the violation.
        message: String,
        /// The remedy.
        remedy: Option<Box<Remedy>>,
        /// Facts for a program: the server, the tail of its stderr.
        details: Value,
    },
    /// A person refused to answer the tool's question.
    #[error("{message}")]
    Refused {
        /// The refusal and its reason.
        message: String,
        /// The remedy.
        remedy: Option<Box<Remedy>>,
        /// Facts for a program: the reason.
        details: Value,
    },
    /// No person answered the tool's question in time.
    #[error("{message}")]
    Expired {
        /// The missing answer and the timeout.
        message: String,
        /// The remedy.
        remedy: Option<Box<Remedy>>,
        /// Facts for a program: the timeout.
        details: Value,
    },
    /// The definition of the tool is not the one that the lock file approves.
    #[error("the definition of `{tool}` on `{server}` {}", differs(approved.as_deref()))]
    DefinitionChanged {
        /// The server.
        server: String,
        /// The tool's name on the server.
        tool: String,
        /// The hash of the approved definition; `None` if there is none.
        approved: Option<String>,
        /// The hash of the current definition.
        current: String,
    },
    /// The connection was lost after the request was sent.
    #[error("{message}")]
    OutcomeUnknown {
        /// The lost call.
        message: String,
        /// The remedy, beyond checking if the call took effect.
        remedy: Option<Box<Remedy>>,
        /// Facts for a program: the server, the tail of its stderr.
        details: Value,
    },
}

impl ToolFailure {
    /// Creates an execution error without remedy or details.
    ///
    /// ```
    /// let failure = haft::ToolFailure::execution("the printer is out of paper");
    /// assert_eq!(failure.to_string(), "the printer is out of paper");
    /// ```
    pub fn execution(message: impl Into<String>) -> Self {
        Self::Execution { message: message.into(), remedy: None, details: Value::Null }
    }

    /// Masks secrets, because a failure may quote a server.
    pub(crate) fn without_secrets(mut self, redactor: &Redactor) -> Self {
        match &mut self {
            Self::Execution { message, details, .. }
            | Self::Unavailable { message, details, .. }
            | Self::OutcomeUnknown { message, details, .. }
            | Self::Refused { message, details, .. }
            | Self::Expired { message, details, .. }
            | Self::Protocol { message, details, .. } => {
                *message = redactor.text(message).into_owned();
                mask(details, redactor);
            }
            Self::Rejected { message, error, .. } => {
                *message = redactor.text(message).into_owned();
                error.mask(redactor);
            }
            Self::NoResponse { message, .. } => *message = redactor.text(message).into_owned(),
            Self::DefinitionChanged { .. } => {}
        }
        self
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Execution { remedy, .. }
            | Self::Rejected { remedy, .. }
            | Self::NoResponse { remedy, .. }
            | Self::Unavailable { remedy, .. }
            | Self::Refused { remedy, .. }
            | Self::Expired { remedy, .. }
            | Self::Protocol { remedy, .. } => remedy.as_deref().cloned(),
            Self::OutcomeUnknown { remedy, .. } => {
                Some(remedy.as_deref().cloned().unwrap_or_else(|| {
                    "check whether the tool took effect before you call it again".into()
                }))
            }
            Self::DefinitionChanged { server, tool, .. } => Some(approval_remedy(server, tool)),
        }
    }

    /// Facts for a program.
    fn details(&self) -> Value {
        match self {
            Self::Execution { details, .. }
            | Self::Unavailable { details, .. }
            | Self::Refused { details, .. }
            | Self::Expired { details, .. }
            | Self::Protocol { details, .. }
            | Self::OutcomeUnknown { details, .. } => details.clone(),
            Self::Rejected { server, error, .. } => {
                let RpcFailure { code, message, data } = &**error;
                json!({"server": server, "rpc_code": code, "rpc_message": message, "data": data})
            }
            Self::NoResponse { server, after, .. } => {
                json!({"server": server, "timeout_ms": millis(*after)})
            }
            Self::DefinitionChanged { server, tool, approved, current } => {
                json!({"server": server, "tool": tool, "approved": approved, "current": current})
            }
        }
    }
}

impl RpcFailure {
    /// Masks the secrets that the server may have repeated.
    pub(crate) fn mask(&mut self, redactor: &Redactor) {
        self.message = redactor.text(&self.message).into_owned();
        if let Some(data) = &mut self.data {
            mask(data, redactor);
        }
    }
}

/// Masks secrets in a value that is shown.
pub(crate) fn mask(value: &mut Value, redactor: &Redactor) {
    let masked = redactor.json(&value.to_string()).into_owned();
    *value = serde_json::from_str(&masked).unwrap_or(Value::Null);
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
            Self::ApprovalNeeded { .. }
            | Self::Refused { .. }
            | Self::Unanswered { .. }
            | Self::DeniedByRule { .. }
            | Self::RuleAsks { .. } => Code::Denied,
            Self::DefinitionChanged { .. } => Code::DefinitionChanged,
            Self::Busy { .. } => Code::Busy,
            Self::RateLimited { .. } => Code::RateLimited,
            Self::Timeout { .. } => Code::Timeout,
            Self::Cancelled { .. } => Code::Cancelled,
            Self::LogUnavailable { .. } | Self::QuotaUnknown { .. } => Code::ServiceUnavailable,
            Self::Stopping { .. } => Code::Stopping,
            Self::Failed { failure, .. } => match &**failure {
                ToolFailure::Execution { .. } | ToolFailure::Rejected { .. } => {
                    Code::ToolExecutionError
                }
                ToolFailure::Unavailable { .. } | ToolFailure::NoResponse { .. } => {
                    Code::ServiceUnavailable
                }
                ToolFailure::Protocol { .. } => Code::ProtocolError,
                ToolFailure::Refused { .. } => Code::Denied,
                ToolFailure::Expired { .. } => Code::Timeout,
                ToolFailure::DefinitionChanged { .. } => Code::DefinitionChanged,
                ToolFailure::OutcomeUnknown { .. } => Code::OutcomeUnknown,
            },
        }
    }

    /// The remedy, as data that each edge renders in its own words.
    pub fn remedy(&self) -> Option<Remedy> {
        let remedy = match self {
            Self::UnknownTool { nearest, .. } => Remedy::FindTool { nearest: nearest.clone() },
            Self::LongName { .. } => Remedy::FindTool { nearest: None },
            Self::InvalidInput { tool, .. } => Remedy::ReadInputSchema { tool: tool.clone() },
            Self::UnreadableInput { .. } => {
                "send one JSON object, each key once, such as {\"city\": \"Seoul\"}".into()
            }
            Self::InvalidOutput { tool, .. } => Remedy::FixOutput { tool: tool.clone() },
            Self::ApprovalNeeded { how, .. } => {
                format!("{how}, or set `approval: auto` for the tool").into()
            }
            Self::DeniedByRule { problem, .. } => {
                Remedy::FindRule { is_faulty: problem.is_some() }
            }
            Self::RuleAsks { how, .. } => (*how).into(),
            Self::Refused { .. } => "do without it, or ask them what they would allow".into(),
            Self::Unanswered { .. } => {
                "call again when a person attends the inbox, raise `inbox.timeout`, or set \
                 `approval: auto` for the tool"
                    .into()
            }
            Self::DefinitionChanged { server, name, .. } => approval_remedy(server, name),
            Self::Busy { setting, .. } => {
                format!("try again later, or raise `{setting}` in the configuration").into()
            }
            Self::RateLimited { reached, .. } => format!(
                "try again in {}, or let the operator raise the `{}` of the {}",
                human(reached.retry_after.max(Duration::from_millis(1))),
                reached.kind.word(),
                reached.subject.word()
            )
            .into(),
            Self::QuotaUnknown { .. } => {
                "fix the file, or delete it to count the calls of today from zero".into()
            }
            Self::Timeout { diagnosis: Some(diagnosis), .. } => Remedy::clone(&diagnosis.remedy),
            Self::Timeout { tool, server, diagnosis: None, .. } => {
                Remedy::RaiseTimeout { tool: tool.clone(), server: server.clone() }
            }
            Self::Cancelled { .. } => return None,
            Self::LogUnavailable { .. } => {
                "make room or fix the permissions of `log.dir`, or set `log.on_failure: degrade` to \
                 run tools without a record"
                    .into()
            }
            Self::Stopping { .. } => "call again when Haft is back".into(),
            Self::Failed { failure, .. } => return failure.remedy(),
        };
        Some(remedy)
    }

    /// The stage that the call reached.
    pub fn stage(&self) -> Stage {
        match self {
            Self::UnknownTool { .. } => Stage::Refused(CallRefusal::UnknownTool),
            Self::LongName { .. } | Self::UnreadableInput { .. } => {
                Stage::Refused(CallRefusal::Unreadable)
            }
            Self::InvalidInput { .. } => Stage::Refused(CallRefusal::Invalid),
            Self::ApprovalNeeded { .. }
            | Self::Refused { .. }
            | Self::Unanswered { .. }
            | Self::RuleAsks { .. } => Stage::Refused(CallRefusal::NotApproved),
            Self::DeniedByRule { .. } => Stage::Refused(CallRefusal::Denied),
            Self::DefinitionChanged { .. } => Stage::Refused(CallRefusal::DefinitionChanged),
            Self::Busy { .. } | Self::QuotaUnknown { .. } => Stage::Refused(CallRefusal::Busy),
            Self::RateLimited { reached, .. } => {
                Stage::Refused(CallRefusal::RateLimited(reached.retry_after))
            }
            Self::LogUnavailable { .. } => Stage::Refused(CallRefusal::NotLogged),
            Self::Failed { failure, .. } => match &**failure {
                ToolFailure::OutcomeUnknown { .. } => Stage::OutcomeUnknown,
                ToolFailure::DefinitionChanged { .. } => {
                    Stage::Refused(CallRefusal::DefinitionChanged)
                }
                ToolFailure::Execution { .. }
                | ToolFailure::Rejected { .. }
                | ToolFailure::NoResponse { .. }
                | ToolFailure::Unavailable { .. }
                | ToolFailure::Refused { .. }
                | ToolFailure::Expired { .. }
                | ToolFailure::Protocol { .. } => Stage::Failed,
            },
            Self::InvalidOutput { .. }
            | Self::Timeout { .. }
            | Self::Cancelled { .. }
            | Self::Stopping { .. } => Stage::Failed,
        }
    }

    /// The error that the MCP server answered with.
    pub fn rpc(&self) -> Option<&RpcFailure> {
        match self {
            Self::Failed { failure, .. } => match &**failure {
                ToolFailure::Rejected { error, .. } => Some(error),
                _ => None,
            },
            _ => None,
        }
    }

    /// Facts for a program.
    pub fn details(&self) -> Value {
        match self {
            Self::InvalidInput { violations, .. } | Self::InvalidOutput { violations, .. } => {
                json!({ "violations": violations })
            }
            Self::DeniedByRule { rule, .. } | Self::RuleAsks { rule, .. } => {
                json!({ "rule": rule })
            }
            Self::Timeout { after, .. } => json!({ "timeout_ms": millis(*after) }),
            Self::RateLimited { reached, .. } => reached.details(),
            Self::Failed { failure, .. } => failure.details(),
            Self::DefinitionChanged { server, name, approved, current, .. } => {
                json!({"server": server, "tool": name, "approved": approved, "current": current})
            }
            Self::UnknownTool { .. }
            | Self::LongName { .. }
            | Self::UnreadableInput { .. }
            | Self::ApprovalNeeded { .. }
            | Self::Refused { .. }
            | Self::Unanswered { .. }
            | Self::Busy { .. }
            | Self::QuotaUnknown { .. }
            | Self::Cancelled { .. }
            | Self::LogUnavailable { .. }
            | Self::Stopping { .. } => Value::Null,
        }
    }
}

/// Whole milliseconds, saturating.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Formats a reason as the end of a sentence.
pub(crate) fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

/// Formats the reason of a rule as the end of a sentence.
fn ruled(reason: Option<&str>, problem: Option<&str>) -> String {
    match problem {
        Some(problem) => format!(", which could not be evaluated: {problem}"),
        None => because(reason),
    }
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
