//! Completion of arguments, by the server whose prompt or template it is.

use std::sync::Arc;

use haft::mcp_server::Peer;
use haft::{NAME_BYTES_MAX, RpcError};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::caller_handle::GatewayClient;
use super::prompts::Shown;
use super::{Gateway, URI_BYTES_MAX, check_length, invalid, read, result};

impl Gateway {
    pub(super) async fn complete(
        &self,
        params: Option<&RawValue>,
        peer: Peer,
    ) -> Result<Box<RawValue>, RpcError> {
        let mut params: Map<String, Value> = read(params)?;
        // What belongs to the protocol between the client and us stays here.
        for ours in ["_meta", "inputResponses", "requestState"] {
            params.remove(ours);
        }
        let reference = params.get_mut("ref").ok_or_else(|| invalid(&"`ref` is missing"))?;
        let text = |key: &str| reference.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
        let server = match (text("type").as_deref(), text("name"), text("uri")) {
            (Some("ref/prompt"), Some(name), _) => {
                check_length("name", &name, NAME_BYTES_MAX).map_err(|why| invalid(&why))?;
                let Shown { server, name, .. } = self.prompt(&name)?;
                reference["name"] = json!(name);
                server
            }
            (Some("ref/resource"), _, Some(uri)) => {
                check_length("URI", &uri, URI_BYTES_MAX).map_err(|why| invalid(&why))?;
                let unknown = || invalid(&format!("no server has the template `{uri}`"));
                self.server_of_template(&uri).await.ok_or_else(unknown)?
            }
            _ => return Err(invalid(&"`ref` names neither a prompt nor a resource")),
        };
        if !self.servers_with("completions").contains(&server) {
            // Nothing to suggest is a good answer for one that never suggests anything.
            return result(&json!({ "completion": { "values": [], "hasMore": false } }));
        }
        let params = result(&params)?;
        let client = Arc::new(GatewayClient(peer)) as _;
        self.runtime.forward(&server, "completion/complete", None, &params, &client).await
    }
}
