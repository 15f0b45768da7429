//! Servers' questions to people, asked in the inbox.

use haft::human_input::{HumanInbox, HumanInputError, HumanQuestion, ItemKind};
use haft::{CallOrigin, Refusal};
use haft_bounds::parse_error::describe;
use haft_text::{printable, printable_block};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Largest part of a model request in the question itself.
const SHOWN_CHARS_MAX: usize = 500;

const ALLOW: &str = "allow";
const DENY: &str = "deny";
/// The one answer to a server that wants an address to be opened.
const OPENED: &str = "opened";

/// Asks a person to approve one sampling request of a server. The question has the last message; the whole request,
/// with the system prompt, is attached.
pub(super) async fn approve_sampling(
    inbox: &HumanInbox,
    call: &CallOrigin,
    server: &str,
    params: &RawValue,
) -> bool {
    let question =
        format!("May the server `{}` ask the model: {}", printable(server), short(params));
    let ask = HumanQuestion::new(ItemKind::Sampling, question)
        .options([ALLOW, DENY])
        .server(server)
        .arguments(params)
        .origin(call.clone());
    inbox.ask(ask).await.is_ok_and(|answer| answer == ALLOW)
}

/// A server's question to a person: the result of `elicitation/create`.
pub(super) async fn elicit(
    inbox: &HumanInbox,
    call: &CallOrigin,
    server: &str,
    params: &RawValue,
) -> Result<Value, Refusal> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ElicitationParams {
        #[serde(default)]
        message: String,
        #[serde(default)]
        requested_schema: Option<Value>,
        #[serde(default)]
        url: Option<String>,
    }
    let ElicitationParams { message, requested_schema, url } = serde_json::from_str(params.get())
        .map_err(|error| {
        Refusal::new(format!("the question cannot be read: {}", describe(&error)))
    })?;
    let message = printable_block(&message);
    let ask = match &url {
        // The exchange at an address stays between the person and that site.
        Some(url) => {
            HumanQuestion::new(ItemKind::Elicitation, format!("{message}\n{}", printable(url)))
                .options([OPENED])
        }
        None => HumanQuestion::new(ItemKind::Elicitation, message),
    };
    let ask = match requested_schema {
        Some(schema) if url.is_none() => ask.schema(schema),
        Some(_) | None => ask,
    };
    match inbox.ask(ask.server(server).origin(call.clone())).await {
        Ok(_) if url.is_some() => Ok(json!({ "action": "accept" })),
        Ok(content) => Ok(json!({ "action": "accept", "content": content })),
        Err(HumanInputError::Refused { .. }) => Ok(json!({ "action": "decline" })),
        Err(HumanInputError::Expired { .. }) => Ok(json!({ "action": "cancel" })),
        Err(no_answer) => Err(Refusal::new(no_answer.to_string())),
    }
}

/// The last message for the model, or the request itself if it cannot be read.
fn short(params: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Sampling<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Message {
        content: Text,
    }
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    let read = serde_json::from_str::<Sampling<'_>>(params.get()).ok();
    let last = read.as_ref().and_then(|params| params.messages.last());
    let last = last.and_then(|message| serde_json::from_str::<Message>(message.get()).ok());
    let text = last.as_ref().map_or_else(|| params.get(), |message| message.content.text.as_str());
    let text = printable(text).into_owned();
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}
