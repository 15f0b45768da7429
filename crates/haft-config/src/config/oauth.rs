//! OAuth settings of a remote server.

use serde::{Deserialize, Serialize};
use url::Url;

pub use super::raw_oauth::OauthGrant;
use super::secret::Secret;

/// `oauth` of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct OauthConfig {
    /// The grant type.
    pub grant: OauthGrant,
    /// The id of a registered client.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<ClientSecret>,
    /// The address of the client's metadata document.
    pub client_metadata_url: Option<Url>,
    /// The scopes to ask for; none: those that the server names.
    pub scopes: Vec<String>,
    /// The authorization server that the client is registered with.
    pub issuer: Option<String>,
}

/// The secret of a client, and the variable that holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientSecret {
    /// The environment variable.
    pub variable: String,
    /// Its value.
    pub value: Secret,
}

/// `oauth` of a server, as people and programs are shown it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OauthInfo {
    /// The grant type.
    pub grant: OauthGrant,
    /// The id of a registered client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The environment variable that holds its secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_env: Option<String>,
    /// The address of the client's metadata document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_url: Option<String>,
    /// The scopes to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The authorization server that the client is registered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
}

impl OauthConfig {
    /// The settings, without the secret.
    pub fn info(&self) -> OauthInfo {
        let Self { grant, client_id, client_secret, client_metadata_url, scopes, issuer } = self;
        OauthInfo {
            grant: *grant,
            client_id: client_id.clone(),
            client_secret_env: client_secret.as_ref().map(|secret| secret.variable.clone()),
            client_metadata_url: client_metadata_url.as_ref().map(Url::to_string),
            scopes: scopes.clone(),
            issuer: issuer.clone(),
        }
    }
}
