//! The endpoint `/mcp` of the HTTP service.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Extension, Router};
use futures_util::StreamExt as _;
use haft::mcp_server::{Events, HttpEndpoint, HttpOptions, Reply, ReplyBody};

use super::Gateway;
use crate::serve::{Caller, EndsByItself, Problem, is_json, read_body};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The endpoints of the gateway.
#[derive(Clone)]
pub struct Mount {
    endpoint: Arc<HttpEndpoint>,
}

impl Mount {
    /// Serves a gateway at `/mcp`. Needs a tokio runtime around it.
    pub fn new(gateway: Arc<Gateway>, options: HttpOptions) -> Self {
        Self { endpoint: HttpEndpoint::new(gateway, options) }
    }

    /// The routes, for callers of tools.
    pub fn routes(&self) -> Router {
        Router::new().route("/mcp", post(message).get(events).delete(end)).with_state(self.clone())
    }

    /// Ends every session.
    pub fn stop(&self) {
        self.endpoint.stop();
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
    let (headers, body) = read_body(request).await?;
    Ok(respond(mount.endpoint.post(&caller.name, &headers, &body).await))
}

async fn events(
    State(mount): State<Mount>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    respond(mount.endpoint.get(&caller.name, request.headers()))
}

async fn end(
    State(mount): State<Mount>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    respond(mount.endpoint.delete(&caller.name, request.headers()))
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
