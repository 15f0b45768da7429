//! A server's own description. Never a base for policy: it is unverified.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::declared;
use crate::transport::Era;

/// The protocol version of the modern era.
pub(crate) const MODERN_VERSION: &str = "2026-07-28";
/// The versions of the legacy era, newest first. The first is the one we offer.
pub(crate) const LEGACY_VERSIONS: [&str; 4] =
    ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A server's description of itself from the handshake.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Which protocol is spoken.
    pub era: Era,
    /// Its version.
    pub protocol_version: String,
    /// The server's name, if given.
    pub name: Option<String>,
    /// The server's own version, if given.
    pub version: Option<String>,
    /// Its capabilities: unmodified, or if they are long, only those in use.
    pub capabilities: Value,
    /// Its instructions for use.
    pub instructions: Option<String>,
}

impl Identity {
    /// Returns true if the server declares a capability, such as `tools` or `prompts`.
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(|it| !it.is_null())
    }

    /// Returns true if the server declares an extension, such as `io.modelcontextprotocol/tasks`.
    pub fn has_extension(&self, extension: &str) -> bool {
        let extensions = self.capabilities.get("extensions");
        extensions.and_then(|it| it.get(extension)).is_some_and(|it| !it.is_null())
    }

    /// The names of the capabilities the server declares.
    pub fn declared(&self) -> impl Iterator<Item = &str> {
        let all = self.capabilities.as_object().into_iter().flatten();
        all.filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_str())
    }

    /// Returns true if the server announces changes of a list.
    pub fn announces(&self, capability: &str) -> bool {
        let flag = self.capabilities.get(capability).and_then(|it| it.get("listChanged"));
        flag.and_then(Value::as_bool).unwrap_or(false)
    }
}

/// Largest size of capabilities that are kept unmodified. Of larger ones, only those in use are kept.
const CAPABILITIES_BYTES_MAX: usize = 16 * 1024;
const USED_CAPABILITIES: [&str; 7] =
    ["tools", "prompts", "resources", "completions", "logging", "extensions", "tasks"];
/// Largest part of a server's instructions that is kept.
const INSTRUCTIONS_BYTES_MAX: usize = 64 * 1024;

/// The answer to `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeResult<'a> {
    pub(super) protocol_version: String,
    #[serde(borrow, default)]
    pub(super) capabilities: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) server_info: Option<Implementation<'a>>,
    #[serde(borrow, default)]
    pub(super) instructions: Option<Cow<'a, str>>,
}

/// The answer to `server/discover`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiscoverResult<'a> {
    pub(super) supported_versions: Vec<String>,
    #[serde(borrow, default)]
    pub(super) capabilities: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) instructions: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) server_info: Option<Implementation<'a>>,
    #[serde(borrow, default, rename = "_meta")]
    pub(super) meta: DiscoverMeta<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct DiscoverMeta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/serverInfo")]
    pub(super) server_info: Option<Implementation<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Implementation<'a> {
    #[serde(borrow, default)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) version: Option<Cow<'a, str>>,
}

impl From<InitializeResult<'_>> for Identity {
    fn from(result: InitializeResult<'_>) -> Self {
        let InitializeResult { protocol_version, capabilities, server_info, instructions } = result;
        let (name, version) = parts(server_info);
        Self {
            era: Era::Legacy,
            protocol_version,
            name,
            version,
            capabilities: bounded(capabilities),
            instructions: instructions.map(|text| declared::cut(&text, INSTRUCTIONS_BYTES_MAX)),
        }
    }
}

impl From<DiscoverResult<'_>> for Identity {
    fn from(result: DiscoverResult<'_>) -> Self {
        let DiscoverResult { supported_versions: _, capabilities, instructions, server_info, meta } =
            result;
        let (name, version) = parts(meta.server_info.or(server_info));
        Self {
            era: Era::Modern,
            protocol_version: MODERN_VERSION.to_owned(),
            name,
            version,
            capabilities: bounded(capabilities),
            instructions: instructions.map(|text| declared::cut(&text, INSTRUCTIONS_BYTES_MAX)),
        }
    }
}

fn bounded(capabilities: Option<&RawValue>) -> Value {
    let Some(sent) = capabilities else { return Value::Null };
    let kept = if sent.get().len() <= CAPABILITIES_BYTES_MAX {
        serde_json::from_str(sent.get()).ok()
    } else {
        declared::capabilities(sent, &USED_CAPABILITIES)
    };
    kept.unwrap_or_default()
}

fn parts(info: Option<Implementation<'_>>) -> (Option<String>, Option<String>) {
    let bounded = |text: Option<Cow<'_, str>>| text.map(|text| declared::name(&text));
    info.map_or((None, None), |info| (bounded(info.name), bounded(info.version)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_servers_description_of_itself_is_bounded() {
        let answer = |experimental: &str| {
            format!(
                r#"{{"protocolVersion": "2025-11-25", "instructions": "{0}",
                     "serverInfo": {{"name": "{0}", "version": "{0}"}},
                     "capabilities": {{"tools": {{"listChanged": true}}, "experimental": {experimental}}}}}"#,
                "x".repeat(100_000)
            )
        };
        let text = answer(&format!("[{}0]", "0,".repeat(50_000)));
        let identity = Identity::from(serde_json::from_str::<InitializeResult<'_>>(&text).unwrap());
        assert_eq!(identity.capabilities, json!({"tools": {"listChanged": true}}));
        assert!(identity.can("tools") && identity.announces("tools"));
        let lengths = [identity.name, identity.version, identity.instructions]
            .map(|text| text.unwrap().len());
        assert_eq!(lengths, [256, 256, INSTRUCTIONS_BYTES_MAX]);
        let text = answer(r#"{"a": 1}"#);
        let identity = Identity::from(serde_json::from_str::<InitializeResult<'_>>(&text).unwrap());
        assert_eq!(identity.capabilities["experimental"], json!({"a": 1}));
    }
}
