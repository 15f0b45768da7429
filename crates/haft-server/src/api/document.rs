//! The API document: the endpoints' own descriptions, completed with the responses that the service around them may
//! send.

use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use crate::serve::{FieldProblem, ProblemDocument};

/// The callers that may use an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// Every caller to read, admins to change.
    Reading,
    /// Every caller.
    Calling,
    /// Admins.
    Admin,
}

/// Paths that need no key.
const OPEN_PATHS: [&str; 2] = ["/healthz", "/readyz"];

const PROBLEM_TYPE: &str = "application/problem+json";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Haft",
        description = "One handle on every tool an LLM agent may use: call tools, manage the registry, read the log."
    ),
    components(schemas(ProblemDocument, FieldProblem))
)]
struct Head;

/// The document while its parts come together.
pub(super) struct Document(Value);

impl Document {
    pub(super) fn new() -> Self {
        let mut document = value(&Head::openapi());
        // Relative, so that a generated client and the page use the address that the document came from.
        document["servers"] = json!([{"url": "/", "description": "This service."}]);
        document["components"]["securitySchemes"] = json!({
            "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key",
                "description": "A key of `haft keys create`. Needed as soon as there is one, and always to change something."},
            "bearer": {"type": "http", "scheme": "bearer", "description": "The same key as `Authorization: Bearer KEY`."},
        });
        Self(document)
    }

    /// Adds endpoints. An operation that is there already is left as it is.
    pub(super) fn add(&mut self, part: &utoipa::openapi::OpenApi, who: Who) {
        let mut part = value(part);
        for (path, operations) in members(&mut part["paths"]) {
            for (method, operation) in members(operations) {
                complete(operation, path, method, who);
                let place = &mut self.0["paths"][path.as_str()][method.as_str()];
                if place.is_null() {
                    *place = operation.take();
                }
            }
        }
        for (name, schema) in members(&mut part["components"]["schemas"]) {
            let place = &mut self.0["components"]["schemas"][name.as_str()];
            if place.is_null() {
                *place = schema.take();
            }
        }
    }

    /// Every path there is.
    pub(super) fn paths(&self) -> Vec<String> {
        let paths = self.0["paths"].as_object();
        paths.map(|paths| paths.keys().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn as_value(&self) -> &Value {
        &self.0
    }
}

/// Adds to an operation what the frame may answer.
fn complete(operation: &mut Value, path: &str, method: &str, who: Who) {
    let is_open = OPEN_PATHS.contains(&path);
    let is_admin = match who {
        Who::Admin => true,
        Who::Reading => method != "get",
        Who::Calling => false,
    };
    let mut answers = vec![
        ("400", "The request cannot be read."),
        (
            "403",
            if is_admin {
                "It takes an admin key, the operator does not allow it, or the host or web page is foreign."
            } else {
                "It is not permitted, or the host or web page is foreign."
            },
        ),
        ("500", "An internal error; see the log."),
    ];
    if !is_open {
        operation["security"] = json!([{"api_key": []}, {"bearer": []}]);
        answers.push(("401", "The key is missing or wrong."));
        answers.push(("429", "Too many wrong keys; retry after `Retry-After`."));
    }
    if operation.get("requestBody").is_some() {
        answers.push(("408", "The body did not arrive in time."));
        answers.push(("413", "The body is too large."));
        answers.push(("415", "The body is not JSON."));
    }
    for (status, text) in answers {
        let response = &mut operation["responses"][status];
        if response.is_null() {
            *response = json!({"description": text});
        }
        // Where an endpoint answers this status with something of its own, the frame may still be faster.
        response["content"][PROBLEM_TYPE] = problem();
    }
    for (status, response) in members(&mut operation["responses"]) {
        let is_error = status.starts_with(['4', '5']);
        if is_error && response.get("content").is_none() {
            response["content"] = json!({ PROBLEM_TYPE: problem() });
        }
    }
    if let Some(responses) = operation["responses"].as_object_mut() {
        responses.sort_keys();
    }
}

fn problem() -> Value {
    json!({"schema": {"$ref": "#/components/schemas/Problem"}})
}

fn value(document: &utoipa::openapi::OpenApi) -> Value {
    // Made of types that are made to be written.
    serde_json::to_value(document).unwrap_or_default()
}

fn members(value: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    value.as_object_mut().map(Map::iter_mut).into_iter().flatten()
}
