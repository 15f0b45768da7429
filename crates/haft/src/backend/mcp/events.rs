//! Between one server and whoever handles its requests: asks, allows, refuses, and logs.

use std::sync::{Arc, Mutex, PoisonError};

use haft_mcp::error::{INTERNAL_ERROR, METHOD_NOT_FOUND};
use haft_mcp::{BoxFuture, Handler, RpcError, Sent, ServerRequest, TransportError};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::handler::{Refusal, ServerHandler};
use crate::config::choices::{ListChanged, Sampling};
use crate::record::Redactor;
use crate::text::printable;

/// JSON-RPC code of a request that a person or a rule refused.
const REFUSED: i64 = -1;

/// The handler of one server.
pub(super) struct Events {
    pub(super) server: String,
    pub(super) sampling: Sampling,
    pub(super) list_changed: ListChanged,
    pub(super) handler: Arc<dyn ServerHandler>,
    /// A server may tell the secrets it was given.
    pub(super) redactor: Redactor,
    /// A list changed and has to be asked for again.
    pub(super) stale: Arc<Notify>,
    /// Said once and counted from then on.
    pub(super) troubles: Mutex<u64>,
}

impl Events {
    async fn answer(&self, request: ServerRequest) -> Result<Value, RpcError> {
        let ServerRequest { method, params } = request;
        let server = &self.server;
        let params = params.unwrap_or_else(|| RawValue::NULL.to_owned());
        let answer = match method.as_str() {
            "sampling/createMessage" => self.sample(&params).await,
            "elicitation/create" => self.handler.elicit(server, &params).await,
            "roots/list" => self.handler.roots(server).await,
            _ => {
                tracing::info!(server, method, "refused a request of the server: unknown method");
                let text = format!("`{method}` is not offered here");
                return Err(RpcError::new(METHOD_NOT_FOUND, text));
            }
        };
        match answer {
            Ok(answer) => {
                tracing::info!(server, method, "answered a request of the server");
                Ok(answer)
            }
            Err(Refusal { reason }) => {
                tracing::info!(server, method, reason, "refused a request of the server");
                Err(RpcError::new(REFUSED, format!("`{method}` was refused: {reason}")))
            }
        }
    }

    async fn sample(&self, params: &RawValue) -> Result<Value, Refusal> {
        let is_allowed = match self.sampling {
            Sampling::Deny => {
                return Err(Refusal::new("the configuration says `sampling: deny`"));
            }
            Sampling::Ask => self.handler.approve_sampling(&self.server, params).await,
            Sampling::Allow => true,
        };
        if !is_allowed {
            return Err(Refusal::new("nobody agreed to it (`sampling: ask`)"));
        }
        self.handler.sample(&self.server, params).await
    }

    /// A log message of the server, at our level for it.
    fn log(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Message {
            level: String,
            #[serde(default)]
            logger: Option<String>,
            #[serde(default)]
            data: Value,
        }
        let Some(Ok(message)) = params.map(|raw| serde_json::from_str::<Message>(raw.get())) else {
            return self.trouble("the server sent a log message that cannot be read");
        };
        let text = match message.data {
            Value::String(text) => text,
            data => data.to_string(),
        };
        let text = self.redactor.text(&text);
        let (server, text) = (&self.server, printable(&text));
        let logger = self.redactor.text(message.logger.as_deref().unwrap_or_default());
        let logger = &*logger;
        match message.level.as_str() {
            "debug" => tracing::debug!(server, logger, "{text}"),
            "info" | "notice" => tracing::info!(server, logger, "{text}"),
            "warning" => tracing::warn!(server, logger, "{text}"),
            "critical" | "alert" | "emergency" => {
                tracing::error!(server, logger, severity = "critical", "{text}");
            }
            _ => tracing::error!(server, logger, "{text}"),
        }
    }
}

impl Handler for Events {
    fn capabilities(&self) -> Value {
        let mut capabilities = self.handler.capabilities(&self.server);
        if let (Sampling::Deny, Value::Object(map)) = (self.sampling, &mut capabilities) {
            map.remove("sampling");
        }
        if capabilities.is_object() { capabilities } else { json!({}) }
    }

    fn request(&self, request: ServerRequest) -> BoxFuture<'_, Result<Box<RawValue>, RpcError>> {
        Box::pin(async move {
            let answer = self.answer(request).await?;
            to_raw_value(&answer).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))
        })
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        match method {
            "notifications/message" => self.log(params),
            "notifications/tools/list_changed" | "notifications/prompts/list_changed"
                if self.list_changed == ListChanged::Refresh =>
            {
                // Only a note: asking in here would wait for the very messages that come next.
                self.stale.notify_one();
            }
            _ => {}
        }
        self.handler.on_notification(&self.server, method, params);
    }

    fn trouble(&self, what: &str) {
        let server = &self.server;
        let what = &*self.redactor.text(what);
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        *troubles += 1;
        // A broken server must not fill the log.
        if *troubles <= 10 || troubles.is_power_of_two() {
            tracing::warn!(server, count = *troubles, "{}", printable(what));
        }
        drop(troubles);
        self.handler.on_server_error(server, what);
    }

    fn ended(&self, reason: &TransportError) {
        // An end of our own making is no error of the server.
        if reason.sent == Sent::Maybe {
            self.handler.on_server_error(&self.server, &self.redactor.text(&reason.message));
        }
    }
}
