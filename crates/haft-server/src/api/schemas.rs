//! The shapes of the library's answers, for the API document. The library itself does not depend on OpenAPI; a test
//! compares these with the service's answers.
#![expect(dead_code, reason = "only their schemas are used")]

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The answer to one call, whatever ran and however it ended.
#[derive(Serialize, ToSchema)]
#[schema(as = Envelope, example = json!({
    "execution_id": "0198c2f4-9d3b-7c11-8a54-5b0e3f6d2a71", "tool": "greet", "status": "success",
    "data": {"greeting": "Hello, you!"}, "content": [{"type": "text", "text": "Hello, you!"}],
    "message": null, "error": null, "queued_ms": 0, "duration_ms": 12,
}))]
pub(super) struct EnvelopeSchema {
    /// Identifies this execution; its log entry carries the same id.
    execution_id: String,
    /// The tool that was asked for.
    tool: String,
    /// The outcome of the call.
    status: StatusSchema,
    /// The structured answer, as the tool wrote it: any JSON.
    data: Value,
    /// The answer as blocks a model can be shown.
    content: Vec<ContentSchema>,
    /// One sentence for a person: the reason of a failure, or a remark beside the answer.
    message: Option<String>,
    /// Why the call failed and what to do about it.
    error: Option<ErrorSchema>,
    /// Time that the call waited for a slot, in milliseconds.
    queued_ms: u64,
    /// Time from request to answer without the wait for a slot, in milliseconds.
    duration_ms: u64,
}

/// Success or error; `error` has the details.
#[derive(Serialize, ToSchema)]
#[schema(as = CallStatus)]
#[serde(rename_all = "lowercase")]
enum StatusSchema {
    Success,
    Error,
}

/// One block of an answer.
#[derive(Serialize, ToSchema)]
#[schema(as = Content)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentSchema {
    /// Plain text.
    Text { text: String },
    /// An image in base64.
    Image { data: String, mime_type: String },
    /// Audio in base64.
    Audio { data: String, mime_type: String },
    /// A resource, embedded or linked. A link may have a name, a title, a description and a size.
    Resource {
        uri: String,
        mime_type: Option<String>,
        text: Option<String>,
        data: Option<String>,
        name: Option<String>,
        title: Option<String>,
        description: Option<String>,
        size: Option<u64>,
    },
}

/// Why a call failed.
#[derive(Serialize, ToSchema)]
#[schema(as = CallError)]
struct ErrorSchema {
    /// One of a fixed set.
    code: CodeSchema,
    /// The failure, the item it concerns, and the cause.
    message: String,
    /// The next step for the caller.
    remedy: Option<String>,
    /// The section of the documentation about the code. Entries of the log have none.
    #[schema(required = false, example = "docs/troubleshooting.md#timeout")]
    docs: String,
    /// Facts for a program: JSON pointers, an exit code, the tail of stderr.
    #[schema(required = false)]
    details: Value,
}

/// Why a call failed, in one word.
#[derive(Serialize, ToSchema)]
#[schema(as = CallErrorCode)]
enum CodeSchema {
    UnknownTool,
    Denied,
    ValidationError,
    OutputValidationError,
    Busy,
    Timeout,
    Cancelled,
    ToolExecutionError,
    ServiceUnavailable,
    ProtocolError,
    OutcomeUnknown,
    DefinitionChanged,
    Stopping,
}

/// A tool, its settings and where each of them came from.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolInfo)]
pub(super) struct ToolInfoSchema {
    /// The name under which it is called.
    name: String,
    /// The name its source gave it, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    original_name: Option<String>,
    /// Why its name may mislead: characters that are invisible or look like others, or a name that looks
    /// like another tool's.
    #[serde(skip_serializing_if = "Option::is_none")]
    name_warning: Option<String>,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Its purpose.
    description: String,
    /// Hints about its behaviour. Those of a server are its own claims, unless the configuration sets them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, example = json!({"readOnlyHint": true}))]
    annotations: Option<Value>,
    /// Its icons: objects with `src` and, where known, `mimeType`, `sizes` and `theme`. Those of a server are not
    /// checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    icons: Option<Value>,
    /// Where it comes from.
    source: super::tools_list::SourceFilter,
    /// The MCP server that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_name: Option<String>,
    /// That server's mode: `strict` or `dynamic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_mode: Option<String>,
    /// Its backend: `local`, `mcp`, `builtin` or `function`.
    kind: String,
    /// JSON Schema of the arguments.
    input_schema: Value,
    /// JSON Schema of the structured answer.
    output_schema: Value,
    /// Origin of its settings: `explicit`, `default` or `merged`.
    config_origin: String,
    /// The settings it runs with.
    config: Vec<EffectiveValueSchema>,
    /// True if an earlier run saw the tool, and its server is not connected yet.
    #[schema(required = false)]
    cached: bool,
    /// Set if the server's definition is not the one that the lock file approves: calls are refused, and the approved
    /// definition is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<BlockedDefinitionSchema>,
    /// The program, for a script or command.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<Value>,
}

