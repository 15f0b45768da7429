//! Signing in at one server, from its first refusal to a token.
//!
//! rmcp knows the protocol: discovery, registration, PKCE, exchange, refresh. What it lacks is
//! here: guarded addresses, the client's secret after a restart, refusing a changed authorization
//! server, and silence, because its log lines quote authorization codes.

use std::{fmt, sync::Arc};

use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource, CredentialStore,
    InMemoryCredentialStore, OAuthClientConfig, StoredCredentials, WWWAuthenticateParams,
};
use tracing::{instrument::WithSubscriber, subscriber::NoSubscriber};
use url::Url;

use super::{
    AuthError, Browser, Grant, Secret,
    browser::Callback,
    error::clip,
    flow::Flow,
    grant::GrantClient,
    guard::{Guard, shown},
    http::{Endpoints, GuardedHttp},
};

pub(super) const OFFLINE_ACCESS: &str = "offline_access";

/// The sign-in at one server.
#[derive(Clone)]
pub struct Login {
    server: Url,
    identity: ClientIdentity,
    scopes: Vec<String>,
    guard: Guard,
    pkce: Pkce,
}

/// Haft's identity for the authorization server. The first that works is used: the registered client, the metadata
/// document, dynamic registration.
#[derive(Debug, Clone)]
pub struct ClientIdentity {
    /// The name people read when they are asked for permission.
    pub name: String,
    /// A client that was registered by hand.
    pub registered: Option<RegisteredClient>,
    /// Where this client's metadata document is published. The address is then the client id.
    pub metadata_url: Option<Url>,
}

/// A client that was registered by hand.
#[derive(Debug, Clone)]
pub struct RegisteredClient {
    /// Its id.
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Option<Secret>,
    /// The authorization server it was registered with; no other one sees id and secret.
    pub issuer: Option<String>,
}

/// True if the authorization server has to announce PKCE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pkce {
    Announced,
    Assumed,
    /// No person signs in, so there is no code to protect.
    Unused,
}

/// Which scopes a sign-in asks for.
pub(crate) enum Asking {
    /// The scopes of the challenge, otherwise those of the server's metadata, otherwise none.
    Discovered,
    /// Exactly these: a step up from an earlier sign-in.
    Exactly(Vec<String>),
}

/// A sign-in, and what was asked for: less may have been granted.
pub(crate) struct SignedIn {
    pub(crate) grant: Grant,
    pub(crate) asked: Vec<String>,
}

impl Login {
    /// A sign-in at a server under a client name, based on the server's metadata.
    pub fn new(mut server: Url, client_name: impl Into<String>) -> Self {
        server.set_fragment(None);
        // Metadata of a WebSocket server is found over HTTP.
        let scheme = match server.scheme() {
            "ws" => Some("http"),
            "wss" => Some("https"),
            _ => None,
        };
        if let Some(scheme) = scheme {
            // Both are schemes with a host, so the change is always accepted.
            let _ = server.set_scheme(scheme);
        }
        let guard = Guard::new(&server, &[]);
        let identity =
            ClientIdentity { name: client_name.into(), registered: None, metadata_url: None };
        Self { server, identity, scopes: Vec::new(), guard, pkce: Pkce::Announced }
    }

    /// Uses another identity than a client that registers by itself.
    #[must_use]
    pub fn with_identity(self, identity: ClientIdentity) -> Self {
        Self { identity, ..self }
    }

    /// Asks for these scopes besides those that a challenge names.
    #[must_use]
    pub fn with_scopes(self, scopes: Vec<String>) -> Self {
        Self { scopes, ..self }
    }

    /// Lets these hosts have addresses that are not public.
    #[must_use]
    pub fn allowing_hosts(self, hosts: &[String]) -> Self {
        Self { guard: Guard::new(&self.server, hosts), ..self }
    }

    /// Uses PKCE without the authorization server announcing it, which the specification forbids
    /// and some large providers need.
    #[must_use]
    pub fn assuming_pkce(self) -> Self {
        Self { pkce: Pkce::Assumed, ..self }
    }

    /// Leaves out what only a person needs: PKCE and the authorization endpoint.
    pub(super) fn without_person(self) -> Self {
        Self { pkce: Pkce::Unused, ..self }
    }

    /// The server.
    pub fn server(&self) -> &Url {
        &self.server
    }

    pub(super) fn configured_scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Reads the challenge of a refusal.
    pub(crate) fn challenge(&self, www_authenticate: &str) -> WWWAuthenticateParams {
        WWWAuthenticateParams::parse(www_authenticate, &self.server)
    }

