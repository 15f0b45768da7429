//! Tools that need something of the client: a request in the legacy era, `input_required` in the
//! modern one. Each returns what the client answered, `result` or `error` and all.

use serde_json::{Value, json};

use super::{answered, text};
use crate::call::{Call, Outcome};
use crate::modern;
use crate::scenario::Era;

/// Asks the client's model.
pub async fn sample(call: &Call) -> Outcome {
    let question = text(call, "message", "Say hello.");
    let params = json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": question } }],
        "maxTokens": 100,
    });
    ask(call, "sampling", "sampling/createMessage", params).await
}

/// Asks the client's user.
pub async fn elicit(call: &Call) -> Outcome {
    let params = json!({
        "mode": "form",
        "message": text(call, "message", "What is your name?"),
        "requestedSchema": {
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
        },
    });
    ask(call, "elicitation", "elicitation/create", params).await
}

/// Asks for the client's roots.
pub async fn roots(call: &Call) -> Outcome {
    ask(call, "roots", "roots/list", json!({})).await
}

/// Pings the client.
pub async fn ping(call: &Call) -> Outcome {
    match call.era {
        Era::Modern => Outcome::failure(-32601, "there is no ping in the modern era"),
        Era::Legacy | Era::Both => {
            answered(&trimmed(call.peer.ask(&call.out, "ping", json!({})).await))
        }
    }
}

async fn ask(call: &Call, capability: &str, method: &str, params: Value) -> Outcome {
    match call.era {
        Era::Modern if !modern::declares(call, capability) => Outcome::Failure(json!({
            "code": -32021,
            "message": format!("Missing required client capability: {capability}"),
            "data": { "requiredCapabilities": { capability: {} } },
        })),
        Era::Modern => modern::with_input(call, (method, params), |input| {
            answered(&json!({ "result": input }))
        }),
        Era::Legacy | Era::Both => {
            answered(&trimmed(call.peer.ask(&call.out, method, params).await))
        }
    }
}

/// An answer without what only the channel needs.
fn trimmed(mut answer: Value) -> Value {
    if let Some(fields) = answer.as_object_mut() {
        fields.shift_remove("jsonrpc");
        fields.shift_remove("id");
    }
    answer
}
