//! The endpoints `/mcp` and `/mcp/{profile}` of the HTTP service.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Extension, Router};
use futures_util::StreamExt as _;
use haft::Runtime;
use haft::mcp_server::{Events, HttpEndpoint, Principal, Reply, ReplyBody};

use super::Hub;
use super::endpoints::Endpoints;
use crate::serve::{Caller, EndsByItself, Problem, is_json, read_body};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The endpoints of the gateway.
#[derive(Clone)]
pub struct Mount {
    endpoints: Arc<Endpoints>,
}

impl Mount {
    /// Serves a toolbox, as its configuration says from time to time. `hub` is what hears its servers. Needs
    /// a tokio runtime around it.
    pub fn new(runtime: Runtime, hub: Hub) -> Self {
        Self { endpoints: Endpoints::new(runtime, hub) }
    }

    /// The routes, for callers of tools.
    pub fn routes(&self) -> Router {
        // Asked for its head alone, a stream would be opened all the same, and end the one there is.
        let head = async || StatusCode::METHOD_NOT_ALLOWED;
        let methods = || post(message).get(events).delete(end).head(head);
        Router::new()
            .route("/mcp", methods())
            .route("/mcp/{profile}", methods())
            .with_state(self.clone())
    }

    /// Ends every session.
    pub fn stop(&self) {
        self.endpoints.stop();
    }

    /// What answers a request. Names of profiles need no escaping, so the path has them as they are.
    fn endpoint(&self, caller: &Caller, uri: &Uri) -> Result<Arc<HttpEndpoint>, Problem> {
        self.endpoints.find(caller, uri.path().strip_prefix("/mcp/"))
    }
}

async fn message(
    State(mount): State<Mount>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    if !is_json(request.headers()) {
        let detail = "the body must be JSON, and `Content-Type` does not say so";
        return Err(
            Problem::unsupported_media_type(detail).remedy("send `Content-Type: application/json`")
        );
    }
    let endpoint = mount.endpoint(&caller, request.uri())?;
    let (headers, body) = read_body(request).await?;
    Ok(respond(endpoint.post(&principal(&caller), &headers, &body).await))
}

async fn events(
    State(mount): State<Mount>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    let endpoint = mount.endpoint(&caller, request.uri())?;
    Ok(respond(endpoint.get(&principal(&caller), request.headers())))
}

async fn end(
    State(mount): State<Mount>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    let endpoint = mount.endpoint(&caller, request.uri())?;
    Ok(respond(endpoint.delete(&principal(&caller), request.headers())))
}

/// The caller as the MCP endpoint knows it. Its sessions and suspended requests end with its key.
fn principal(caller: &Caller) -> Principal {
    Principal::new(Arc::clone(&caller.owner)).until(Arc::clone(&caller.ended))
}

fn respond(reply: Reply) -> Response {
    let Reply { status, session, body } = reply;
    let mut response = match body {
        ReplyBody::Empty => status.into_response(),
        ReplyBody::Json(message) => {
            (status, [(CONTENT_TYPE, "application/json")], message).into_response()
        }
        ReplyBody::News(events) => stream(status, events),
        ReplyBody::Course(events) => {
            let mut response = stream(status, events);
            response.extensions_mut().insert(EndsByItself);
            response
        }
    };
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(axum::http::header::ALLOW, HeaderValue::from_static("POST"));
    }
    if let Some(session) = session {
        response.headers_mut().insert(SESSION, session);
    }
    response
}

fn stream(status: StatusCode, events: Events) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // What stands between must not wait for more.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (status, headers, Body::from_stream(events.map(Ok::<_, Infallible>))).into_response()
}
