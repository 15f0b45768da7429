//! Bodies that cost more than their bytes.

use serde_json::json;

/// Just below the limit of a body, 4 MiB.
const BODY_BYTES: usize = 3_900_000;
const NESTING: usize = 500_000;
const NAME_BYTES: usize = 3_500_000;
const CAPABILITIES_BYTES: usize = 1_800_000;
const ARGUMENT_BYTES: usize = 3_000_000;

/// A path and the body for it.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) path: &'static str,
    pub(super) bytes: Vec<u8>,
}

/// Every large body, built once.
#[derive(Debug)]
pub(super) struct Bodies {
    pub(super) tiny_values: Vec<Body>,
    pub(super) deep: Vec<Body>,
    pub(super) names: Vec<Body>,
    pub(super) capabilities: Body,
    pub(super) large_arguments: Body,
}

impl Bodies {
    pub(super) fn new() -> Self {
        let list = |item: &str| {
            let items = format!("{item},").repeat(BODY_BYTES / (item.len() + 1));
            format!("{{\"n\":[{}]}}", items.trim_end_matches(','))
        };
        let keys = || {
            let keys: Vec<String> = (0..BODY_BYTES / 10).map(|n| format!("\"{n:x}\":0")).collect();
            format!("{{{}}}", keys.join(","))
        };
        let tiny = [list("0"), list("{}"), keys()];
        let deep = [
            format!("{{\"n\":{}{}}}", "[".repeat(NESTING), "]".repeat(NESTING)),
            // Never closed.
            "{\"n\":".repeat(NESTING),
        ];
        let name = "n".repeat(NAME_BYTES);
        Self {
            tiny_values: tiny.iter().flat_map(|arguments| calls("echo", arguments)).collect(),
            deep: deep.iter().flat_map(|arguments| calls("echo", arguments)).collect(),
            names: calls(&name, "{}")
                .into_iter()
                .filter(|body| !body.path.contains("echo"))
                .collect(),
            capabilities: Body { path: "/mcp", bytes: initialize(&capabilities()) },
            large_arguments: Body {
                path: "/api/v1/tools/nap/call",
                bytes: format!("{{\"arguments\":{{\"text\":\"{}\"}}}}", "x".repeat(ARGUMENT_BYTES))
                    .into_bytes(),
            },
        }
    }
}

/// A call of a tool in every way there is: the API, a batch, MCP.
fn calls(tool: &str, arguments: &str) -> [Body; 3] {
    let batch = format!("{{\"calls\":[{{\"tool\":\"{tool}\",\"arguments\":{arguments}}}]}}");
    [
        Body {
            path: "/api/v1/tools/echo/call",
            bytes: format!("{{\"arguments\":{arguments}}}").into_bytes(),
        },
        Body { path: "/api/v1/calls", bytes: batch.into_bytes() },
        Body { path: "/mcp", bytes: tools_call(1, tool, arguments).into_bytes() },
    ]
}

/// `tools/call`, in a session.
pub(super) fn tools_call(id: u64, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// Many small objects in objects.
fn capabilities() -> String {
    let one = r#"{"a":{"b":{"c":{"d":0}}}}"#;
    let count = CAPABILITIES_BYTES / (one.len() + 10);
    let members: Vec<String> = (0..count).map(|n| format!("\"{n:07}\":{one}")).collect();
    format!("{{\"experimental\":{{{}}}}}", members.join(","))
}

/// `initialize` with these capabilities, given as JSON.
pub(super) fn initialize(capabilities: &str) -> Vec<u8> {
    let client = json!({ "name": "client", "version": "0" });
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"clientInfo":{client}}}}}"#
    )
    .into_bytes()
}
