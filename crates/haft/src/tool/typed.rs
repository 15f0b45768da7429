//! Functions with typed arguments and results; their schemas come from the types.

use std::future::Future;

use haft_bounds::parse_error::describe;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{BoxFuture, FunctionTool};
use crate::content::ToolOutput;
use crate::context::CallContext;
use crate::error::ToolFailure;
use haft_config::ToolDefinition;

impl FunctionTool<()> {
    /// A tool with typed arguments and a typed result. Both schemas come from the types. It has the default limits
    /// and needs no entry in `tools`.
    ///
    /// A result that serializes to a JSON object becomes structured data with an output schema; a string becomes
    /// text.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// use haft::{ConfigBuilder, FunctionTool, Runtime, ToolCall};
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, JsonSchema)]
    /// struct Add {
    ///     /// The first number.
    ///     a: i64,
    ///     b: i64,
    /// }
    ///
    /// #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    /// struct Sum {
    ///     sum: i64,
    /// }
    ///
    /// let add = FunctionTool::typed("add", "Adds two numbers.", |args: Add| async move {
    ///     Ok(Sum { sum: args.a + args.b })
    /// });
    /// let config = ConfigBuilder::new().folder(folder.path()).build()?;
    /// let runtime = Runtime::builder(config).tool(add).start().await?;
    ///
    /// let envelope = runtime.call(ToolCall::new("add", &Add { a: 2, b: 3 })).await;
    /// assert_eq!(envelope.parse::<Sum>()?, Sum { sum: 5 });
    ///
    /// let refused = runtime.call(ToolCall::new("add", &serde_json::json!({"a": "two"}))).await;
    /// assert_eq!(refused.into_result().unwrap_err().code, haft::Code::ValidationError);
    /// # Ok(())
    /// # }
    /// ```
    pub fn typed<A, O, F, W>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> FunctionTool<TypedFunction>
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema + 'static,
        F: Fn(A) -> W + Send + Sync + 'static,
        W: Future<Output = Result<O, ToolFailure>> + Send + 'static,
    {
        let name = name.into();
        let tool = name.clone();
        let function = move |args: Value, _: CallContext| -> BoxFuture<'static, _> {
            match serde_json::from_value::<A>(args) {
                Ok(args) => {
                    let running = function(args);
                    Box::pin(async move { output(&running.await?) })
                }
                Err(error) => {
                    let problem = describe(&error);
                    let message = format!("the arguments of `{tool}` cannot be used: {problem}");
                    Box::pin(async move { Err(ToolFailure::execution(message)) })
                }
            }
        };
        let mut definition = ToolDefinition::new(name, description, input_schema::<A>());
        definition.output_schema = Some(schema::<O>()).filter(|schema| schema["type"] == "object");
        let function: TypedFunction = Box::new(function);
        let tool = FunctionTool { definition, examples: Vec::new(), settings: None, function };
        tool.with_default_limits()
    }
}

/// The function of a typed tool, with its types erased.
pub type TypedFunction = Box<
    dyn Fn(Value, CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolFailure>> + Send + Sync,
>;

fn schema<T: JsonSchema>() -> Value {
    let generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    generator.into_root_schema_for::<T>().to_value()
}

/// Arguments are always an object; `()` stands for none.
fn input_schema<A: JsonSchema>() -> Value {
    let schema = schema::<A>();
    if schema["type"] == "null" { serde_json::json!({ "type": "object" }) } else { schema }
}

fn output(result: &impl Serialize) -> Result<ToolOutput, ToolFailure> {
    let failed = |error: serde_json::Error| {
        ToolFailure::execution(format!(
            "the result cannot be written as JSON: {}",
            describe(&error)
        ))
    };
    match serde_json::to_value(result).map_err(failed)? {
        Value::String(text) => Ok(ToolOutput::from_text(text)),
        Value::Object(_) => ToolOutput::from_json(result).map_err(failed),
        other => Ok(ToolOutput::from_text(other.to_string())),
    }
}
