//! Tools: listed in their fixed order, page by page, and called on the one path.

use std::time::Duration;

use haft::mcp_server::Peer;
use haft::{Code, RpcError, Runtime, ToolCall, ToolDescription};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::content::call_result;
use super::{INVALID_PARAMS, read, result};

/// How many tools one page has.
const PAGE: usize = 250;
/// How long a list waits for servers that are being connected. What comes later is announced.
const LATE_WAIT_MAX: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct ListParams {
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    tools: &'a [ToolDescription],
    /// The last tool on this page: unlike a number it stays right when tools come and go.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a str>,
}

/// `tools/list`.
pub(super) async fn list(
    runtime: &Runtime,
    params: Option<&RawValue>,
) -> Result<Box<RawValue>, RpcError> {
    let ListParams { cursor } = read(params)?;
    if cursor.is_none() {
        // A server that does not answer must not keep the tools of the others back.
        let _ = timeout(LATE_WAIT_MAX, runtime.discover()).await;
    }
    let tools = runtime.tool_descriptions();
    let start = match &cursor {
        None => 0,
        Some(last) => {
            let at = tools.iter().position(|tool| tool.name == *last);
            at.ok_or_else(|| RpcError::new(INVALID_PARAMS, "Invalid params: unknown cursor"))? + 1
        }
    };
    let rest = &tools[start..];
    let page = &rest[..rest.len().min(PAGE)];
    let next = page.last().filter(|_| rest.len() > PAGE);
    result(&Page { tools: page, next_cursor: next.map(|tool| tool.name.as_str()) })
}

#[derive(Deserialize)]
struct CallParams {
    name: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

/// `tools/call`.
pub(super) async fn call(
    runtime: &Runtime,
    params: Option<&RawValue>,
    peer: Peer,
) -> Result<Box<RawValue>, RpcError> {
    let CallParams { name, arguments } = read(params)?;
    let arguments = arguments.map_or_else(|| "{}".into(), Box::<str>::from);
    let mut call = ToolCall::from_text(name, arguments).caller(peer.principal());
    if peer.wants_progress() {
        call =
            call.on_progress(move |it| peer.progress(it.progress, it.total, it.message.as_deref()));
    }
    let (envelope, raw) = runtime.call_raw(call).await;
    // What a server answered goes to the client as it is, also where it says that it failed.
    if let Some(raw) = raw {
        return Ok(raw);
    }
    match &envelope.error {
        Some(error) if error.code == Code::UnknownTool => {
            Err(RpcError::new(INVALID_PARAMS, format!("Unknown tool: {}", envelope.tool)))
        }
        Some(_) | None => result(&call_result(&envelope)),
    }
}
