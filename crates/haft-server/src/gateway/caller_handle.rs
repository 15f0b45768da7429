//! The client behind a call, for servers that ask or notify it.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use haft::extension::{TASKS_EXTENSION, UI_EXTENSION};
use haft::mcp_server::{Level, Peer};
use haft::oauth::BoxFuture;
use haft::{CallerHandle, Era, Question, Refusal};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Client capabilities that concern servers behind the gateway. Others are between the client and the gateway.
const PASSED_ON: [&str; 3] = ["sampling", "elicitation", "roots"];

/// Hashes principals with a random key, so that no client can choose the number of another one.
static PRINCIPALS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// A client, as the servers behind the gateway meet it.
pub(super) struct GatewayClient(pub(super) Peer);

impl CallerHandle for GatewayClient {
    fn id(&self) -> u64 {
        self.0.client_id()
    }

    /// The key. Sessions of one key belong to one owner; by session, a second session would never receive
    /// the log messages of a server that an earlier one has used.
    fn audience(&self) -> u64 {
        PRINCIPALS.hash_one(self.0.principal())
    }

    fn capabilities(&self) -> Value {
        let declared = self.0.client_capabilities();
        let passed = PASSED_ON.iter().filter_map(|key| {
            let value = declared.get(key).filter(|value| !value.is_null())?;
            Some(((*key).to_owned(), value.clone()))
        });
        let mut passed: Map<String, Value> = passed.collect();
        // What a server sends for a user interface passes through to the client as it is.
        if let Some(ui) = declared.pointer("/extensions").and_then(|it| it.get(UI_EXTENSION)) {
            passed.insert("extensions".to_owned(), json!({ UI_EXTENSION: ui }));
        }
        Value::Object(passed)
    }

    /// A modern client declares for each request if it takes tasks, and that is forwarded. A legacy client has no way
    /// to declare it: Haft follows the task in its place.
    fn takes_tasks(&self) -> bool {
        self.0.era() == Era::Legacy || self.0.has_extension(TASKS_EXTENSION)
    }

    fn task_started(&self) {
        self.0.task_started();
    }

    fn log_level(&self) -> Option<&'static str> {
        self.0.log_level().map(Level::name)
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Box<RawValue>, Refusal>> {
        Box::pin(async move {
            let Question { name, method, params, withdrawn, .. } = question;
            let answer = self.0.ask_until(name, method, Some(params), withdrawn).await;
            answer.map_err(|error| Refusal::new(error.message))
        })
    }

    fn log(&self, message: &RawValue) {
        self.0.log(message);
    }
}
