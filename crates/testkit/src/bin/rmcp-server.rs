//! An MCP server made with `rmcp`, the official Rust SDK, as a peer that shares no code with ours.
//!
//! `rmcp-server stdio`, or `rmcp-server http PORT` for `http://127.0.0.1:PORT/mcp`. Its tools are `add`
//! (structured), `echo` and `fail`.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["stdio"] => {
            let service = Tools.serve(rmcp::transport::stdio()).await;
            let service = service.map_err(std::io::Error::other)?;
            service.waiting().await.map(drop).map_err(std::io::Error::other)
        }
        ["http", port] => serve_http(port.parse().map_err(std::io::Error::other)?).await,
        _ => Err(std::io::Error::other("say `stdio` or `http PORT`")),
    }
}

async fn serve_http(port: u16) -> std::io::Result<()> {
    let sessions = Arc::new(LocalSessionManager::default());
    let service =
        StreamableHttpService::new(|| Ok(Tools), sessions, StreamableHttpServerConfig::default());
    let router = axum::Router::new().route_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    axum::serve(listener, router).await
}

struct Tools;

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let number = || json!({"type": "integer"});
        let add = schema(&json!({"a": number(), "b": number()}), &["a", "b"]);
        let text = |name: &str| schema(&json!({name: {"type": "string"}}), &[name]);
        Ok(ListToolsResult::with_all_items(vec![
            Tool::new("add", "Adds two integers.", add)
                .with_raw_output_schema(schema(&json!({"sum": number()}), &["sum"])),
            Tool::new("echo", "Gives back the message.", text("message")),
            Tool::new("fail", "Fails with the given reason.", text("reason")),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let number = |name: &str| arguments.get(name).and_then(Value::as_i64).unwrap_or_default();
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let result = match request.name.as_ref() {
            "add" => CallToolResult::structured(json!({"sum": number("a") + number("b")})),
            "echo" => CallToolResult::success(vec![ContentBlock::text(text("message"))]),
            "fail" => CallToolResult::error(vec![ContentBlock::text(text("reason"))]),
            name => return Err(ErrorData::invalid_params(format!("no tool {name}"), None)),
        };
        Ok(result.into())
    }
}

fn schema(properties: &Value, required: &[&str]) -> Arc<JsonObject> {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}