    /// The whole flow. `earlier` is a sign-in whose client may be used again.
    pub(crate) async fn run(
        &self,
        browser: &dyn Browser,
        www_authenticate: Option<&str>,
        asking: Asking,
        earlier: Option<&Grant>,
    ) -> Result<SignedIn, AuthError> {
        let mut flow = self.discover(www_authenticate).await?;
        let asked = self.scopes(&flow, www_authenticate, asking).await;
        let scopes: Vec<&str> = asked.iter().map(String::as_str).collect();
        let redirect = browser.redirect();
        let client = self.client(&mut flow, &redirect, &scopes, earlier).await?;

        let url = flow.quietly(flow.manager.get_authorization_url(&scopes)).await?;
        let url = Url::parse(&url).map_err(|error| flow.unusable(&error.to_string()))?;
        self.guard.check(&url)?;
        let callback = Callback::read(&browser.authorize(&url, &redirect).await?, &url)?;
        let exchange = flow.manager.exchange_code_for_token_with_issuer(
            &callback.code,
            &callback.state,
            callback.issuer.as_deref(),
        );
        let answer = flow.quietly(exchange).await?;
        let grant = Grant::from_answer(&self.server, flow.issuer(), client, &answer, &asked)?;
        Ok(SignedIn { grant, asked })
    }

    /// New tokens for old ones. [`AuthError::Ended`]: only signing in again helps.
    pub(crate) async fn refresh(&self, old: &Grant) -> Result<Grant, AuthError> {
        let ended = |problem: &str| AuthError::Ended {
            server: shown(&self.server),
            problem: problem.into(),
        };
        if old.refresh_token.is_none() {
            return Err(ended("there is no refresh token"));
        }
        let mut flow = self.discover(None).await?;
        // Metadata that is briefly unavailable does not end the sign-in.
        if old.issuer.is_some() && !flow.source.is_discovered() {
            return Err(flow.unusable("it publishes nothing about it"));
        }
        // A refresh token and a client secret are shown only to whom they came from.
        if flow.issuer() != old.issuer {
            return Err(ended("the server has moved to another authorization server"));
        }
        let store = InMemoryCredentialStore::new();
        // Without scopes: a refresh then asks for what was granted, neither more nor less.
        let held =
            StoredCredentials::new(old.client.id.clone(), Some(old.as_answer()?), Vec::new(), None);
        flow.quietly(store.save(held)).await?;
        flow.manager.set_credential_store(store);
        flow.configure(old.client_config())?;
        let answer = flow.quietly(flow.manager.refresh_token()).await?;
        let client = old.client.clone();
        Grant::from_answer(&self.server, flow.issuer(), client, &answer, &old.scopes)
    }

    pub(super) async fn discover(&self, www_authenticate: Option<&str>) -> Result<Flow, AuthError> {
        let endpoints = match self.pkce {
            Pkce::Announced | Pkce::Assumed => Endpoints::Both,
            Pkce::Unused => Endpoints::TokenOnly,
        };
        let http = Arc::new(GuardedHttp::new(&self.server, &self.guard, endpoints)?);
        let (client, server) = (Arc::clone(&http), shown(&self.server));
        let manager =
            AuthorizationManager::new_with_oauth_http_client(self.server.clone(), client as _)
                .await
                .map_err(|error| AuthError::from_flow(&server, error))?;
        let metadata = AuthorizationMetadata::default();
        let source = AuthorizationMetadataSource::LegacyEndpointFallback;
        let mut flow = Flow { manager, metadata, source, http, server };
        let found =
            flow.quietly(flow.manager.resolve_metadata_from_challenge(www_authenticate)).await?;
        (flow.metadata, flow.source) = (found.metadata, found.source);
        // A dead end on the way, such as an unreachable candidate, is no longer of interest.
        let _ = flow.http.take_problem();
        if flow.source.is_discovered() {
            self.check_metadata(&flow)?;
        }
        flow.manager.set_metadata(flow.metadata.clone());
        Ok(flow)
    }

    fn check_metadata(&self, flow: &Flow) -> Result<(), AuthError> {
        let AuthorizationMetadata { authorization_endpoint, token_endpoint, .. } = &flow.metadata;
        let pages = (self.pkce != Pkce::Unused).then_some(authorization_endpoint);
        for endpoint in pages.into_iter().chain([token_endpoint]) {
            let url = Url::parse(endpoint)
                .map_err(|error| flow.unusable(&clip(&format!("`{endpoint}`: {error}"))))?;
            self.guard.check(&url)?;
        }
        match (&flow.metadata.code_challenge_methods_supported, self.pkce) {
            // The flow refuses a list without S256.
            (Some(_), _) | (None, Pkce::Assumed | Pkce::Unused) => Ok(()),
            (None, Pkce::Announced) => {
                Err(flow.unusable("its authorization server does not announce PKCE"))
            }
        }
    }

