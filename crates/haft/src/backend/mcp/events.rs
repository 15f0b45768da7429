//! Requests and notifications of one server: forwards, allows, refuses and logs them.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use haft_mcp::error::METHOD_NOT_FOUND;
use haft_mcp::{Anomaly, BoxFuture, Handler, RpcError, Sent, ServerRequest, TransportError};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::anomalies::Anomalies;
use super::commands::CommandSender;
use super::connection::ConnectionContext;
use super::handler::ServerHandler;
use super::in_flight::{Attribution, InFlightCalls, Target};
use super::lists::Resources;
use crate::caller_handle::{CallOrigin, Question, Refusal};
use crate::config::choices::{ListChanged, Sampling};
use crate::config::model::ServerConfig;
use haft_config::redact::Redactor;
use haft_text::printable;

/// JSON-RPC code of a request that a person or a rule refused.
const REFUSED: i64 = -1;

/// The handler of one server, shared by all its connections.
pub(super) struct Events {
    pub(super) server: String,
    pub(super) sampling: Sampling,
    pub(super) list_changed: ListChanged,
    pub(super) handler: Arc<dyn ServerHandler>,
    /// Masks the secrets that the server was given, which it may repeat.
    pub(super) redactor: Redactor,
    /// Receives the notices of changed lists.
    pub(super) commands: CommandSender,
    /// Its resources as they were last listed; empty once they changed.
    pub(super) resources: ArcSwapOption<Resources>,
    /// The calls it works on.
    pub(super) in_flight: InFlightCalls,
    /// The number of problems so far. Only some of them are logged.
    pub(super) troubles: Mutex<u64>,
    /// Messages that no request could use.
    pub(super) anomalies: Anomalies,
}

impl Events {
    pub(super) fn new(
        config: &ServerConfig,
        context: &ConnectionContext,
        commands: CommandSender,
    ) -> Self {
        Self {
            server: config.name.clone(),
            sampling: config.sampling.value,
            list_changed: config.list_changed.value,
            handler: Arc::clone(&context.handler),
            redactor: context.redactor.clone(),
            commands,
            resources: ArcSwapOption::empty(),
            in_flight: InFlightCalls::default(),
            troubles: Mutex::new(0),
            anomalies: Anomalies::default(),
        }
    }

    /// Forgets everything that concerns the previous connection.
    pub(super) fn reconnected(&self) {
        self.resources.store(None);
        self.in_flight.reconnected();
    }

