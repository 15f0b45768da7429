//! `request_human_input`: asks a person and waits for the answer.
//!
//! The question goes to the inbox, and to the client that made the call if it can show a form. The
//! first answer counts.

mod client;
mod form;

use haft_bounds::parse_error::describe;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::example_lines;
use crate::content::{Content, ToolOutput};
use crate::error::{ToolFailure, millis};
use crate::human_input::{HumanInbox, HumanInputError, HumanQuestion, ItemKind};
use crate::policy::Admitted;
use crate::tool::{BoxFuture, Tool, ToolDefinition};
use client::Client;
use haft_config::tool_metadata::ToolAnnotations;

/// The tool's name.
pub const NAME: &str = "request_human_input";

const DESCRIPTION: &str = "Asks a person a question and waits for the answer. Use it when a person has to \
    confirm, approve, choose or decide, or when only a person knows what is missing, such as a preference. It asks \
    and does nothing else. Do not use it for what another tool can find out, or to report progress. Ask one clear \
    question; give `options` when the answer is one of a few, or `schema` when it must \
    have a certain form. The person may refuse or not answer in time; then go on without the answer or say what \
    is missing.";

/// Example requests.
pub(super) const EXAMPLES: &str =
    include_str!("../../../../assets/examples/request_human_input.txt");

/// Asks people through an inbox.
pub(crate) struct HumanInput {
    inbox: HumanInbox,
}

#[derive(Deserialize)]
struct Wish {
    question: String,
    #[serde(default)]
    options: Vec<String>,
    schema: Option<Value>,
    timeout: Option<f64>,
}

impl HumanInput {
    pub(crate) fn new(inbox: HumanInbox) -> Self {
        Self { inbox }
    }

    async fn ask(&self, call: &Admitted<'_>) -> Result<ToolOutput, ToolFailure> {
        let wish: Wish = serde_json::from_str(call.arguments().raw().get())
            .map_err(|error| ToolFailure::execution(describe(&error)))?;
        let mut ask = HumanQuestion::new(ItemKind::Question, wish.question)
            .options(wish.options)
            .tool(NAME)
            .context(call.context());
        if let Some(schema) = wish.schema {
            ask = ask.schema(schema);
        }
        if let Some(secs) = wish.timeout {
            ask = ask.within(Duration::try_from_secs_f64(secs).unwrap_or(Duration::MAX));
        }
        let answer = match Client::of(call.context()) {
            Some(client) if client.shows_forms() => {
                let inbox = &self.inbox;
                inbox
                    .ask_beside(ask, async |item, closed| client.ask(inbox, item, closed).await)
                    .await
            }
            Some(_) => self.inbox.ask(ask).await.map_err(|no_answer| match no_answer {
                HumanInputError::Unattended => HumanInputError::Formless,
                other => other,
            }),
            None => self.inbox.ask(ask).await,
        };
        let answer = answer.map_err(failure)?;
        let text = answer.as_str().map_or_else(|| answer.to_string(), ToOwned::to_owned);
        let data = to_raw_value(&json!({ "answer": answer }));
        let data = data.map_err(|error| ToolFailure::execution(error.to_string()))?;
        Ok(ToolOutput {
            content: vec![Content::text(text)],
            data: Some(data),
            ..ToolOutput::default()
        })
    }
}

/// The tool's definition.
pub(super) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: NAME.to_owned(),
        title: Some("Ask a person".to_owned()),
        description: DESCRIPTION.to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "question": {
                    "type": "string", "minLength": 1, "maxLength": 10_000,
                    "description": "What the person is asked, with what they need to know to answer.",
                },
                "options": {
                    "type": "array", "maxItems": 100,
                    "items": {"type": "string", "minLength": 1, "maxLength": 1000},
                    "description": "The possible answers, where the answer is one of a few.",
                },
                "schema": {
                    "type": "object",
                    "description": "JSON Schema of the answer, where it must have a certain form.",
                },
                "timeout": {
                    "type": "number", "exclusiveMinimum": 0,
                    "description": "How many seconds to wait for the answer at most.",
                },
            },
            "required": ["question"],
            "additionalProperties": false,
        }),
        output_schema: Some(json!({
            "type": "object",
            "properties": {"answer": {"description": "What the person answered."}},
            "required": ["answer"],
        })),
        annotations: Some(
            ToolAnnotations::new().read_only(true).idempotent(false).open_world(false),
        ),
        icons: None,
    }
}

impl Tool for HumanInput {
    fn definition(&self) -> ToolDefinition {
        definition()
    }

    fn examples(&self) -> Vec<String> {
        example_lines(EXAMPLES)
    }

    fn waits_for_people(&self) -> bool {
        true
    }

    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(self.ask(call))
    }
}

fn failure(no_answer: HumanInputError) -> ToolFailure {
    let (message, remedy) = (no_answer.to_string(), Some(Box::new(no_answer.remedy())));
    match no_answer {
        HumanInputError::Expired { after } => {
            let details = json!({ "timeout_ms": millis(after) });
            ToolFailure::Expired { message, remedy, details }
        }
        HumanInputError::Refused { reason } => {
            ToolFailure::Refused { message, remedy, details: json!({ "reason": reason }) }
        }
        HumanInputError::Unattended
        | HumanInputError::Formless
        | HumanInputError::Client { .. }
        | HumanInputError::Full { .. } => {
            ToolFailure::Unavailable { message, remedy, details: Value::Null }
        }
        HumanInputError::Schema { .. } => {
            ToolFailure::Execution { message, remedy, details: Value::Null }
        }
    }
}
