//! Notifications and requests that the server sends to the client.

// Sampling, roots and logging are on their way out of the protocol, and in use.
#![allow(deprecated)]

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The events received so far.
#[derive(Default)]
pub(crate) struct ServerEvents {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
pub(crate) struct State {
    /// Reports of progress, each with the token of its call. The SDK hands them over in any order.
    pub(crate) steps: Vec<(Value, Value)>,
    pub(crate) logs: Vec<Value>,
    pub(crate) updated: Vec<String>,
    pub(crate) changes: u64,
}

impl ServerEvents {
    /// Notes something.
    pub(crate) fn note(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_waiters();
    }

    /// Waits until there is what is looked for.
    pub(crate) async fn until<T>(&self, mut find: impl FnMut(&State) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = find(&self.lock()) {
                return found;
            }
            changed.await;
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// The client's half that answers.
pub(crate) struct Handler(pub(crate) Arc<ServerEvents>);

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        made(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"sampling": {}, "elicitation": {"form": {}}, "roots": {}},
            "clientInfo": {"name": "client-of-a-test", "version": "1.0.0"},
        }))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let content = json!({"type": "text", "text": "from the model"});
        Ok(made(json!({"role": "assistant", "content": content, "model": "none"})))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(made(json!({"action": "accept", "content": {"name": "Ada"}})))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(made(json!({"roots": [{"uri": "file:///here", "name": "here"}]})))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let step = json!([params.progress, params.total, params.message]);
        self.0.note(|state| state.steps.push((json!(params.progress_token), step)));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.0.note(|state| state.logs.push(json!(params.level)));
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.0.note(|state| state.updated.push(params.uri));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.note(|state| state.changes += 1);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.note(|state| state.changes += 1);
    }
}

/// A value of the SDK from its JSON, which is shorter than its builders.
pub(crate) fn made<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("what the SDK reads")
}