    async fn scopes(
        &self,
        flow: &Flow,
        www_authenticate: Option<&str>,
        asking: Asking,
    ) -> Vec<String> {
        let mut scopes = match asking {
            Asking::Exactly(scopes) => scopes,
            Asking::Discovered if self.scopes.is_empty() => {
                return flow.manager.select_initial_scopes(&[]).await;
            }
            Asking::Discovered => {
                let challenge = www_authenticate.map(|text| self.challenge(text));
                let challenged = challenge.and_then(|challenge| challenge.scope);
                union(&self.scopes, challenged.as_deref().unwrap_or_default())
            }
        };
        let supported = flow.metadata.scopes_supported.iter().flatten();
        if !scopes.is_empty() && supported.into_iter().any(|scope| scope == OFFLINE_ACCESS) {
            scopes = union(&scopes, OFFLINE_ACCESS);
        }
        scopes
    }

    /// Chooses our client identity and passes it to the flow.
    async fn client(
        &self,
        flow: &mut Flow,
        redirect: &Url,
        scopes: &[&str],
        earlier: Option<&Grant>,
    ) -> Result<GrantClient, AuthError> {
        let issuer = flow.issuer();
        let ours = |grant: &&Grant| {
            grant.issuer == issuer && issuer.is_some() && grant.client.redirect == redirect.as_str()
        };
        let config = if let Some(RegisteredClient { id, secret, issuer: bound }) =
            &self.identity.registered
        {
            check_bound(bound.as_ref(), issuer.as_ref())?;
            let config = OAuthClientConfig::new(id, redirect.as_str());
            match secret {
                Some(secret) => config.with_client_secret(secret.expose()),
                None => config,
            }
        } else if let Some(url) = &self.identity.metadata_url
            && flow.takes_metadata_document()
        {
            OAuthClientConfig::new(url.as_str(), redirect.as_str())
        } else if let Some(grant) = earlier.filter(ours) {
            grant.client_config()
        } else {
            let name = &self.identity.name;
            // Awaited in place: registering borrows the whole flow.
            let registering = flow.manager.register_client(name, redirect.as_str(), scopes);
            let registered = registering.with_subscriber(NoSubscriber::default()).await;
            registered.map_err(|error| {
                if flow.source.is_discovered() {
                    return self.not_registered(flow.problem(error));
                }
                flow.unusable("it publishes nothing about it")
            })?
        };
        let client = GrantClient {
            id: config.client_id.clone(),
            secret: config.client_secret.clone().map(Secret::new),
            redirect: redirect.to_string(),
        };
        flow.configure(config)?;
        Ok(client)
    }
}

impl Login {
    /// Why there is no client id. A metadata document that was configured and not used is part of it.
    fn not_registered(&self, error: AuthError) -> AuthError {
        match error {
            AuthError::Registration { server, problem } if self.identity.metadata_url.is_some() => {
                let problem = format!(
                    "its authorization server does not support client metadata documents, and \
                     registering failed: {problem}"
                );
                AuthError::Registration { server, problem }
            }
            error => error,
        }
    }
}

/// Without the query of the server's address, which may hold a key.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("server", &shown(&self.server))
            .field("identity", &self.identity)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Scopes and those of a challenge, each once, in the order they came.
pub(crate) fn union(scopes: &[String], more: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for scope in scopes.iter().map(String::as_str).chain(more.split_whitespace()) {
        if !all.iter().any(|known| known == scope) {
            all.push(scope.to_owned());
        }
    }
    all
}

/// A client that was registered by hand is shown only to whom it was registered with. A person may
/// have typed the issuer with a slash or without.
pub(super) fn check_bound(
    bound: Option<&String>,
    issuer: Option<&String>,
) -> Result<(), AuthError> {
    match (bound.cloned(), issuer.cloned()) {
        (None, _) => Ok(()),
        (Some(expected), None) => Err(AuthError::NoIssuer { expected }),
        (Some(expected), Some(received)) => {
            if expected.trim_end_matches('/') == received.trim_end_matches('/') {
                return Ok(());
            }
            Err(AuthError::Issuer { expected, received })
        }
    }
}
