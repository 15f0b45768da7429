//! `oauth` of a server, as files write it.

use serde_json::{Value, json};

use super::expand::is_name;
use super::node::Node;
use super::read::{FromNode, Reader, choice, record};
use super::secret::Secret;

choice! {
    /// The grant type.
    pub enum OauthGrant("a grant") {
        /// A person signs in once, with `haft login`.
        AuthorizationCode = "authorization_code",
        /// Haft's own client gets tokens, without a person.
        ClientCredentials = "client_credentials",
    }
}

record! {
    /// `oauth` of a server.
    pub struct RawOauth("`oauth`", Reject) {
        /// The grant type: `authorization_code` (the default, with `haft login`) or
        /// `client_credentials`, without a person.
        grant("grant"): OauthGrant,
        /// The id of a client that is registered with the authorization server.
        client_id("client_id"): String,
        /// The environment variable that holds the client's secret.
        client_secret_env("client_secret_env"): SecretVariable,
        /// The https: address of the client's published metadata document, which is then its id.
        client_metadata_url("client_metadata_url"): String,
        /// The scopes to ask for; by default those that the server names.
        scopes("scopes"): Vec<String>,
        /// The authorization server that the client is registered with; no other one gets its secret.
        issuer("issuer"): String,
    }
}

/// The name of a variable that holds a secret, and the secret once it was looked up.
#[derive(Debug, Clone)]
pub struct SecretVariable {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: Option<Secret>,
}

impl FromNode for SecretVariable {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let name = String::read(node, reader)?;
        if is_name(&name) {
            return Some(Self { name, value: None });
        }
        // The text is not repeated: it may be the secret itself.
        reader.error(
            node,
            "this is not the name of an environment variable",
            "write the name alone, such as `CRM_SECRET`, and keep the secret in that variable",
        );
        None
    }
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" })
    }
}
