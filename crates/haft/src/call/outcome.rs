//! The outcome of a call, as its log entry has it.

use crate::content::{Content, ToolOutput};
use crate::envelope::ErrorBody;
use crate::error::{CallError, Code, ToolFailure};
use crate::record::{Outcome, Outcomes, RecordSource};

/// The tool reported its own failure; its text is the message.
pub(super) fn said_error(output: &ToolOutput) -> ErrorBody {
    let texts: Vec<&str> = output
        .content
        .iter()
        .filter_map(|block| match block {
            Content::Text { text } => Some(text.as_str()),
            Content::Image { .. } | Content::Audio { .. } | Content::Resource { .. } => None,
        })
        .collect();
    let mut text = texts.join("\n");
    if text.is_empty() {
        "the tool reported a failure without a message".clone_into(&mut text);
    }
    let failure = Box::new(ToolFailure::execution(text));
    ErrorBody::from(&CallError::Failed { tool: String::new(), failure })
}

/// The outcome of each layer. A local tool has no protocol, so that layer stays `none`.
pub(super) fn outcomes(
    error: Option<&ErrorBody>,
    source: RecordSource,
    answered: bool,
) -> Outcomes {
    let rpc = if source == RecordSource::Mcp { Outcome::Ok } else { Outcome::NotReached };
    let ran = Outcomes { transport: Outcome::Ok, rpc, tool: Outcome::Ok, schema: Outcome::Ok };
    let Some(error) = error else { return ran };
    match error.code {
        Code::ValidationError => Outcomes { schema: Outcome::Failed, ..Outcomes::default() },
        Code::OutputValidationError => Outcomes { schema: Outcome::Failed, ..ran },
        Code::ToolExecutionError if answered => Outcomes { tool: Outcome::Failed, ..ran },
        Code::ToolExecutionError | Code::Timeout => {
            Outcomes { tool: Outcome::Failed, schema: Outcome::NotReached, ..ran }
        }
        Code::ProtocolError => {
            Outcomes { transport: Outcome::Ok, rpc: Outcome::Failed, ..Outcomes::default() }
        }
        Code::ServiceUnavailable | Code::OutcomeUnknown => {
            Outcomes { transport: Outcome::Failed, ..Outcomes::default() }
        }
        Code::UnknownTool
        | Code::Denied
        | Code::DefinitionChanged
        | Code::Busy
        | Code::RateLimited
        | Code::Cancelled
        | Code::Stopping => Outcomes::default(),
    }
}
