//! The client behind one request.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::transport::Era;
use crate::wire;

/// The client behind one request: who it is, and the way to tell it something before the answer.
#[derive(Clone)]
pub struct Peer {
    pub(super) client: Arc<ClientFacts>,
    pub(super) principal: Arc<str>,
    /// The client's own name for the progress of this request, if it wants to hear of it.
    pub(super) progress_token: Option<Box<RawValue>>,
    pub(super) out: mpsc::Sender<String>,
}

/// What a client said about itself.
#[derive(Debug, Clone)]
pub(super) struct ClientFacts {
    pub(super) era: Era,
    pub(super) protocol_version: String,
    pub(super) name: Option<String>,
    pub(super) capabilities: Value,
}

impl Peer {
    /// Which era the client speaks.
    pub fn era(&self) -> Era {
        self.client.era
    }

    /// The protocol version that was agreed on.
    pub fn protocol_version(&self) -> &str {
        &self.client.protocol_version
    }

    /// What the client calls itself. It can say anything.
    pub fn client_name(&self) -> Option<&str> {
        self.client.name.as_deref()
    }

    /// What the client says it can do.
    pub fn client_capabilities(&self) -> &Value {
        &self.client.capabilities
    }

    /// Who the client is, as whoever let it in knows it.
    pub fn principal(&self) -> &str {
        &self.principal
    }

    /// Whether the client wants to hear how far the request is.
    pub fn wants_progress(&self) -> bool {
        self.progress_token.is_some()
    }

    /// Says how far the request is. Left out where the client reads too slowly: a later report says
    /// more.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = &self.progress_token else { return };
        let mut params = json!({ "progressToken": token, "progress": progress });
        if let Some(total) = total {
            params["total"] = json!(total);
        }
        if let Some(message) = message {
            params["message"] = json!(message);
        }
        let message = wire::notification("notifications/progress", &params.to_string());
        drop(self.out.try_send(message));
    }
}

/// The parts of a request's parameters that belong to the protocol.
#[derive(Default, Deserialize)]
struct Meta<'a> {
    #[serde(borrow, default, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
}

/// The token under which a request wants to hear of its progress. Only texts and numbers are such.
pub(super) fn progress_token(params: Option<&RawValue>) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, default, rename = "_meta")]
        meta: Option<Meta<'a>>,
    }
    let params: Params<'_> = serde_json::from_str(params?.get()).ok()?;
    let token = params.meta?.progress_token?;
    token
        .get()
        .starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
        .then(|| token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_text_or_a_number() {
        let token = |json: &str| {
            let params: Box<RawValue> = serde_json::from_str(json).unwrap();
            progress_token(Some(&params)).map(|token| token.get().to_owned())
        };
        assert_eq!(token(r#"{"_meta":{"progressToken":"a"}}"#).as_deref(), Some("\"a\""));
        assert_eq!(token(r#"{"_meta":{"progressToken":7},"x":1}"#).as_deref(), Some("7"));
        assert_eq!(token(r#"{"_meta":{"progressToken":null}}"#), None);
        assert_eq!(token(r#"{"_meta":{"progressToken":{}}}"#), None);
        assert_eq!(token(r"{}"), None);
        assert_eq!(token(r"[]"), None);
    }
}