    /// Answers a request of the server: by the client it works for, if there is one, otherwise by the embedding
    /// program.
    async fn answer(
        &self,
        request: ServerRequest,
        caller: Attribution,
    ) -> Result<Box<RawValue>, RpcError> {
        let ServerRequest { name, method, params } = request;
        let server = &self.server;
        if !matches!(&*method, "sampling/createMessage" | "elicitation/create" | "roots/list") {
            tracing::info!(server, method, "refused a request of the server: unknown method");
            let text = format!("`{method}` is not offered here");
            return Err(RpcError::new(METHOD_NOT_FOUND, text));
        }
        let empty = || RawValue::from_string("{}".to_owned());
        let params = params.or_else(|| empty().ok()).unwrap_or_else(|| RawValue::NULL.to_owned());
        let question = Question {
            server,
            name: name.as_deref(),
            method: &method,
            params: &params,
            withdrawn: None,
        };
        let answered = tokio::select! {
            biased;
            answered = self.answer_question(question, &caller) => answered,
            // The question is withdrawn: no call needs its answer.
            () = self.in_flight.over(&caller) => Err(Refusal::new("the call it belongs to is over")),
        };
        match answered {
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

    async fn answer_question(
        &self,
        question: Question<'_>,
        Attribution { target, origin, .. }: &Attribution,
    ) -> Result<Box<RawValue>, Refusal> {
        let Question { server, method, params, .. } = question;
        if method == "sampling/createMessage" {
            self.allow_sampling(params, origin).await?;
        }
        let answer = match target {
            Target::Client(caller_handle) => return caller_handle.ask(question).await,
            Target::Unclear => {
                let reason = "several clients have calls in flight at this server, or had one that \
                              ended without its answer, and it does not say which of them it asks";
                return Err(Refusal::new(reason));
            }
            Target::Program => match method {
                "sampling/createMessage" => self.handler.sample(server, params).await?,
                "elicitation/create" => self.handler.elicit_for(origin, server, params).await?,
                _ => self.handler.roots(server).await?,
            },
        };
        to_raw_value(&answer).map_err(|error| Refusal::new(error.to_string()))
    }

    async fn allow_sampling(&self, params: &RawValue, origin: &CallOrigin) -> Result<(), Refusal> {
        let is_allowed = match self.sampling {
            Sampling::Deny => {
                return Err(Refusal::new("the server has `sampling: deny`"));
            }
            Sampling::Ask => self.handler.approve_sampling_for(origin, &self.server, params).await,
            Sampling::Allow => true,
        };
        let refused = || Refusal::new("no person approved it (`sampling: ask`)");
        is_allowed.then_some(()).ok_or_else(refused)
    }

    /// The part of these capabilities that the configuration lets the server use.
    fn allowed(&self, mut capabilities: Value) -> Value {
        if let (Sampling::Deny, Value::Object(map)) = (self.sampling, &mut capabilities) {
            map.remove("sampling");
        }
        if capabilities.is_object() { capabilities } else { json!({}) }
    }

    /// `is_of_call`: the message came in the exchange of the caller's own call.
    fn notification(
        &self,
        method: &str,
        params: Option<&RawValue>,
        caller: &Attribution,
        is_of_call: bool,
    ) {
        match method {
            "notifications/message" => {
                self.log(params);
                if let (Target::Client(caller_handle), Some(params)) = (&caller.target, params)
                    && (is_of_call || self.in_flight.is_only_user(&**caller_handle))
                {
                    let masked = self.redactor.json(params.get()).into_owned();
                    if let Ok(masked) = RawValue::from_string(masked) {
                        caller_handle.log(&masked);
                    }
                }
            }
            "notifications/tools/list_changed" | "notifications/prompts/list_changed"
                if self.list_changed == ListChanged::Refresh =>
            {
                // Only a command: reading the lists in here would wait for the very messages that come next.
                self.commands.lists_changed();
            }
            "notifications/resources/list_changed" => self.resources.store(None),
            _ => {}
        }
        self.handler.on_notification(&self.server, method, params);
    }

    /// A log message of the server, at our level for it.
    fn log(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Message<'a> {
            level: String,
            #[serde(default)]
            logger: Option<String>,
            #[serde(borrow, default)]
            data: Option<&'a RawValue>,
        }
        let read = params.map(|raw| serde_json::from_str::<Message<'_>>(raw.get()));
        let Some(Ok(message)) = read else {
            return self.report_anomaly("the server sent a log message that cannot be read");
        };
        let data = message.data.map_or("null", RawValue::get);
        let text = serde_json::from_str::<String>(data).unwrap_or_else(|_| data.to_owned());
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
        self.allowed(self.handler.capabilities(&self.server))
    }

    fn request(&self, request: ServerRequest) -> BoxFuture<'_, Result<Box<RawValue>, RpcError>> {
        Box::pin(self.answer(request, self.in_flight.attribute()))
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        self.notification(method, params, &self.in_flight.attribute(), false);
    }

    fn report_anomaly(&self, what: &str) {
        let server = &self.server;
        let what = &*self.redactor.text(what);
        let mut troubles = self.troubles.lock();
        *troubles += 1;
        // A broken server must not fill the log.
        if *troubles <= 10 || troubles.is_power_of_two() {
            tracing::warn!(server, count = *troubles, "{}", printable(what));
        }
        drop(troubles);
        self.handler.on_server_error(server, what);
    }

    fn anomaly(&self, anomaly: Anomaly<'_>) {
        self.anomalies.note(&self.server, anomaly, &self.redactor);
    }

    fn ended(&self, reason: &TransportError) {
        // A connection that Haft closed is not an error of the server.
        if reason.sent == Sent::Maybe {
            self.handler.on_server_error(&self.server, &self.redactor.text(&reason.message));
        }
    }
}

/// The handler of one call: what the server sends there concerns its caller.
pub(super) struct InCall {
    pub(super) events: Arc<Events>,
    pub(super) caller: Attribution,
}

impl Handler for InCall {
    fn capabilities(&self) -> Value {
        match &self.caller.target {
            Target::Client(caller_handle) => self.events.allowed(caller_handle.capabilities()),
            Target::Program | Target::Unclear => self.events.capabilities(),
        }
    }

    fn log_level(&self) -> Option<&'static str> {
        match &self.caller.target {
            Target::Client(caller_handle) => caller_handle.log_level(),
            Target::Program | Target::Unclear => self.events.log_level(),
        }
    }

    fn takes_tasks(&self) -> bool {
        match &self.caller.target {
            Target::Client(caller_handle) => caller_handle.takes_tasks(),
            Target::Program | Target::Unclear => true,
        }
    }

    fn task_started(&self) {
        if let Target::Client(caller_handle) = &self.caller.target {
            caller_handle.task_started();
        }
    }

    fn request(&self, request: ServerRequest) -> BoxFuture<'_, Result<Box<RawValue>, RpcError>> {
        Box::pin(self.events.answer(request, self.caller.clone()))
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        self.events.notification(method, params, &self.caller, true);
    }

    fn report_anomaly(&self, what: &str) {
        self.events.report_anomaly(what);
    }
}
