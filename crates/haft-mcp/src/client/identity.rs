//! Who a server says it is. Never a base for policy: it can say anything.

use serde::Deserialize;
use serde_json::Value;

use crate::transport::Era;

/// The protocol version of the modern era.
pub(crate) const MODERN_VERSION: &str = "2026-07-28";
/// The versions of the legacy era, newest first. The first is the one we offer.
pub(crate) const LEGACY_VERSIONS: [&str; 4] =
    ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// What a server said about itself at the beginning.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Which protocol is spoken.
    pub era: Era,
    /// Its version.
    pub protocol_version: String,
    /// The server's name, if it says one.
    pub name: Option<String>,
    /// The server's own version, if it says one.
    pub version: Option<String>,
    /// What it can do, as it was sent.
    pub capabilities: Value,
    /// How it wants to be used.
    pub instructions: Option<String>,
}

impl Identity {
    /// Whether the server declares a capability, such as `tools` or `prompts`.
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(|it| !it.is_null())
    }

    /// Whether the server announces changes of a list.
    pub fn announces(&self, capability: &str) -> bool {
        let flag = self.capabilities.get(capability).and_then(|it| it.get("listChanged"));
        flag.and_then(Value::as_bool).unwrap_or(false)
    }
}

/// The answer to `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeResult {
    pub(super) protocol_version: String,
    #[serde(default)]
    pub(super) capabilities: Value,
    #[serde(default)]
    pub(super) server_info: Option<Implementation>,
    #[serde(default)]
    pub(super) instructions: Option<String>,
}

/// The answer to `server/discover`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiscoverResult {
    pub(super) supported_versions: Vec<String>,
    #[serde(default)]
    pub(super) capabilities: Value,
    #[serde(default)]
    pub(super) instructions: Option<String>,
    #[serde(default)]
    pub(super) server_info: Option<Implementation>,
    #[serde(default, rename = "_meta")]
    pub(super) meta: DiscoverMeta,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct DiscoverMeta {
    #[serde(default, rename = "io.modelcontextprotocol/serverInfo")]
    pub(super) server_info: Option<Implementation>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Implementation {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) version: Option<String>,
}

impl From<InitializeResult> for Identity {
    fn from(result: InitializeResult) -> Self {
        let InitializeResult { protocol_version, capabilities, server_info, instructions } = result;
        let (name, version) = parts(server_info);
        Self { era: Era::Legacy, protocol_version, name, version, capabilities, instructions }
    }
}

impl From<DiscoverResult> for Identity {
    fn from(result: DiscoverResult) -> Self {
        let DiscoverResult { supported_versions: _, capabilities, instructions, server_info, meta } =
            result;
        let (name, version) = parts(meta.server_info.or(server_info));
        Self {
            era: Era::Modern,
            protocol_version: MODERN_VERSION.to_owned(),
            name,
            version,
            capabilities,
            instructions,
        }
    }
}

fn parts(info: Option<Implementation>) -> (Option<String>, Option<String>) {
    info.map_or((None, None), |info| (info.name, info.version))
}