/// The definition of a tool that is not the approved one.
#[derive(Serialize, ToSchema)]
#[schema(as = BlockedDefinition)]
struct BlockedDefinitionSchema {
    /// The hash of the approved definition; none if the tool is new.
    approved: Option<String>,
    /// The hash of the current definition.
    current: String,
}

/// One setting and where it came from.
#[derive(Serialize, ToSchema)]
#[schema(as = EffectiveValue)]
struct EffectiveValueSchema {
    /// The setting.
    key: String,
    /// Its value.
    value: Value,
    /// `explicit` or `default`.
    origin: String,
    /// Which file and line, which variable, which default.
    from: String,
}

/// One call in flight.
#[derive(Serialize, ToSchema)]
#[schema(as = RunningCall)]
pub(super) struct RunningCallSchema {
    /// The id that its answer and its log entry will carry.
    execution_id: String,
    /// The tool that was asked for.
    tool: String,
    /// The caller.
    caller: Option<String>,
    /// The session or run it belongs to.
    session: Option<String>,
    /// When it was asked for, RFC 3339.
    started: String,
    /// True if it has its turn.
    state: CallStateSchema,
}

/// The progress of a call.
#[derive(Serialize, ToSchema)]
#[schema(as = CallState)]
#[serde(rename_all = "lowercase")]
enum CallStateSchema {
    Waiting,
    Running,
}

/// An entry of `tools.json`: a local tool, or settings for a tool of an MCP server.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolEntry, example = json!({
    "name": "hello_world", "description": "Greets a person by name.", "type": "local",
    "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    "config": {"script_path": "hello_world.py"},
}))]
pub(super) struct ToolEntrySchema {
    /// The tool's name. May be left out where the path has it.
    #[schema(required = false, min_length = 1)]
    name: String,
    /// Its purpose, and when to prefer it.
    #[schema(required = false)]
    description: String,
    /// A script or program, or settings for a tool of an MCP server.
    #[serde(rename = "type")]
    #[schema(required = false)]
    kind: super::tools_list::SourceFilter,
    /// JSON Schema of the arguments, or `"signature"` to read it from the function of a Python tool.
    #[schema(required = false, value_type = Object)]
    input_schema: Value,
    /// JSON Schema of the answer.
    #[schema(required = false, value_type = Object)]
    output_schema: Value,
    /// True if calls may run at the same time.
    #[schema(required = false)]
    parallel_capable: bool,
    /// Number of calls that may run at once.
    #[schema(required = false, minimum = 1)]
    max_instances: u32,
    /// Time limit of one call, such as `30s`.
    #[schema(required = false, example = "30s", pattern = "^[1-9][0-9]{0,3}(ms|s|m)$")]
    timeout: String,
    /// Requests the tool is meant for, as people write them; they help to choose it.
    #[schema(required = false)]
    examples: Vec<String>,
    /// A name for people.
    #[schema(required = false, min_length = 1, max_length = 200)]
    title: String,
    /// Hints about its behaviour.
    #[schema(required = false)]
    annotations: ToolEntryAnnotationsSchema,
    /// Its icons.
    #[schema(required = false, max_items = 8)]
    icons: Vec<ToolEntryIconSchema>,
    /// The execution settings of the tool.
    #[schema(required = false)]
    config: ToolEntryConfigSchema,
}

/// Hints about the behaviour of a tool, as MCP defines them.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolEntryAnnotations)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "MCP has four independent hints")]
struct ToolEntryAnnotationsSchema {
    /// The tool changes nothing.
    #[schema(required = false)]
    read_only_hint: bool,
    /// The tool may delete or overwrite.
    #[schema(required = false)]
    destructive_hint: bool,
    /// A second call with the same arguments changes nothing more.
    #[schema(required = false)]
    idempotent_hint: bool,
    /// The tool reaches systems outside a closed set, such as the web.
    #[schema(required = false)]
    open_world_hint: bool,
    /// A name for people; clients prefer the tool's own `title`.
    #[schema(required = false, min_length = 1, max_length = 200)]
    title: String,
}

