//! The era without sessions: the client's fields in every request, and the fields of every result.

use std::borrow::Cow;
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

/// Reads the client's fields of a request, or returns the reason why it cannot be answered.
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
        role: principal.role,
        era: Era::Modern,
        protocol_version: Cow::Borrowed(MODERN_VERSION),
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

/// A result, and the fields that this era wants to see in it beside its own.
#[derive(Debug)]
pub(super) struct Completed {
    pub(super) result: Box<RawValue>,
    /// Goes before the first field of the result. Empty, or with its comma.
    pub(super) added: Cow<'static, str>,
}

impl From<Box<RawValue>> for Completed {
    fn from(result: Box<RawValue>) -> Self {
        Self { result, added: Cow::Borrowed("") }
    }
}

/// Adds what this era wants to see in a result. What is there already stays, and so does the text of everything else.
pub(super) fn complete(method: &str, result: Box<RawValue>) -> Completed {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Known {
        #[serde(default)]
        result_type: Option<IgnoredAny>,
        #[serde(default)]
        ttl_ms: Option<IgnoredAny>,
        #[serde(default)]
        cache_scope: Option<IgnoredAny>,
    }
    // A result that is not an object is passed on without additions.
    let Some(rest) = result.get().strip_prefix('{') else { return result.into() };
    let is_cacheable = is_cacheable(method);
    // Most results of calls have no such field: looking for the word is cheaper than reading all.
    let known = if is_cacheable || may_have(result.get(), "resultType") {
        let Ok(known) = serde_json::from_str::<Known>(result.get()) else { return result.into() };
        known
    } else {
        Known::default()
    };
    let mut fields = Vec::new();
    if known.result_type.is_none() {
        fields.push(r#""resultType":"complete""#);
    }
    if is_cacheable {
        if known.ttl_ms.is_none() {
            fields.push(r#""ttlMs":0"#);
        }
        if known.cache_scope.is_none() {
            fields.push(r#""cacheScope":"private""#);
        }
    }
    let is_empty = rest.trim_start().starts_with('}');
    let added = match (fields.as_slice(), is_empty) {
        ([], _) => Cow::Borrowed(""),
        ([field], true) => Cow::Borrowed(*field),
        (fields, true) => Cow::Owned(fields.join(",")),
        (fields, false) => Cow::Owned(fields.join(",") + ","),
    };
    Completed { result, added }
}

/// Returns true if a key of this name may be in a JSON text, plain or escaped.
fn may_have(json: &str, key: &str) -> bool {
    let has = |word: &str| memchr::memmem::find(json.as_bytes(), word.as_bytes()).is_some();
    has(key) || has("\\u")
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
    use super::super::params::Params;
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn results_say_that_they_are_complete_and_keep_their_text() {
        let completed = |method: &str, json: &str| {
            let Completed { result, added } = complete(method, raw(json));
            crate::wire::result_with(&result, &added)
        };
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
        let escaped = r#"{"result\u0054ype":"task"}"#;
        assert_eq!(completed("tools/call", escaped), escaped);
    }

    #[test]
    fn a_request_names_its_client() {
        let meta = |version: &str, rest: &str| {
            let version = format!(r#""io.modelcontextprotocol/protocolVersion":"{version}""#);
            let params = raw(&format!(r#"{{"_meta":{{{version}{rest}}}}}"#));
            client(&Params::read(Some(&params)).unwrap().meta, 1, &Principal::new("me"))
        };
        let capable = r#","io.modelcontextprotocol/clientCapabilities":{}"#;
        let facts = meta("2026-07-28", capable).unwrap();
        assert_eq!((facts.era, &*facts.protocol_version), (Era::Modern, "2026-07-28"));
        assert_eq!(meta("2026-07-28", "").unwrap_err().code, INVALID_PARAMS);
        assert_eq!(meta("2099-01-01", capable).unwrap_err().code, UNSUPPORTED_VERSION);
        let nothing = client(&Meta::default(), 1, &Principal::new("me"));
        assert_eq!(nothing.unwrap_err().code, INVALID_PARAMS);
    }
}
