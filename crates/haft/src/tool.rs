//! What a tool is: a definition and a way to run it. Every kind of tool (MCP, script, command,
//! built-in, a Rust function) is a [`Tool`].

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::ToolOutput;
use crate::error::{Diagnosis, ToolFailure};
use crate::policy::Admitted;
use crate::progress::{Progress, Reporter};
use crate::record::Redactor;
use crate::requester::Behind;
use crate::trace::TraceContext;

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

impl ToolDefinition {
    /// The same without known secrets, which a file may have put into a description.
    pub(crate) fn masked(&self, redactor: &Redactor) -> Self {
        let mut masked = self.clone();
        let Self { name: _, title, description, input_schema, output_schema } = &mut masked;
        title.iter_mut().chain([description]).for_each(|text| redactor.mask(text));
        redactor.mask_value(input_schema);
        if let Some(schema) = output_schema {
            redactor.mask_value(schema);
        }
        masked
    }
}

/// Who calls, on whose behalf, under which id. Travels with the call into its log entry.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The id of this execution and of its log entry.
    pub execution_id: String,
    /// Who asked: a key's name, `cli`, a program's own name.
    pub caller: Option<String>,
    pub(crate) owner: Option<String>,
    /// The session or run the call belongs to.
    pub session: Option<String>,
    /// What tools of one session share.
    pub state: SessionState,
    /// The trace the call belongs to.
    pub trace: Option<TraceContext>,
    pub(crate) reporter: Reporter,
    pub(crate) requester: Behind,
}

impl CallContext {
    /// Says how far the call is, to whoever asked to hear it. Does nothing once the call has ended.
    pub fn progress(&self, progress: Progress) {
        self.reporter.report(progress);
    }
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

/// Anything that can be called. Tools registered from Rust are local tools: each needs an entry in
/// the configuration's `tools`.
pub trait Tool: Send + Sync + 'static {
    /// What callers see. Asked once, at registration.
    fn definition(&self) -> ToolDefinition;

    /// Runs the tool. Work must end when the future is dropped: that is how timeouts and
    /// cancellation reach it.
    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>>;

    /// What the tool knows about the reason that a call got no answer since `began`. Asked when a call timed out.
    fn diagnose(&self, _began: Instant) -> Option<Diagnosis> {
        None
    }

    /// Requests the tool is meant for, as people write them; they help to choose it. Asked once.
    fn examples(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether a call mostly waits for people. It then takes no slot of the whole toolbox, which would stand
    /// still meanwhile. Asked for each call.
    fn waits_for_people(&self) -> bool {
        false
    }

    /// Lets go of whatever the tool holds, at shutdown.
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// A Rust function as a tool.
pub struct FunctionTool<F> {
    definition: ToolDefinition,
    examples: Vec<String>,
    function: F,
}

impl<F, W> FunctionTool<F>
where
    F: Fn(Value, CallContext) -> W + Send + Sync + 'static,
    W: Future<Output = Result<ToolOutput, ToolFailure>> + Send + 'static,
{
    /// A tool that runs `function` with its arguments.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        function: F,
    ) -> Self {
        let definition = ToolDefinition {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema,
            output_schema: None,
        };
        Self { definition, examples: Vec::new(), function }
    }

    /// Shows requests the tool is meant for, as people write them.
    #[must_use]
    pub fn with_examples(mut self, examples: &[&str]) -> Self {
        self.examples = examples.iter().map(|&example| example.to_owned()).collect();
        self
    }

    /// Promises that every answer fits `schema`.
    #[must_use]
    pub fn with_output_schema(mut self, schema: Value) -> Self {
        self.definition.output_schema = Some(schema);
        self
    }
}

impl<F, W> Tool for FunctionTool<F>
where
    F: Fn(Value, CallContext) -> W + Send + Sync + 'static,
    W: Future<Output = Result<ToolOutput, ToolFailure>> + Send + 'static,
{
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn examples(&self) -> Vec<String> {
        self.examples.clone()
    }

    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin((self.function)(call.arguments().value().clone(), call.context().clone()))
    }
}