/// An icon of a tool.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolEntryIcon)]
#[serde(rename_all = "camelCase")]
struct ToolEntryIconSchema {
    /// An https: address, or a data: URI with an image in base64.
    #[schema(example = "https://example.com/icon.png", pattern = "^(https://|data:image/)")]
    src: String,
    /// The type of the image.
    #[schema(required = false, example = "image/png", pattern = "^image/")]
    mime_type: String,
    /// The sizes it can be shown at.
    #[schema(required = false, max_items = 16, example = json!(["48x48"]))]
    sizes: Vec<String>,
    /// The background it is designed for.
    #[schema(required = false, pattern = "^(light|dark)$")]
    theme: String,
}

/// The execution settings of a tool of `tools.json`.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolEntryConfig)]
struct ToolEntryConfigSchema {
    /// The script, inside the registry's folder.
    #[schema(required = false, example = "hello_world.py")]
    script_path: String,
    /// The function to call; `run` by default.
    #[schema(required = false, example = "run")]
    entrypoint: String,
    /// `python` or `command`; by default derived from the script's extension.
    #[schema(required = false, pattern = "^(python|command)$")]
    runtime: String,
    /// The program that runs the script, or that is the tool itself. It needs a line in
    /// `policy.allowed_commands`.
    #[schema(required = false)]
    command: Vec<String>,
    /// Arguments of a command, after the script.
    #[schema(required = false)]
    args: Vec<String>,
    /// The text of a Python script, in place of `script_path`. It needs `policy.allowed_scripts: upload`.
    #[schema(required = false)]
    source: String,
    /// Variables for its environment. Each needs a line in `policy.allowed_env`.
    #[schema(required = false, value_type = Object)]
    env: Value,
    /// Packages that a Python tool needs. They need `policy.allowed_scripts: upload`.
    #[schema(required = false)]
    requirements: Vec<String>,
    /// The server of an entry of `type: mcp`.
    #[schema(required = false)]
    server: String,
}

/// A name and an entry of `mcp.json`: a local command or an address.
#[derive(Serialize, ToSchema)]
#[schema(as = ServerRegistration, example = json!({
    "name": "weather", "url": "https://weather.example.com/mcp", "mode": "dynamic",
}))]
pub(super) struct ServerRegistrationSchema {
    /// The server's name.
    #[schema(min_length = 1)]
    name: String,
    /// The program of a local server. It needs a line in `policy.allowed_commands`.
    #[schema(required = false)]
    command: String,
    /// The program's arguments.
    #[schema(required = false)]
    args: Vec<String>,
    /// The address of a remote server.
    #[schema(required = false, format = "uri")]
    url: String,
    /// The meaning of its unconfigured tools.
    #[schema(required = false, example = "dynamic", pattern = "^(strict|dynamic)$")]
    mode: String,
}

/// A question that waits for a person.
#[derive(Serialize, ToSchema)]
#[schema(as = InboxItem)]
pub(super) struct InboxItemSchema {
    /// Its id, which sorts by the time of asking.
    id: String,
    /// The reason for the question.
    kind: InboxKindSchema,
    /// The question.
    question: String,
    /// Where there are some, the answer is one of them.
    options: Vec<String>,
    /// JSON Schema of the answer.
    schema: Value,
    /// The tool that is about to run, or that asks.
    tool: Option<String>,
    /// The arguments of the pending call, or the difference to approve.
    arguments: Value,
    /// The MCP server that asks, or that has the tool.
    server: Option<String>,
    /// The setting that requires the question, with its origin.
    rule: Option<String>,
    /// The call that waits for the answer.
    execution_id: Option<String>,
    /// The caller of the pending call.
    caller: Option<String>,
    /// The session or run it belongs to.
    session: Option<String>,
    /// Since when it waits, RFC 3339.
    asked: String,
    /// Until when it waits, RFC 3339.
    expires: String,
}

/// The reason for a question.
#[derive(Serialize, ToSchema)]
#[schema(as = InboxKind)]
#[serde(rename_all = "snake_case")]
enum InboxKindSchema {
    /// A tool or a program wants to know something.
    Question,
    /// A tool with `approval: ask` is about to run.
    Approval,
    /// A server with `sampling: ask` wants to use the model.
    Sampling,
    /// A server wants to know something.
    Elicitation,
    /// A definition of a server differs from the lock file; `arguments` is the difference.
    Definition,
}
