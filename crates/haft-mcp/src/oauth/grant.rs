//! A grant: tokens, and the data needed to refresh them.

use std::time::{SystemTime, UNIX_EPOCH};

use rmcp::transport::auth::{OAuthClientConfig, OAuthTokenResponse};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::{AuthError, Secret, guard::shown};

/// A token this close to its end is refreshed first, so that it does not end on the way. One that
/// lives only briefly is refreshed after half its life.
const REFRESH_BEFORE_SECS: u64 = 30;

/// One sign-in at one server, as it lies in the token folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// For readers of the file; without a query, which may hold a key.
    pub(crate) server: String,
    /// Tokens and client belong to this authorization server and are shown to no other.
    pub(crate) issuer: Option<String>,
    pub(crate) client: GrantClient,
    #[serde(with = "super::secret")]
    pub(crate) access_token: Secret,
    #[serde(default, with = "super::secret::optional")]
    pub(crate) refresh_token: Option<Secret>,
    /// In seconds since 1970, like the next.
    pub(crate) refresh_at: Option<u64>,
    pub(crate) expires_at: Option<u64>,
    pub(crate) scopes: Vec<String>,
}

/// The client the tokens were given to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GrantClient {
    pub(crate) id: String,
    #[serde(default, with = "super::secret::optional")]
    pub(crate) secret: Option<Secret>,
    pub(crate) redirect: String,
}

impl Grant {
    /// The granted scopes.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Reads a token answer. `asked` is the granted scope if the answer has none.
    pub(crate) fn from_answer(
        server: &Url,
        issuer: Option<String>,
        client: GrantClient,
        answer: &OAuthTokenResponse,
        asked: &[String],
    ) -> Result<Self, AuthError> {
        let answer = serde_json::to_value(answer).map_err(|_| unreadable())?;
        Self::from_value(server, issuer, client, &answer, asked)
    }

    /// The same for an answer that is plain JSON.
    pub(crate) fn from_value(
        server: &Url,
        issuer: Option<String>,
        client: GrantClient,
        answer: &Value,
        asked: &[String],
    ) -> Result<Self, AuthError> {
        let text = |key: &str| answer.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
        if !text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
            return Err(AuthError::Token { problem: "its token is not a bearer token".into() });
        }
        let expires_in = answer.get("expires_in").and_then(Value::as_u64);
        Ok(Self {
            server: shown(server),
            issuer,
            client,
            access_token: Secret::new(text("access_token").ok_or_else(unreadable)?),
            refresh_token: text("refresh_token").map(Secret::new),
            refresh_at: expires_in.map(|seconds| {
                let early = REFRESH_BEFORE_SECS.min(seconds / 2);
                now().saturating_add(seconds - early)
            }),
            expires_at: expires_in.map(|seconds| now().saturating_add(seconds)),
            scopes: match text("scope") {
                Some(granted) => granted.split_whitespace().map(str::to_owned).collect(),
                None => asked.to_vec(),
            },
        })
    }

    /// The form in which the flow takes a refresh token.
    pub(crate) fn as_answer(&self) -> Result<OAuthTokenResponse, AuthError> {
        let answer = json!({
            "access_token": self.access_token.expose(),
            "token_type": "bearer",
            "refresh_token": self.refresh_token.as_ref().map(Secret::expose),
        });
        // The text of this error would quote the value.
        serde_json::from_value(answer)
            .map_err(|_| AuthError::Setup { problem: "the stored token cannot be used".into() })
    }

    pub(crate) fn client_config(&self) -> OAuthClientConfig {
        let config = OAuthClientConfig::new(&self.client.id, &self.client.redirect);
        match &self.client.secret {
            Some(secret) => config.with_client_secret(secret.expose()),
            None => config,
        }
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.refresh_at.is_some_and(|end| end <= now())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.expires_at.is_some_and(|end| end <= now())
    }
}

fn unreadable() -> AuthError {
    AuthError::Token { problem: "its answer is not a token response".into() }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
