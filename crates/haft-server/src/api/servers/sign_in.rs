//! OAuth for remote servers from the console: the page opens the address of the authorization server, which sends
//! the browser back to this service.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use haft::config::model::{Endpoint, RemoteEndpoint};
use haft::config::oauth::OauthGrant;
use haft::oauth::TokenStore;
use serde::Serialize;
use url::Url;
use utoipa::ToSchema;

use super::{Service, find, unknown};
use crate::serve::{Path, Problem};
use crate::sign_ins::{CALLBACK_PATH, SignInProblem, SignInState};

/// A sign-in that a person completes in a browser.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SignInAddress {
    /// The address of the authorization server to open.
    url: String,
}

/// The state of the last sign-in.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SignInStatus {
    /// `none`, `waiting`, `signed_in` or `failed`.
    #[schema(value_type = String)]
    state: &'static str,
    /// The cause of a failure.
    problem: Option<String>,
    /// The next step after a failure.
    remedy: Option<String>,
}

/// Begins to sign in at a remote server.
///
/// Open `url` in a browser. The authorization server sends the browser back to this service, which stores the tokens
/// as `haft login` does and reconnects the server.
#[utoipa::path(
    post, path = "/api/v1/servers/{name}/sign-in", operation_id = "sign_in_to_server", tag = "servers",
    params(("name" = String, Path, description = "The server's name.")),
    responses(
        (status = 200, description = "The sign-in waits for the browser.", body = SignInAddress),
        (status = 404, description = "There is no such server."),
        (status = 409, description = "The server needs no sign-in by a person."),
        (status = 502, description = "The authorization server cannot be used."),
    )
)]
pub(super) async fn begin(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    Path(name): Path<String>,
) -> Result<Json<SignInAddress>, Problem> {
    let remote = remote(&service, &name)?;
    let redirect = redirect(&service, &headers)?;
    let store = TokenStore::new(service.live.runtime().config().tokens_dir());
    let runtime = service.live.runtime().clone();
    let begun = service.sign_ins.begin(&name, haft::oauth_login(&remote), store, redirect, {
        let name = name.clone();
        async move {
            // The state of the server shows how it went.
            let _ = runtime.reconnect(&name).await;
        }
    });
    let url = begun.await.map_err(|error| {
        let SignInProblem { message, remedy } = error;
        let detail = format!("server `{name}`: {message}");
        let title = "The sign-in cannot begin";
        let problem = Problem::new(StatusCode::BAD_GATEWAY, "SignInFailed", title, detail);
        match remedy {
            Some(remedy) => problem.remedy(remedy),
            None => problem,
        }
    })?;
    Ok(Json(SignInAddress { url: url.into() }))
}

/// Shows how the last sign-in at a remote server went.
#[utoipa::path(
    get, path = "/api/v1/servers/{name}/sign-in", operation_id = "get_server_sign_in", tag = "servers",
    params(("name" = String, Path, description = "The server's name.")),
    responses(
        (status = 200, description = "The state.", body = SignInStatus),
        (status = 404, description = "There is no such server."),
    )
)]
pub(super) async fn status(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
) -> Result<Json<SignInStatus>, Problem> {
    find(&service.live, &name)?;
    let (state, failed) = match service.sign_ins.state(&name) {
        None => ("none", None),
        Some(SignInState::Waiting) => ("waiting", None),
        Some(SignInState::SignedIn) => ("signed_in", None),
        Some(SignInState::Failed(problem)) => ("failed", Some(problem)),
    };
    let (problem, remedy) = failed.map(|it| (it.message, it.remedy)).unzip();
    Ok(Json(SignInStatus { state, problem, remedy: remedy.flatten() }))
}

/// Removes the tokens of a remote server and reconnects it.
#[utoipa::path(
    delete, path = "/api/v1/servers/{name}/sign-in", operation_id = "sign_out_of_server", tag = "servers",
    params(("name" = String, Path, description = "The server's name.")),
    responses(
        (status = 204, description = "There are no tokens any more."),
        (status = 404, description = "There is no such server."),
        (status = 409, description = "The server needs no sign-in by a person."),
        (status = 503, description = "The tokens cannot be removed."),
    )
)]
pub(super) async fn end(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let remote = remote(&service, &name)?;
    let store = TokenStore::new(service.live.runtime().config().tokens_dir());
    store
        .logout(remote.url.expose())
        .map_err(|error| Problem::unavailable(format!("server `{name}`: {error}")))?;
    service.sign_ins.forget(&name);
    let _ = service.live.runtime().reconnect(&name).await;
    Ok(StatusCode::NO_CONTENT)
}

/// The address of a server that a person signs in to.
fn remote(service: &Service, name: &str) -> Result<RemoteEndpoint, Problem> {
    let config = service.live.runtime().config();
    let Some(server) = config.servers.iter().find(|server| server.name == name) else {
        return Err(unknown(name, &service.live.runtime().servers()));
    };
    let remote = match &server.endpoint {
        Endpoint::Http(remote) | Endpoint::Sse(remote) | Endpoint::Websocket(remote) => remote,
        Endpoint::Stdio(_) => {
            let detail = format!("server `{name}` is a program on the machine of the service");
            return Err(Problem::conflict(detail).remedy("give it credentials by `env`"));
        }
    };
    let grant = remote.oauth.as_ref().map(|oauth| oauth.grant);
    if grant == Some(OauthGrant::ClientCredentials) {
        let detail = format!("server `{name}` has `grant: client_credentials`");
        return Err(Problem::conflict(detail).remedy("no person signs in there"));
    }
    Ok(remote.clone())
}

/// The address that the browser comes back to: this service, as the browser reaches it. Both headers passed the guard.
fn redirect(service: &Service, headers: &HeaderMap) -> Result<Url, Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = match (text(ORIGIN), text(HOST)) {
        (Some(origin), _) => origin.to_owned(),
        (None, Some(host)) if service.is_tls() => format!("https://{host}"),
        (None, Some(host)) => format!("http://{host}"),
        (None, None) => return Err(Problem::bad_request("the request has no `Host`")),
    };
    let url = Url::parse(&origin).and_then(|origin| origin.join(CALLBACK_PATH));
    url.map_err(|error| Problem::bad_request(format!("the address of this service: {error}")))
}
