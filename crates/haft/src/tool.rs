//! What a tool is: a definition and a way to run it. Every kind of tool (MCP, script, command,
//! built-in, a Rust function) is a [`Tool`].

use std::future::Future;
use std::time::Instant;

use serde_json::Value;

use crate::content::ToolOutput;
use crate::error::{Diagnosis, ToolFailure};
use crate::policy::Admitted;
use crate::tool_metadata::{Icon, ToolAnnotations};

pub use crate::context::{CallContext, SessionState};
pub use crate::definition::ToolDefinition;
pub use futures_util::future::BoxFuture;

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

    /// Whether only user interfaces call the tool (MCP Apps). Models do not see it. Asked for each call and list.
    fn is_app_only(&self) -> bool {
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
        let definition = ToolDefinition::new(name, description, input_schema);
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

    /// Sets the name that people read.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// Declares hints about the tool's behaviour.
    #[must_use]
    pub fn with_annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Sets the tool's icons.
    #[must_use]
    pub fn with_icons(mut self, icons: Vec<Icon>) -> Self {
        self.definition.icons = Some(icons);
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
