//! The [`Tool`] trait: a definition and a way to run it. Every kind of tool (MCP, script, command,
//! built-in, a Rust function) implements it.

#[cfg(feature = "typed")]
mod typed;

use std::future::Future;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::content::ToolOutput;
use crate::error::{Diagnosis, ToolFailure};
use crate::policy::Admitted;
use haft_config::config::choices::Approval;
use haft_config::config::model::{Origin, Setting, ToolSettings};
use haft_config::tool_metadata::{Icon, ToolAnnotations};

pub use crate::context::{CallContext, SessionState};
pub use futures_util::future::BoxFuture;
pub use haft_config::ToolDefinition;
#[cfg(feature = "typed")]
pub use typed::TypedFunction;

/// A callable tool. A tool registered from Rust is a local tool: it has limits of its own
/// ([`settings`](Self::settings)) or an entry in `tools` of the configuration.
///
/// ```
/// use haft::BoxFuture;
/// use haft::{Admitted, Tool, ToolDefinition, ToolFailure, ToolOutput};
/// use serde_json::json;
///
/// struct Shout;
///
/// impl Tool for Shout {
///     fn definition(&self) -> ToolDefinition {
///         let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
///         ToolDefinition::new("shout", "Returns its input in capital letters.", schema)
///     }
///
///     fn invoke<'a>(&'a self, call: &'a Admitted<'_>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
///         Box::pin(async move {
///             let text = call.arguments().value()["text"].as_str().unwrap_or_default();
///             Ok(ToolOutput::from_text(text.to_uppercase()))
///         })
///     }
/// }
/// assert_eq!(Shout.definition().name, "shout");
/// ```
pub trait Tool: Send + Sync + 'static {
    /// Returns the definition that callers see. Called once, at registration.
    fn definition(&self) -> ToolDefinition;

    /// Runs the tool. Work must stop when the future is dropped: timeouts and cancellation rely on
    /// it.
    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>>;

    /// Returns the likely reason why a call got no answer since `began`. Called after a timeout.
    fn diagnose(&self, _began: Instant) -> Option<Diagnosis> {
        None
    }

    /// Example requests as users write them; they help tool selection. Called once.
    fn examples(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns true if a call mostly waits for people. It then takes no slot of the whole toolbox,
    /// so that waiting does not block other tools. Called for each call.
    fn waits_for_people(&self) -> bool {
        false
    }

    /// Returns true if only user interfaces call the tool (MCP Apps). Models do not see it. Called
    /// for each call and list.
    fn is_app_only(&self) -> bool {
        false
    }

    /// Limits of the tool. With them it needs no entry in `tools`; an entry wins field by field. Read once.
    fn settings(&self) -> Option<ToolSettings> {
        None
    }

    /// Releases the tool's resources at shutdown.
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// A Rust function as a tool.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// use std::time::Duration;
///
/// use haft::{ConfigBuilder, FunctionTool, Runtime, ToolCall, ToolOutput};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
/// let greet = FunctionTool::new("greet", "Greets by name.", schema, |args, _context| async move {
///     Ok(ToolOutput::from_text(format!("Hello, {}!", args["name"].as_str().unwrap_or("you"))))
/// })
/// .with_timeout(Duration::from_secs(5));
///
/// let config = ConfigBuilder::new().folder(folder.path()).build()?;
/// let runtime = Runtime::builder(config).tool(greet).start().await?;
/// let envelope = runtime.call(ToolCall::new("greet", &json!({"name": "Ada"}))).await;
/// assert_eq!(envelope.model_text(), "Hello, Ada!");
/// # Ok(())
/// # }
/// ```
pub struct FunctionTool<F> {
    definition: ToolDefinition,
    examples: Vec<String>,
    settings: Option<ToolSettings>,
    function: F,
}

/// The origin of limits that a program sets.
const SET_IN_RUST: Origin = Origin::Implied("set in Rust");

impl<F> FunctionTool<F> {
    /// Limits one call to `timeout`.
    ///
    /// ```
    /// # use haft::{FunctionTool, Tool, ToolOutput};
    /// # use serde_json::json;
    /// # use std::time::Duration;
    /// let tool = FunctionTool::new("now", "The time.", json!({"type": "object"}), |_, _| async { Ok(ToolOutput::from_text("noon")) })
    ///     .with_timeout(Duration::from_secs(5))
    ///     .with_max_instances(20);
    /// assert!(tool.settings().is_some());
    /// ```
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.own_settings().timeout = Some(Setting { value: timeout, origin: SET_IN_RUST });
        self
    }

    /// Lets at most `max_instances` calls run concurrently; the others wait.
    #[must_use]
    pub fn with_max_instances(mut self, max_instances: u32) -> Self {
        let value = max_instances.max(1);
        self.own_settings().max_instances = Some(Setting { value, origin: SET_IN_RUST });
        self
    }

    /// Requires a person's approval of each call, or not.
    #[must_use]
    pub fn with_approval(mut self, approval: Approval) -> Self {
        self.own_settings().approval = Some(Setting { value: approval, origin: SET_IN_RUST });
        self
    }

    /// Uses the default limits, so that the tool needs no entry in `tools`.
    #[must_use]
    pub fn with_default_limits(mut self) -> Self {
        self.own_settings();
        self
    }

    fn own_settings(&mut self) -> &mut ToolSettings {
        self.settings.get_or_insert_default()
    }
}

impl<F, W> FunctionTool<F>
where
    F: Fn(Value, CallContext) -> W + Send + Sync + 'static,
    W: Future<Output = Result<ToolOutput, ToolFailure>> + Send + 'static,
{
    /// Creates a tool that runs `function` with its arguments.
    ///
    /// It needs limits of its own, such as [`with_timeout`](FunctionTool::with_timeout) or
    /// [`with_default_limits`](FunctionTool::with_default_limits), or an entry in `tools` of the configuration. Without
    /// either the runtime does not start. `FunctionTool::typed` and `#[haft::tool]` have the default limits.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        function: F,
    ) -> Self {
        let definition = ToolDefinition::new(name, description, input_schema);
        Self { definition, examples: Vec::new(), settings: None, function }
    }

    /// Sets example requests as users write them.
    #[must_use]
    pub fn with_examples(mut self, examples: &[&str]) -> Self {
        self.examples = examples.iter().map(|&example| example.to_owned()).collect();
        self
    }

    /// Declares that every answer matches `schema`.
    #[must_use]
    pub fn with_output_schema(mut self, schema: Value) -> Self {
        self.definition.output_schema = Some(schema);
        self
    }

    /// Sets the display name.
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

    fn settings(&self) -> Option<ToolSettings> {
        self.settings.clone()
    }

    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin((self.function)(call.arguments().value().clone(), call.context().clone()))
    }
}
