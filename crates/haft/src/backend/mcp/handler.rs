//! What an embedding program can do for servers, and hear of them.

use haft_mcp::BoxFuture;
use serde_json::{Value, value::RawValue};

use crate::requester::{Origin, Refusal};

/// Answers servers' requests and hears what they tell. Everything is refused by default.
///
/// Sampling comes here only where the server's `sampling` setting lets it.
pub trait ServerHandler: Send + Sync + 'static {
    /// The client capabilities to declare, such as `{"elicitation": {}}`. Only what is declared
    /// here is asked for.
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

    /// The same, where it is known whose call the server works on. Dropped when that call ends.
    fn approve_sampling_for<'a>(
        &'a self,
        _call: &'a Origin,
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
        Box::pin(async { Err(Refusal::new("there is nobody to ask")) })
    }

    /// The same, where it is known whose call the server works on. Dropped when that call ends.
    fn elicit_for<'a>(
        &'a self,
        _call: &'a Origin,
        server: &'a str,
        params: &'a RawValue,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        self.elicit(server, params)
    }

    /// The folders a server may look at: the result of `roots/list`.
    fn roots<'a>(&'a self, _server: &'a str) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async { Err(Refusal::new("no roots are configured")) })
    }

    /// Hears every notification, in order: progress, log messages, changed lists, updated
    /// resources. Return soon; the server's next message waits.
    fn on_notification(&self, _server: &str, _method: &str, _params: Option<&RawValue>) {}

    /// Hears what went wrong with a server beside the calls that failed.
    fn on_server_error(&self, _server: &str, _error: &str) {}
}

/// Refuses everything a server asks.
#[derive(Debug, Clone, Copy, Default)]
pub struct RefuseServers;

impl ServerHandler for RefuseServers {}
