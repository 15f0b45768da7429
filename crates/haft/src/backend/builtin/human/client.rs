//! Asks the client that made the call, in parallel to the inbox.

use haft_bounds::parse_error::describe;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::to_raw_value;
use tokio_util::sync::CancellationToken;

use super::NAME;
use super::form::Form;
use crate::caller_handle::{CallerHandle, Question};
use crate::human_input::{AnswerError, HumanAnswer, HumanInbox, HumanInputError, InboxItem};
use crate::tool::CallContext;

/// Maximum number of attempts with invalid answers. An automated client would otherwise retry
/// forever.
const ATTEMPTS_MAX: usize = 3;
/// The answerer's name if the call names no caller.
const NAMELESS: &str = "the client of the call";

/// The client that made the call.
pub(super) struct Client<'a> {
    caller_handle: &'a Arc<dyn CallerHandle>,
    name: &'a str,
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
enum Reply {
    Accept {
        #[serde(default)]
        content: Value,
    },
    Decline,
    Cancel,
}

impl<'a> Client<'a> {
    pub(super) fn of(context: &'a CallContext) -> Option<Self> {
        let caller_handle = context.caller_handle.0.as_ref()?;
        Some(Self { caller_handle, name: context.caller.as_deref().unwrap_or(NAMELESS) })
    }

    /// Returns true if the client can show a form. A client without declared modes can.
    pub(super) fn shows_forms(&self) -> bool {
        let capabilities = self.caller_handle.capabilities();
        let elicitation = capabilities.get("elicitation").and_then(Value::as_object);
        elicitation.is_some_and(|modes| modes.contains_key("form") || !modes.contains_key("url"))
    }

    /// Asks the client until the question is answered or refused, here or elsewhere. An invalid
    /// answer is requested again, as at the terminal. `closed` is cancelled when the question is
    /// closed.
    pub(super) async fn ask(
        &self,
        inbox: &HumanInbox,
        item: &InboxItem,
        closed: &CancellationToken,
    ) -> Result<(), HumanInputError> {
        let form = Form::of(item);
        let mut problem: Option<AnswerError> = None;
        for _ in 0..ATTEMPTS_MAX {
            let said = problem.as_ref().map(|problem| format!("{}.", capital(problem)));
            let answers = match self.put(&form, said.as_deref(), closed).await? {
                Reply::Accept { content } => form.read(content),
                Reply::Decline => return refuse(inbox, item, None, self.name).await,
                Reply::Cancel => {
                    let reason = "the question was closed without an answer";
                    return refuse(inbox, item, Some(reason), self.name).await;
                }
            };
            let mut unfit = AnswerError::missing();
            for answer in answers {
                match inbox.answer(&item.id, HumanAnswer::Given(answer), self.name).await {
                    // Another client answered first, which is fine.
                    Ok(_) | Err(AnswerError::Unknown) => return Ok(()),
                    Err(invalid @ AnswerError::Invalid { .. }) => unfit = invalid,
                }
            }
            problem = Some(unfit);
        }
        let problem = problem.map(|problem| problem.to_string()).unwrap_or_default();
        Err(HumanInputError::Client { problem })
    }

    async fn put(
        &self,
        form: &Form,
        problem: Option<&str>,
        closed: &CancellationToken,
    ) -> Result<Reply, HumanInputError> {
        let failed = |problem: String| HumanInputError::Client { problem };
        let params =
            to_raw_value(&form.params(problem)).map_err(|error| failed(error.to_string()))?;
        let question = Question {
            server: NAME,
            name: None,
            method: "elicitation/create",
            params: &params,
            withdrawn: Some(closed),
        };
        let reply = self.caller_handle.ask(question).await;
        let reply = reply.map_err(|refusal| failed(refusal.reason))?;
        serde_json::from_str(reply.get())
            .map_err(|error| failed(format!("its answer cannot be read: {}", describe(&error))))
    }
}

async fn refuse(
    inbox: &HumanInbox,
    item: &InboxItem,
    reason: Option<&str>,
    by: &str,
) -> Result<(), HumanInputError> {
    let reason = reason.map(ToOwned::to_owned);
    // It may be answered elsewhere by now.
    drop(inbox.answer(&item.id, HumanAnswer::Refused { reason }, by).await);
    Ok(())
}

/// The error as a sentence with a capital letter.
fn capital(problem: &AnswerError) -> String {
    let text = problem.to_string();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
