//! Callbacks of an embedding program for requests and notifications of servers.

use haft_mcp::BoxFuture;
use serde_json::{Value, value::RawValue};

use crate::caller_handle::{CallOrigin, Refusal};

/// Answers servers' requests and receives their notifications. Refuses everything by default.
///
/// Sampling requests arrive only if the server's `sampling` setting permits them.
pub trait ServerHandler: Send + Sync + 'static {
    /// The client capabilities to declare, such as `{"elicitation": {}}`. Servers request only
    /// declared ones.
    fn capabilities(&self, _server: &str) -> Value {
        Value::Object(serde_json::Map::new())
    }

    /// Agrees to one sampling request of a server with `sampling: ask`.
    fn approve_sampling<'a>(
        &'a self,
        _server: &'a str,
        _params: &'a RawValue,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }

    /// Like `approve_sampling`, with the call that the server works on, if known. Dropped when that
    /// call ends.
    fn approve_sampling_for<'a>(
        &'a self,
        _call: &'a CallOrigin,
        server: &'a str,
        params: &'a RawValue,
    ) -> BoxFuture<'a, bool> {
        self.approve_sampling(server, params)
    }

    /// Lets a model answer: the result of `sampling/createMessage`.
    fn sample<'a>(
        &'a self,
        _server: &'a str,
        _params: &'a RawValue,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async { Err(Refusal::new("no model is configured")) })
    }

    /// Lets a person answer: the result of `elicitation/create`.
    fn elicit<'a>(
        &'a self,
        _server: &'a str,
        _params: &'a RawValue,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async { Err(Refusal::new("no person can be asked")) })
    }

    /// Like `elicit`, with the call that the server works on, if known. Dropped when that call
    /// ends.
    fn elicit_for<'a>(
        &'a self,
        _call: &'a CallOrigin,
        server: &'a str,
        params: &'a RawValue,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        self.elicit(server, params)
    }

    /// The folders a server may access: the result of `roots/list`.
    fn roots<'a>(&'a self, _server: &'a str) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async { Err(Refusal::new("no roots are configured")) })
    }

    /// Receives every notification, in order: progress, log messages, changed lists, updated
    /// resources. Return soon; the server's next message waits.
    fn on_notification(&self, _server: &str, _method: &str, _params: Option<&RawValue>) {}

    /// Receives errors of a server other than failed calls.
    fn on_server_error(&self, _server: &str, _error: &str) {}
}

/// Refuses everything a server asks.
#[derive(Debug, Clone, Copy, Default)]
pub struct RefuseServers;

impl ServerHandler for RefuseServers {}
