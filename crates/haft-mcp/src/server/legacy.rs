//! The era of `initialize`: what the protocol itself wants to have answered.

use haft_bounds::parse_error::describe;
use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::About;
use super::peer::{ClientFacts, client_name, new_client_id, used_capabilities};
use super::principal::Principal;
use crate::client::LEGACY_VERSIONS;
use crate::error::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use crate::transport::Era;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialize<'a> {
    protocol_version: String,
    #[serde(borrow, default)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, default)]
    client_info: Option<&'a RawValue>,
}

/// Agrees on a version: the client's if it is supported, otherwise our newest, which the client may reject.
pub(super) fn initialize(
    params: Option<&RawValue>,
    about: &About,
    principal: &Principal,
) -> Result<(ClientFacts, Box<RawValue>), RpcError> {
    let params = params.unwrap_or(RawValue::NULL);
    let Initialize { protocol_version, capabilities, client_info } =
        serde_json::from_str(params.get()).map_err(|error| {
            RpcError::new(
                INVALID_PARAMS,
                format!("`initialize` cannot be read: {}", describe(&error)),
            )
        })?;
    let known = LEGACY_VERSIONS.into_iter().find(|version| *version == protocol_version);
    let version = known.unwrap_or(LEGACY_VERSIONS[0]);
    let mut result = json!({
        "protocolVersion": version,
        "capabilities": about.capabilities,
        "serverInfo": { "name": about.name, "version": about.version },
    });
    if let Some(instructions) = &about.instructions {
        result["instructions"] = json!(instructions);
    }
    let facts = ClientFacts {
        id: new_client_id(),
        principal: Arc::clone(&principal.name),
        revoked: principal.revoked.clone(),
        role: principal.role,
        era: Era::Legacy,
        protocol_version: Cow::Borrowed(version),
        name: client_name(client_info),
        capabilities: capabilities.and_then(used_capabilities).unwrap_or_default(),
    };
    let result =
        to_raw_value(&result).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))?;
    Ok((facts, result))
}

/// The id of the request that `notifications/cancelled` names.
pub(super) fn cancelled(params: &RawValue) -> Option<&str> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    let cancelled = serde_json::from_str::<Cancelled<'_>>(params.get()).ok()?;
    Some(cancelled.request_id.get())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn version(asked: &str) -> String {
        let about = About {
            name: "haft".into(),
            version: "1".into(),
            capabilities: json!({"tools": {}}),
            instructions: None,
        };
        let params = to_raw_value(&json!({"protocolVersion": asked})).unwrap();
        let (facts, result) = initialize(Some(&params), &about, &Principal::new("me")).unwrap();
        let result: Value = serde_json::from_str(result.get()).unwrap();
        assert_eq!(result["capabilities"], about.capabilities);
        assert_eq!(result["protocolVersion"], *facts.protocol_version);
        facts.protocol_version.into_owned()
    }

    #[test]
    fn the_version_of_the_client_is_taken_where_it_is_known() {
        assert_eq!(version("2024-11-05"), "2024-11-05");
        assert_eq!(version("2025-11-25"), "2025-11-25");
        assert_eq!(version("1999-01-01"), "2025-11-25");
        // The modern era has no `initialize`.
        assert_eq!(version("2026-07-28"), "2025-11-25");
    }
}
