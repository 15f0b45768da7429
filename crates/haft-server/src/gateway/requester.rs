//! The client behind a call, for servers that ask or tell it something.

use haft::mcp_server::{Level, Peer};
use haft::oauth::BoxFuture;
use haft::{Question, Refusal, Requester};
use serde_json::Value;
use serde_json::value::RawValue;

/// What of a client's capabilities concerns servers behind the gateway. Others are between the client and
/// the gateway.
const PASSED_ON: [&str; 3] = ["sampling", "elicitation", "roots"];

/// A client, as the servers behind the gateway meet it.
pub(super) struct Behind(pub(super) Peer);

impl Requester for Behind {
    fn id(&self) -> u64 {
        self.0.client_id()
    }

    fn capabilities(&self) -> Value {
        let declared = self.0.client_capabilities();
        let passed = PASSED_ON.iter().filter_map(|key| {
            let value = declared.get(key).filter(|value| !value.is_null())?;
            Some(((*key).to_owned(), value.clone()))
        });
        Value::Object(passed.collect())
    }

    fn log_level(&self) -> Option<&'static str> {
        self.0.log_level().map(Level::name)
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Box<RawValue>, Refusal>> {
        Box::pin(async move {
            let Question { name, method, params, .. } = question;
            let answer = self.0.ask(name, method, Some(params)).await;
            answer.map_err(|error| Refusal::new(error.message))
        })
    }

    fn log(&self, message: &RawValue) {
        self.0.log(message);
    }
}
