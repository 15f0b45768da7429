//! Tools that ask the client something while they run, as servers of the legacy era do.
#![expect(deprecated, reason = "the suite still tests sampling")]

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ContentBlock, CreateMessageRequestParams, ElicitRequestParams,
    ElicitationSchema, JsonObject, SamplingMessage,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

/// Asks the client's model.
pub(crate) async fn sampling(
    context: &RequestContext<RoleServer>,
    args: &JsonObject,
) -> CallToolResult {
    let prompt = text(args, "prompt");
    let request = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    match context.peer.create_message(request).await {
        Ok(result) => {
            let blocks = serde_json::to_value(&result.message.content).unwrap_or_default();
            // One block comes as an object, several as a list.
            let block = blocks.get(0).unwrap_or(&blocks);
            let said = block["text"].as_str().unwrap_or("(no text)");
            answer(format!("LLM response: {said}"))
        }
        Err(error) => failure(format!("sampling failed: {error}")),
    }
}

/// Asks the user for a name and an address.
pub(crate) async fn elicitation(
    context: &RequestContext<RoleServer>,
    args: &JsonObject,
) -> CallToolResult {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    });
    elicit(context, text(args, "message"), schema, "User response").await
}

/// Asks for one value of each primitive type, each with a default (SEP-1034).
pub(crate) async fn defaults(context: &RequestContext<RoleServer>) -> CallToolResult {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "default": true},
        },
    });
    elicit(context, "Please check the values", schema, "Elicitation completed").await
}

/// Asks for a choice in each of the five spellings (SEP-1330).
pub(crate) async fn enums(context: &RequestContext<RoleServer>) -> CallToolResult {
    let options = json!(["option1", "option2", "option3"]);
    let titled = json!([
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]);
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
    });
    elicit(context, "Please choose", schema, "Elicitation completed").await
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    message: &str,
    schema: Value,
    label: &str,
) -> CallToolResult {
    let schema = match serde_json::from_value::<ElicitationSchema>(schema) {
        Ok(schema) => schema,
        Err(error) => return failure(format!("the SDK refuses the schema: {error}")),
    };
    let request = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: schema,
    };
    match context.peer.create_elicitation(request).await {
        Ok(result) => {
            let action = serde_json::to_value(&result.action).unwrap_or_default();
            let action = action.as_str().unwrap_or("unknown").to_owned();
            let given = result.content.unwrap_or_default();
            answer(format!("{label}: action={action}, content={given}"))
        }
        Err(error) => failure(format!("elicitation failed: {error}")),
    }
}

fn text<'a>(args: &'a JsonObject, name: &str) -> &'a str {
    args.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn answer(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn failure(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}
