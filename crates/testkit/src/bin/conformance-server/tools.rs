//! The tools: their list, and which module runs which.
#![expect(deprecated, reason = "the suite still tests sampling")]

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    JsonObject, Tool,
};
use rmcp::service::{RequestContext, ServiceError};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::changes::{Change, Changes};
use crate::server::Server;
use crate::{ask, content, input, report, tasks};

/// Tools without arguments, and what each does.
const PLAIN: [(&str, &str); 24] = [
    ("test_simple_text", "Answers with text."),
    ("test_image_content", "Answers with an image."),
    ("test_audio_content", "Answers with audio."),
    ("test_embedded_resource", "Answers with a resource."),
    ("test_multiple_content_types", "Answers with text, an image and a resource."),
    ("test_error_handling", "Always fails."),
    ("test_tool_with_logging", "Sends log messages before it answers."),
    ("test_logging_tool", "Sends log messages before it answers."),
    ("test_tool_with_progress", "Reports progress before it answers."),
    ("test_elicitation_sep1034_defaults", "Asks the user, with defaults."),
    ("test_elicitation_sep1330_enums", "Asks the user to choose."),
    ("test_missing_capability", "Needs a client that can sample."),
    ("test_streaming_elicitation", "Needs the user's name."),
    ("test_input_required_result_elicitation", "Needs the user's name."),
    ("test_input_required_result_sampling", "Needs a model."),
    ("test_input_required_result_list_roots", "Needs the client's roots."),
    ("test_input_required_result_request_state", "Needs a confirmation and its own state."),
    ("test_input_required_result_multiple_inputs", "Needs three things at once."),
    ("test_input_required_result_multi_round", "Needs two things, one after the other."),
    ("test_input_required_result_tampered_state", "Needs its own state, untouched."),
    ("test_input_required_result_capabilities", "Needs whatever the client can give."),
    ("test_trigger_tool_change", "Changes the list of tools."),
    ("test_trigger_prompt_change", "Changes the list of prompts."),
    ("test_reconnection", "Answers with text."),
];

/// Is in the list after every other change.
const COMES_AND_GOES: &str = "test_tool_that_comes_and_goes";

pub(crate) fn list(changes: &Changes) -> Vec<Tool> {
    let tool = |name: &'static str, description: &'static str, schema: Value| {
        Tool::new(name, description, object(schema))
    };
    let empty = || json!({"type": "object", "properties": {}});
    let text = |name: &str| {
        let properties = json!({name: {"type": "string"}});
        json!({"type": "object", "properties": properties, "required": [name]})
    };
    let mut tools: Vec<Tool> =
        PLAIN.iter().map(|(name, description)| tool(name, description, empty())).collect();
    tools.push(tool("test_sampling", "Asks the client's model.", text("prompt")));
    tools.push(tool("test_elicitation", "Asks the user.", text("message")));
    let schema = schema_2020_12();
    tools.push(tool("json_schema_2020_12_tool", "Has a schema with much in it.", schema));
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": region}});
    tools.push(tool("test_x_mcp_header", "Wants its argument as a header, too.", schema));
    tools.extend(tasks::list());
    if changes.has_more(Change::Tools) {
        tools.push(tool(COMES_AND_GOES, "Is there or not.", empty()));
    }
    tools
}

pub(crate) async fn call(
    server: &Server,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let capabilities = context.client_capabilities().unwrap_or_default();
    if let Some(result) = content::answer(&request.name) {
        return Ok(result.into());
    }
    if let Some(result) = input::call(&request, &capabilities) {
        return result;
    }
    if let Some(result) = tasks::call(&server.tasks, &request, &capabilities).await {
        return result;
    }
    let args = request.arguments.unwrap_or_default();
    let result = match request.name.as_ref() {
        "test_tool_with_logging" | "test_logging_tool" => {
            done(report::log(context, server.level(context)).await)
        }
        "test_tool_with_progress" => done(report::progress(context).await),
        "test_sampling" => ask::sampling(context, &args).await,
        "test_elicitation" => ask::elicitation(context, &args).await,
        "test_elicitation_sep1034_defaults" => ask::defaults(context).await,
        "test_elicitation_sep1330_enums" => ask::enums(context).await,
        "test_missing_capability" => {
            if capabilities.sampling.is_none() {
                let required = ClientCapabilities::builder().enable_sampling().build();
                return Err(ErrorData::missing_required_client_capability(required));
            }
            done(Ok(()))
        }
        "test_trigger_tool_change" => {
            server.changes.trigger(Change::Tools).await;
            done(Ok(()))
        }
        "test_trigger_prompt_change" => {
            server.changes.trigger(Change::Prompts).await;
            done(Ok(()))
        }
        "json_schema_2020_12_tool" | "test_x_mcp_header" | "test_reconnection" | COMES_AND_GOES => {
            done(Ok(()))
        }
        name => return Err(ErrorData::invalid_params(format!("no tool {name}"), None)),
    };
    Ok(result.into())
}

fn done(result: Result<(), ServiceError>) -> CallToolResult {
    match result {
        Ok(()) => CallToolResult::success(vec![ContentBlock::text("Done.")]),
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
    }
}

/// Keywords that a server or a gateway may lose when it reads and writes schemas.
fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

fn object(schema: Value) -> JsonObject {
    match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::default(),
    }
}
