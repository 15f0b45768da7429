//! The client that made the call, asked beside whoever attends the inbox.

use haft_bounds::parse_error::describe;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::to_raw_value;
use tokio_util::sync::CancellationToken;

use super::NAME;
use super::form::Form;
use crate::inbox::{Answer, AnswerError, Inbox, Item, NoAnswer};
use crate::requester::{Question, Requester};
use crate::tool::CallContext;

/// How often a person is asked whose answers do not fit. A client that answers by itself would do so for ever.
const ATTEMPTS_MAX: usize = 3;
/// Who answers, where the call does not say who made it.
const NAMELESS: &str = "the client of the call";

/// The client behind a call.
pub(super) struct Client<'a> {
    requester: &'a Arc<dyn Requester>,
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
        let requester = context.requester.0.as_ref()?;
        Some(Self { requester, name: context.caller.as_deref().unwrap_or(NAMELESS) })
    }

    /// Whether it can show a form to its person. A client that says nothing of how it asks can.
    pub(super) fn shows_forms(&self) -> bool {
        let capabilities = self.requester.capabilities();
        let elicitation = capabilities.get("elicitation").and_then(Value::as_object);
        elicitation.is_some_and(|modes| modes.contains_key("form") || !modes.contains_key("url"))
    }

    /// Asks its person until the question is answered or refused, here or elsewhere. An answer that does not fit
    /// is asked for again, as it is at the terminal: whoever mistyped is still there.
    /// `closed` is cancelled when the question is closed.
    pub(super) async fn ask(
        &self,
        inbox: &Inbox,
        item: &Item,
        closed: &CancellationToken,
    ) -> Result<(), NoAnswer> {
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
                match inbox.answer(&item.id, Answer::Given(answer), self.name).await {
                    // Somebody else was faster, which is as good.
                    Ok(_) | Err(AnswerError::Unknown) => return Ok(()),
                    Err(invalid @ AnswerError::Invalid { .. }) => unfit = invalid,
                }
            }
            problem = Some(unfit);
        }
        let problem = problem.map(|problem| problem.to_string()).unwrap_or_default();
        Err(NoAnswer::Client { problem })
    }

    async fn put(
        &self,
        form: &Form,
        problem: Option<&str>,
        closed: &CancellationToken,
    ) -> Result<Reply, NoAnswer> {
        let failed = |problem: String| NoAnswer::Client { problem };
        let params =
            to_raw_value(&form.params(problem)).map_err(|error| failed(error.to_string()))?;
        let question = Question {
            server: NAME,
            name: None,
            method: "elicitation/create",
            params: &params,
            withdrawn: Some(closed),
        };
        let reply = self.requester.ask(question).await;
        let reply = reply.map_err(|refusal| failed(refusal.reason))?;
        serde_json::from_str(reply.get())
            .map_err(|error| failed(format!("its answer cannot be read: {}", describe(&error))))
    }
}

async fn refuse(
    inbox: &Inbox,
    item: &Item,
    reason: Option<&str>,
    by: &str,
) -> Result<(), NoAnswer> {
    let reason = reason.map(ToOwned::to_owned);
    // It may be answered elsewhere by now.
    drop(inbox.answer(&item.id, Answer::Refused { reason }, by).await);
    Ok(())
}

/// A sentence for a person.
fn capital(problem: &AnswerError) -> String {
    let text = problem.to_string();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
