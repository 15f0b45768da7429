//! One tool of a server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_bounds::heavy;
use haft_mcp::{AnswerBytes, CallOptions, Failure, ProgressFn, RequestError, Sent, Trace};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::backoff::{self, ReconnectPolicy};
use super::connection::Connection;
use super::locked::ToolApproval;
use super::{convert, failure};
use crate::caller_handle::CallOrigin;
use crate::content::ToolOutput;
use crate::error::{Diagnosis, ToolFailure};
use crate::policy::Admitted;
use crate::progress::Progress;
use crate::tool::{BoxFuture, CallContext, Tool, ToolDefinition};
use haft_config::tool_metadata::ToolAnnotations;

/// The longest pause that a server may ask for within a call.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// A tool that a server runs.
pub struct McpTool {
    connection: Arc<Connection>,
    definition: Arc<ToolDefinition>,
    repeat: Repeat,
    is_app_only: bool,
    /// The approval of the lock file.
    approval: Option<ToolApproval>,
}

/// The rule for sending a call again whose outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// The tool only reads, or a second call changes nothing.
    Harmless,
    /// A second call may do harm.
    Never,
}

impl McpTool {
    /// A tool of `connection`'s server. The hints of `definition` are the server's own, and those of the
    /// operator's file in their place.
    pub fn new(
        connection: Arc<Connection>,
        definition: Arc<ToolDefinition>,
        is_app_only: bool,
    ) -> Self {
        // Hints are never a basis for policy. A server with a wrong hint harms only itself, and the
        // operator, who knows the server, has the last word.
        let is_harmless =
            definition.annotations.as_ref().is_some_and(ToolAnnotations::allows_repeat);
        let repeat = if is_harmless { Repeat::Harmless } else { Repeat::Never };
        Self { connection, definition, repeat, is_app_only, approval: None }
    }

    /// Runs only while the server has the definition that the lock file approves.
    pub(crate) fn approved(self, approval: Option<ToolApproval>) -> Self {
        Self { approval, ..self }
    }

    async fn call(
        &self,
        arguments: &RawValue,
        context: &CallContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let connection = &self.connection;
        let mut in_flight = connection
            .events
            .in_flight
            .begin(context.caller_handle.0.as_ref(), CallOrigin::from(context));
        let options = CallOptions {
            // Servers send progress only on request; the handler of their notifications receives it
            // too.
            progress: Some(self.listener(context)),
            trace: context.trace.as_ref().map(|trace| Trace {
                parent: trace.traceparent().to_owned(),
                state: trace.tracestate().map(ToOwned::to_owned),
            }),
            handler: Some(connection.handler_for(&in_flight)),
            answer_bytes: AnswerBytes::default(),
        };
        let _in_use = connection.in_use();
        let tool = &self.definition.name;
        let mut repeats = 0;
        loop {
            let client = connection
                .client()
                .await
                .map_err(|reason| failure::unavailable(connection, &reason))?;
            // A server that was connected just now may have changed since it was last seen.
            if let Some(approval) = &self.approval {
                approval.check(connection, tool)?;
            }
            in_flight.unsettle();
            let answer = client.call_tool(tool, arguments, options.clone()).await;
            in_flight.settle_if_answered(&answer);
            let error = match answer {
                Ok(raw) => return self.output(raw).await,
                Err(error) => error,
            };
            connection.report_if_lost(&client, &error);
            // A connection that ended before the call could use it is not a failure of the call.
            let was_late = client.has_ended() && error.sent() == Sent::No;
            let repeats_max =
                if was_late { connection.retries_max().max(1) } else { self.repeats_max(&error) };
            if repeats >= repeats_max {
                return Err(failure::of_call(connection, tool, &error));
            }
            self.pause_before(repeats, &error).await;
            repeats += 1;
        }
    }

    /// The answer, with its memory reserved before it is copied.
    async fn output(&self, raw: Box<RawValue>) -> Result<ToolOutput, ToolFailure> {
        let (connection, tool) = (&self.connection, &self.definition.name);
        let memory = connection
            .answer_memory(raw.get().len())
            .map_err(|over| failure::no_memory(connection, tool, &over.to_string()))?;
        let output = heavy::run(raw.get().len(), || convert::tool_output(raw)).await;
        let output = output.map_err(|error| failure::of_call(connection, tool, &error))?;
        Ok(ToolOutput { memory, ..output })
    }

    /// Forwards the server's progress reports about this call.
    fn listener(&self, context: &CallContext) -> ProgressFn {
        let reporter = context.reporter.clone();
        if !reporter.is_heard() {
            return Arc::new(|_| {});
        }
        let redactor = self.connection.redactor().clone();
        Arc::new(move |params| {
            // An unreadable report only shows that the server is alive.
            let Ok(progress) = serde_json::from_str::<Progress>(params.get()) else { return };
            let message = progress.message.map(|text| redactor.text(&text).into_owned());
            reporter.report(Progress { message, ..progress });
        })
    }

    /// Pauses before a call is sent again, at least as long as the server asks for. After a loss the supervisor
    /// makes the pause.
    async fn pause_before(&self, repeats: u32, error: &RequestError) {
        let RequestError::Transport(error) = error else { return };
        let pause = if error.ends_connection() {
            Duration::ZERO
        } else {
            ReconnectPolicy::from(&self.connection.config().reconnect)
                .pause(repeats, backoff::random())
        };
        let retry_after = error.retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
        tokio::time::sleep(pause.max(retry_after)).await;
    }

    /// The number of times that a call which failed like this may be sent again.
    fn repeats_max(&self, error: &RequestError) -> u32 {
        match error {
            RequestError::Transport(error) => {
                let is_safe = error.sent == Sent::No || self.repeat == Repeat::Harmless;
                let is_late = matches!(error.kind, Failure::Timeout | Failure::StreamTimeout);
                let is_hopeless = !error.is_transient() || is_late;
                match error.kind {
                    _ if !is_safe || is_hopeless => 0,
                    // A server that forgets every session would be called forever.
                    Failure::SessionExpired => 1,
                    // The connection is fine: only the configured retries are made.
                    Failure::Status(_) => self.connection.retries_max(),
                    _ => self.connection.retries_max().max(1),
                }
            }
            RequestError::Rpc(_) | RequestError::Protocol { .. } | RequestError::Timeout { .. } => {
                0
            }
        }
    }
}

/// True if the server lists the callers of a tool, and models are not among them (`_meta.ui.visibility`).
pub(crate) fn is_app_only(rest: &Map<String, Value>) -> bool {
    let ui = rest.get("_meta").and_then(|meta| meta.get("ui"));
    let visibility = ui.and_then(|ui| ui.get("visibility")).and_then(Value::as_array);
    visibility.is_some_and(|callers| !callers.iter().any(|caller| caller == "model"))
}

impl Tool for McpTool {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::clone(&self.definition)
    }

    fn is_app_only(&self) -> bool {
        self.is_app_only
    }

    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(self.call(call.arguments().raw(), call.context()))
    }

    fn diagnose(&self, began: Instant) -> Option<Diagnosis> {
        self.connection.diagnosis_since(began)
    }
}
