//! One tool of a server.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::{Failure, RequestError, Sent};
use serde_json::Value;
use serde_json::value::RawValue;

use super::connection::Connection;
use super::{convert, failure};
use crate::content::ToolOutput;
use crate::error::ToolFailure;
use crate::policy::Admitted;
use crate::tool::{BoxFuture, Tool, ToolDefinition};

/// The longest a server's wish to be left alone is waited for within a call.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// A tool that a server runs.
pub struct McpTool {
    connection: Arc<Connection>,
    definition: ToolDefinition,
    repeat: Repeat,
}

/// Whether a call whose fate is unknown may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// The server says that the tool only reads, or that once more changes nothing.
    Harmless,
    /// Twice may be once too often.
    Never,
}

impl McpTool {
    /// A tool of `connection`'s server. `annotations` are the server's own hints about it.
    pub fn new(
        connection: Arc<Connection>,
        definition: ToolDefinition,
        annotations: Option<&Value>,
    ) -> Self {
        let says = |hint: &str| {
            annotations.and_then(|it| it.get(hint)).and_then(Value::as_bool).unwrap_or(false)
        };
        // Never a base for policy; but whoever lies here harms nobody but his own server.
        let is_harmless = says("readOnlyHint") || says("idempotentHint");
        let repeat = if is_harmless { Repeat::Harmless } else { Repeat::Never };
        Self { connection, definition, repeat }
    }

    async fn call(&self, arguments: &RawValue) -> Result<ToolOutput, ToolFailure> {
        let connection = &self.connection;
        let _under_way = connection.under_way();
        let tool = &self.definition.name;
        let mut tries_left = 1 + connection.retries_max().max(1);
        loop {
            tries_left -= 1;
            let client = connection
                .client()
                .await
                .map_err(|reason| failure::unavailable(connection, &reason))?;
            // Servers send progress only to those who ask for it; whoever handles their
            // notifications hears it.
            let error = match client.call_tool(tool, arguments, Some(Arc::new(|_| {}))).await {
                Ok(raw) => {
                    return convert::tool_output(raw)
                        .map_err(|error| failure::of_call(connection, tool, &error));
                }
                Err(error) => error,
            };
            connection.note(&client, &error);
            if tries_left == 0 || !self.may_repeat(&error) {
                return Err(failure::of_call(connection, tool, &error));
            }
            if let RequestError::Transport(error) = &error
                && let Some(wish) = error.retry_after
            {
                tokio::time::sleep(wish.min(RETRY_AFTER_MAX)).await;
            }
        }
    }

    fn may_repeat(&self, error: &RequestError) -> bool {
        match error {
            RequestError::Transport(error) => {
                let is_safe = error.sent == Sent::No || self.repeat == Repeat::Harmless;
                is_safe && error.is_transient() && error.kind != Failure::Timeout
            }
            RequestError::Rpc(_) | RequestError::Protocol { .. } | RequestError::Timeout { .. } => {
                false
            }
        }
    }
}

impl Tool for McpTool {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(self.call(call.arguments().raw()))
    }
}
