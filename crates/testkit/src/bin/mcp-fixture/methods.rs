//! The methods of MCP, as a healthy server answers them.

use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};

use crate::call::{Call, Outcome};
use crate::lists;
use crate::modern;
use crate::scenario::{Era, Scenario};
use crate::server::Subscription;
use crate::tasks;
use crate::tools;
use crate::tools::notices;

/// The methods of the modern era.
pub const MODERN: [&str; 13] = [
    "server/discover",
    "subscriptions/listen",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// Answers a request.
pub async fn run(call: &Call) -> Outcome {
    let modern = call.era == Era::Modern;
    match call.method.as_str() {
        "initialize" => Outcome::Result(initialize(call)),
        "server/discover" if modern => Outcome::Result(modern::discover(call)),
        "subscriptions/listen" if modern => listen(call).await,
        "ping" | "resources/subscribe" | "resources/unsubscribe" => Outcome::Result(json!({})),
        "logging/setLevel" => set_level(call),
        "tools/list" => {
            let tools = call.server.tools.lock().iter().map(|tool| tool.shown.clone()).collect();
            page(call, "tools", tools)
        }
        "tools/call" => tools::call(call).await,
        "tasks/get" | "tasks/update" | "tasks/cancel" | "tasks/result" => tasks::answer(call).await,
        "prompts/list" => {
            let mut prompts = call.server.prompts.lock().clone();
            for prompt in &mut prompts {
                prompt.shift_remove("messages");
            }
            page(call, "prompts", prompts)
        }
        "prompts/get" => get_prompt(call),
        "resources/list" => {
            let mut resources = lists::resources(&call.server.scenario);
            for resource in &mut resources {
                resource.shift_remove("text");
                resource.shift_remove("blob");
            }
            page(call, "resources", resources)
        }
        "resources/templates/list" => {
            page(call, "resourceTemplates", lists::templates(&call.server.scenario))
        }
        "resources/read" => read_resource(call),
        "completion/complete" => {
            Outcome::Result(json!({ "completion": { "values": [], "hasMore": false } }))
        }
        other => Outcome::Failure(not_found(other)),
    }
}

/// The error for an unknown method.
pub fn not_found(method: &str) -> Value {
    json!({ "code": -32601, "message": format!("Method not found: {method}") })
}

/// The server's name and version.
pub fn server_info(scenario: &Scenario) -> Value {
    json!({ "name": scenario.name, "version": env!("CARGO_PKG_VERSION") })
}

/// The capabilities that the server declares.
pub fn capabilities(call: &Call) -> Value {
    call.server.scenario.capabilities.clone().unwrap_or_else(|| {
        let mut capabilities = json!({
            "tools": { "listChanged": true },
            "prompts": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true },
            "completions": {},
            "logging": {},
        });
        if call.server.tools.lock().iter().any(|tool| tool.behaves == "task") {
            tasks::declare(&mut capabilities);
        }
        capabilities
    })
}

fn initialize(call: &Call) -> Value {
    let scenario = &call.server.scenario;
    let asked = call.params["protocolVersion"].as_str().unwrap_or_default();
    let known = scenario.protocol_versions.iter().find(|version| *version == asked);
    let mut result = json!({
        "protocolVersion": known.or(scenario.protocol_versions.last()),
        "capabilities": capabilities(call),
        "serverInfo": server_info(scenario),
    });
    if let Some(instructions) = &scenario.instructions {
        result["instructions"] = json!(instructions);
    }
    result
}

async fn listen(call: &Call) -> Outcome {
    call.server.subscribe(Subscription {
        id: call.id.clone(),
        filter: call.params["notifications"].clone(),
        out: call.out.clone(),
    });
    // The stream lasts until the client closes or cancels it.
    std::future::pending().await
}

fn set_level(call: &Call) -> Outcome {
    let level = call.params["level"].as_str().unwrap_or_default();
    match notices::level_index(level) {
        Some(index) => {
            call.peer.log_level.store(index, Ordering::SeqCst);
            Outcome::Result(json!({}))
        }
        None => Outcome::failure(-32602, format!("Invalid params: unknown level {level}")),
    }
}

fn page(call: &Call, key: &str, entries: Vec<Map<String, Value>>) -> Outcome {
    let cursor = call.params["cursor"].as_str();
    match lists::page(&call.server.scenario, key, entries, cursor) {
        Some(page) => Outcome::Result(page),
        None => Outcome::failure(-32602, "Invalid params: unknown cursor"),
    }
}

fn get_prompt(call: &Call) -> Outcome {
    let name = &call.params["name"];
    let prompts = call.server.prompts.lock();
    let Some(prompt) = prompts.iter().find(|prompt| prompt.get("name") == Some(name)) else {
        return Outcome::failure(-32602, format!("Invalid params: unknown prompt {name}"));
    };
    let arguments = prompt.get("arguments").and_then(Value::as_array);
    let missing = arguments.into_iter().flatten().find(|argument| {
        let name = argument["name"].as_str().unwrap_or_default();
        argument["required"] == true && call.params["arguments"][name].is_null()
    });
    if let Some(missing) = missing {
        let name = &missing["name"];
        return Outcome::failure(-32602, format!("Invalid params: missing argument {name}"));
    }
    let default = || {
        let text = format!("prompt {name} with {}", call.params["arguments"]);
        json!([{ "role": "user", "content": { "type": "text", "text": text } }])
    };
    let messages = prompt.get("messages").cloned().unwrap_or_else(default);
    let mut result = json!({ "messages": messages });
    if let Some(description) = prompt.get("description") {
        result["description"] = description.clone();
    }
    Outcome::Result(result)
}

fn read_resource(call: &Call) -> Outcome {
    let uri = call.params["uri"].as_str().unwrap_or_default();
    let resources = lists::resources(&call.server.scenario);
    let found = resources.into_iter().find(|resource| resource.get("uri") == Some(&json!(uri)));
    if let Some(mut resource) = found {
        resource.shift_remove("name");
        return Outcome::Result(json!({ "contents": [resource] }));
    }
    let filled = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    if let Some(id) = filled {
        let text = format!("data of {id}");
        let content = json!({ "uri": uri, "mimeType": "text/plain", "text": text });
        return Outcome::Result(json!({ "contents": [content] }));
    }
    let code = if call.era == Era::Modern { -32602 } else { -32002 };
    let data = json!({ "uri": uri });
    Outcome::Failure(json!({ "code": code, "message": "Resource not found", "data": data }))
}
