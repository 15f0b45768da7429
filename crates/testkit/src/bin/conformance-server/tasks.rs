//! Tools that become tasks (SEP-2663), kept by the SDK's own task manager.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    CreateTaskResult, JsonObject, Tool,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::{Value, json};

use crate::input;

/// Poll interval for clients, and the duration of `failing_job`.
const POLL_MS: u64 = 100;
const FAILS_AFTER: Duration = Duration::from_secs(1);

/// Names and types of arguments.
type Arguments = &'static [(&'static str, &'static str)];

/// The name, the description and the arguments of each tool.
const TOOLS: [(&str, &str, Arguments); 7] = [
    ("greet", "Greets at once.", &[("name", "string")]),
    ("slow_compute", "Takes its time.", &[("seconds", "number"), ("label", "string")]),
    ("failing_job", "Runs as a task only, and fails as a tool.", &[]),
    ("protocol_error_job", "Fails as a request.", &[]),
    ("confirm_delete", "Asks the user before it ends.", &[("filename", "string")]),
    ("multi_input", "Asks the user two things at once.", &[]),
    ("test_tool_with_task", "Asks the user, then becomes a task.", &[]),
];

pub(crate) fn list() -> impl Iterator<Item = Tool> {
    TOOLS.iter().map(|(name, description, arguments)| {
        let properties: JsonObject = arguments
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), json!({"type": kind})))
            .collect();
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), json!(properties));
        Tool::new(*name, *description, schema)
    })
}

/// Calls one of these tools, if there is one of that name.
pub(crate) async fn call(
    tasks: &TaskManager,
    request: &CallToolRequestParams,
    capabilities: &ClientCapabilities,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let args = request.arguments.clone().unwrap_or_default();
    let name = request.name.as_ref();
    if name == "greet" {
        let name = args.get("name").and_then(Value::as_str).unwrap_or_default();
        return Some(Ok(text(format!("Hello, {name}!")).into()));
    }
    if !TOOLS.iter().any(|(known, ..)| *known == name) {
        return None;
    }
    let mut user_name = None;
    if name == "test_tool_with_task" {
        match input::user_name(request) {
            Ok(Ok(given)) => user_name = Some(given),
            Ok(Err(missing)) => return Some(Ok(missing.into())),
            Err(error) => return Some(Err(error)),
        }
    }
    let work = Work { name: name.to_owned(), args, user_name };
    if capabilities.supports_tasks() {
        let options = TaskOptions::new().with_poll_interval_ms(POLL_MS);
        let task = tasks.spawn(options, |context| Box::pin(work.run(Some(context))));
        return Some(Ok(CreateTaskResult::new(task).into()));
    }
    if name != "slow_compute" {
        let required = ClientCapabilities::builder().enable_tasks().build();
        return Some(Err(ErrorData::missing_required_client_capability(required)));
    }
    Some(match work.run(None).await {
        Ok(result) => Ok(result.into()),
        Err(TaskExit::Error(error)) => Err(error),
        Err(TaskExit::Cancelled) => Err(ErrorData::internal_error("cancelled", None)),
    })
}

struct Work {
    name: String,
    args: JsonObject,
    user_name: Option<String>,
}

impl Work {
    async fn run(self, context: Option<TaskContext>) -> Result<CallToolResult, TaskExit> {
        match self.name.as_str() {
            "slow_compute" => {
                let seconds = self.args.get("seconds").and_then(Value::as_f64).unwrap_or_default();
                let sleep = tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 3600.0)));
                tokio::select! {
                    () = sleep => Ok(text(format!("computed for {seconds} s"))),
                    () = cancelled(context.as_ref()) => Err(TaskExit::Cancelled),
                }
            }
            "failing_job" => {
                tokio::time::sleep(FAILS_AFTER).await;
                Ok(CallToolResult::error(vec![ContentBlock::text("the job failed")]))
            }
            "protocol_error_job" => Err(ErrorData::internal_error("the job broke", None).into()),
            "confirm_delete" => {
                let answer = ask(context.as_ref(), "confirm").await?;
                Ok(text(format!("confirmed: {answer}")))
            }
            "multi_input" => {
                let context = context.as_ref();
                let (first, second) = tokio::join!(ask(context, "first"), ask(context, "second"));
                Ok(text(format!("received {} and {}", first?, second?)))
            }
            _ => Ok(text(format!("Hello, {}!", self.user_name.unwrap_or_default()))),
        }
    }
}

async fn ask(context: Option<&TaskContext>, key: &str) -> Result<Value, TaskExit> {
    let Some(context) = context else {
        return Err(ErrorData::internal_error("only a task can ask", None).into());
    };
    let question = input::confirm_request()?;
    context.request_input(key, question).await
}

async fn cancelled(context: Option<&TaskContext>) {
    match context {
        Some(context) => context.cancelled().await,
        None => std::future::pending().await,
    }
}

fn text(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}
