//! The era without sessions: what every request says about its client, and what every result says
//! about itself.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::About;
use super::meta::Meta;
use super::peer::{ClientFacts, client_name, used_capabilities};
use super::principal::Principal;
use crate::client::{LEGACY_VERSIONS, MODERN_VERSION};
use crate::error::{INTERNAL_ERROR, INVALID_PARAMS, RpcError, UNSUPPORTED_VERSION};
use crate::extension::TASKS_EXTENSION;
use crate::transport::Era;

/// What the request says about its client, or why it cannot be answered.
pub(super) fn client(
    meta: &Meta<'_>,
    id: u64,
    principal: &Principal,
) -> Result<ClientFacts, RpcError> {
    let missing = |key: &str| {
        let text = format!(
            "Invalid params: `_meta` lacks `io.modelcontextprotocol/{key}`, which every request has"
        );
        RpcError::new(INVALID_PARAMS, text)
    };
    let version = meta.protocol_version.as_deref().ok_or_else(|| missing("protocolVersion"))?;
    if version != MODERN_VERSION {
        return Err(unsupported(version));
    }
    let capabilities = meta.capabilities.ok_or_else(|| missing("clientCapabilities"))?;
    let capabilities = used_capabilities(capabilities).ok_or_else(|| {
        let text = "Invalid params: `io.modelcontextprotocol/clientCapabilities` is not an object";
        RpcError::new(INVALID_PARAMS, text)
    })?;
    Ok(ClientFacts {
        id,
        principal: Arc::clone(&principal.name),
        revoked: principal.revoked.clone(),
        era: Era::Modern,
        protocol_version: version.to_owned(),
        name: client_name(meta.client_info),
        capabilities,
    })
}

/// A version that is not spoken here, with those that are.
fn unsupported(version: &str) -> RpcError {
    let data = json!({ "supported": supported(), "requested": version });
    RpcError {
        data: to_raw_value(&data).ok(),
        ..RpcError::new(UNSUPPORTED_VERSION, format!("Unsupported protocol version: {version}"))
    }
}

fn supported() -> Vec<&'static str> {
    std::iter::once(MODERN_VERSION).chain(LEGACY_VERSIONS).collect()
}

/// The answer to `server/discover`.
pub(super) fn discover(about: &About) -> Result<Box<RawValue>, RpcError> {
    let info = json!({ "name": about.name, "version": about.version });
    let mut capabilities = about.capabilities.clone();
    if let Value::Object(map) = &mut capabilities {
        map.entry("extensions").or_insert_with(|| json!({}))[TASKS_EXTENSION] = json!({});
    }
    let mut result = json!({
        "supportedVersions": supported(),
        "capabilities": capabilities,
        "_meta": { "io.modelcontextprotocol/serverInfo": info },
    });
    if let Some(instructions) = &about.instructions {
        result["instructions"] = json!(instructions);
    }
    to_raw_value(&result).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))
}

/// A result with what this era wants to see in it. What is there already stays, and so does the text
/// of everything else.
pub(super) fn complete(method: &str, result: Box<RawValue>) -> Box<RawValue> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Known {
        #[serde(default)]
        result_type: Option<IgnoredAny>,
        #[serde(default)]
        ttl_ms: Option<IgnoredAny>,
        #[serde(default)]
        cache_scope: Option<IgnoredAny>,
    }
    // A result that is no object is not made better by adding to it.
    let Ok(known) = serde_json::from_str::<Known>(result.get()) else { return result };
    let Some(rest) = result.get().trim_start().strip_prefix('{') else { return result };
    let mut fields = Vec::new();
    if known.result_type.is_none() {
        fields.push(r#""resultType":"complete""#);
    }
    if is_cacheable(method) {
        if known.ttl_ms.is_none() {
            fields.push(r#""ttlMs":0"#);
        }
        if known.cache_scope.is_none() {
            fields.push(r#""cacheScope":"private""#);
        }
    }
    if fields.is_empty() {
        return result;
    }
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    let text = format!("{{{}{comma}{rest}", fields.join(","));
    RawValue::from_string(text).unwrap_or(result)
}

fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn results_say_that_they_are_complete_and_keep_their_text() {
        let completed = |method: &str, json: &str| complete(method, raw(json)).get().to_owned();
        assert_eq!(
            completed("tools/call", r#"{"b": 1e400, "a":[]}"#),
            r#"{"resultType":"complete","b": 1e400, "a":[]}"#
        );
        assert_eq!(completed("tools/call", "{ }"), r#"{"resultType":"complete" }"#);
        let whole = r#"{"resultType":"input_required"}"#;
        assert_eq!(completed("tools/call", whole), whole);
        assert_eq!(
            completed("tools/list", r#"{"tools":[],"ttlMs":5}"#),
            r#"{"resultType":"complete","cacheScope":"private","tools":[],"ttlMs":5}"#
        );
        assert_eq!(completed("tools/call", "7"), "7");
    }

    #[test]
    fn a_request_says_who_asks() {
        let meta = |version: &str, rest: &str| {
            let version = format!(r#""io.modelcontextprotocol/protocolVersion":"{version}""#);
            let params = raw(&format!(r#"{{"_meta":{{{version}{rest}}}}}"#));
            client(&Meta::read(Some(&params)).unwrap(), 1, &Principal::new("me"))
        };
        let capable = r#","io.modelcontextprotocol/clientCapabilities":{}"#;
        let facts = meta("2026-07-28", capable).unwrap();
        assert_eq!((facts.era, facts.protocol_version.as_str()), (Era::Modern, "2026-07-28"));
        assert_eq!(meta("2026-07-28", "").unwrap_err().code, INVALID_PARAMS);
        assert_eq!(meta("2099-01-01", capable).unwrap_err().code, UNSUPPORTED_VERSION);
        let nothing = client(&Meta::default(), 1, &Principal::new("me"));
        assert_eq!(nothing.unwrap_err().code, INVALID_PARAMS);
    }
}
