//! The toolbox as an MCP server: what it offers to clients, whatever carries their messages.
//!
//! Every call takes the one path of [`haft::call`], so limits, checks and the log hold for clients too.

mod content;
mod tools;

use haft::mcp_server::{About, ClientRequest, Service};
use haft::oauth::BoxFuture;
use haft::{RpcError, Runtime};
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;

/// JSON-RPC: the method does not exist.
const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the parameters are wrong.
const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: we failed.
const INTERNAL_ERROR: i64 = -32603;

/// A toolbox as MCP clients see it.
pub struct Gateway {
    runtime: Runtime,
}

impl Gateway {
    /// Offers the tools of `runtime`.
    pub fn new(runtime: Runtime) -> Self {
        Self { runtime }
    }

    async fn answer(&self, request: ClientRequest) -> Result<Box<RawValue>, RpcError> {
        let ClientRequest { method, params, peer } = request;
        match method.as_str() {
            "tools/list" => tools::list(&self.runtime, params.as_deref()).await,
            "tools/call" => tools::call(&self.runtime, params.as_deref(), peer).await,
            _ => {
                let text = format!("`{method}` is not offered here");
                Err(RpcError::new(METHOD_NOT_FOUND, text))
            }
        }
    }
}

impl Service for Gateway {
    fn about(&self) -> About {
        About {
            name: "haft".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: json!({ "tools": {} }),
            instructions: None,
        }
    }

    fn request(&self, request: ClientRequest) -> BoxFuture<'_, Result<Box<RawValue>, RpcError>> {
        Box::pin(self.answer(request))
    }

    fn tool_changes(&self) -> watch::Receiver<u64> {
        self.runtime.changes()
    }
}

/// The parameters of a request.
fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|error| RpcError::new(INVALID_PARAMS, format!("Invalid params: {error}")))
}

/// A result of ours as JSON.
fn result(value: &impl serde::Serialize) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(value).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))
}
