//! Fields that the modern era adds to a request and to an answer.

use serde_json::{Value, json};

use crate::call::{Call, Outcome};
use crate::methods;
use crate::scenario::Era;

/// The only modern revision there is.
pub const VERSION: &str = "2026-07-28";
/// The `_meta` key of the revision a request follows.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The key of the only question asked at a time.
const INPUT: &str = "input";

/// Methods whose result has a cache lifetime.
const CACHEABLE: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// The error for a request that breaks the rules of the modern era.
pub fn refusal(call: &Call) -> Option<Value> {
    if call.era != Era::Modern {
        return None;
    }
    let unsupported = |requested: &Value| {
        json!({ "code": -32022, "message": "Unsupported protocol version",
            "data": { "supported": [VERSION], "requested": requested } })
    };
    if call.method == "initialize" {
        return Some(unsupported(&call.params["protocolVersion"]));
    }
    let meta = &call.params["_meta"];
    if !meta[PROTOCOL_VERSION].is_string() || !meta[CLIENT_CAPABILITIES].is_object() {
        return Some(json!({ "code": -32602,
            "message": "Invalid params: `_meta` lacks the protocol version or the capabilities" }));
    }
    if meta[PROTOCOL_VERSION] != VERSION {
        return Some(unsupported(&meta[PROTOCOL_VERSION]));
    }
    (!methods::MODERN.contains(&call.method.as_str())).then(|| methods::not_found(&call.method))
}

/// A result with the fields the modern era wants.
pub fn complete(call: &Call, mut result: Value) -> Value {
    let Some(fields) = result.as_object_mut() else { return result };
    if call.era != Era::Modern {
        return result;
    }
    fields.entry("resultType").or_insert(json!("complete"));
    let scenario = &call.server.scenario;
    if CACHEABLE.contains(&call.method.as_str()) {
        fields.entry("ttlMs").or_insert(json!(scenario.ttl_ms));
        fields.entry("cacheScope").or_insert(json!(scenario.cache_scope));
    }
    let meta = fields.entry("_meta").or_insert(json!({}));
    meta[SERVER_INFO] = methods::server_info(scenario);
    result
}

/// The answer to `server/discover`.
pub fn discover(call: &Call) -> Value {
    let scenario = &call.server.scenario;
    let mut result = json!({
        "supportedVersions": [VERSION],
        "capabilities": methods::capabilities(call),
    });
    if let Some(instructions) = &scenario.instructions {
        result["instructions"] = json!(instructions);
    }
    result
}

/// Returns true if the client declared a capability.
pub fn declares(call: &Call, capability: &str) -> bool {
    !call.params["_meta"][CLIENT_CAPABILITIES][capability].is_null()
}

/// Returns true if the client declared an extension.
pub fn declares_extension(call: &Call, extension: &str) -> bool {
    !call.params["_meta"][CLIENT_CAPABILITIES]["extensions"][extension].is_null()
}

/// The result of a tool that needs an answer of the client: the question the first time, then
/// `finish` with the answer.
pub fn with_input(
    call: &Call,
    (method, params): (&str, Value),
    finish: impl FnOnce(&Value) -> Outcome,
) -> Outcome {
    let tool = call.params["name"].as_str().unwrap_or_default().to_owned();
    let Some(state) = call.params["requestState"].as_str() else {
        let state = format!("state-{}-{}", std::process::id(), call.server.next());
        call.server.states.lock().insert(state.clone(), tool);
        return Outcome::Result(json!({
            "resultType": "input_required",
            "inputRequests": { INPUT: { "method": method, "params": params } },
            "requestState": state,
        }));
    };
    if call.server.states.lock().remove(state) != Some(tool) {
        return Outcome::failure(-32602, "Invalid params: unknown `requestState`");
    }
    finish(&call.params["inputResponses"][INPUT])
}

/// The lowest log level a request asks for; none are sent where it does not.
pub fn log_level(call: &Call) -> Option<&str> {
    call.params["_meta"]["io.modelcontextprotocol/logLevel"].as_str()
}
