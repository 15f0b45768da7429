//! What a tool is: a definition and a way to run it. Every kind of tool (MCP, script, command,
//! built-in, a Rust function) is a [`Tool`].

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A boxed future, because tools of every kind live in one registry.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a caller and a model need to know about a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The tool's own name, before any prefix or normalization.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool does and when to prefer it. Reaches the model word for word.
    pub description: String,
    /// JSON Schema (2020-12) of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured answer, if the tool promises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

/// Who calls, on whose behalf, under which id. Travels with the call into its log entry.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The id of this execution and of its log entry.
    pub execution_id: String,
    /// Who asked: a key's name, `cli`, a program's own name.
    pub caller: Option<String>,
    /// The session or run the call belongs to.
    pub session: Option<String>,
    /// What tools of one session share.
    pub state: SessionState,
}

/// Values that the tools of one session share. Lives as long as the session does.
#[derive(Debug, Clone, Default)]
pub struct SessionState(Arc<Mutex<HashMap<String, Value>>>);

impl SessionState {
    /// The value kept under `key`.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.lock().ok()?.get(key).cloned()
    }

    /// Keeps `value` under `key` and hands back what was there.
    pub fn set(&self, key: impl Into<String>, value: Value) -> Option<Value> {
        self.0.lock().ok()?.insert(key.into(), value)
    }
}
