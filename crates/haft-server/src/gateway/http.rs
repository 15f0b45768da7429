//! The endpoints `/mcp` and `/mcp/{profile}` of the HTTP service.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::Response as RoutedResponse;
use axum::routing::post;
use axum::{Extension, Router};
use futures_util::StreamExt as _;
use haft::Runtime;
use haft::mcp_server::{HttpEndpoint, Principal, Reply, ReplyBody, ReplyEvents};

use super::Hub;
use super::endpoints::Endpoints;
use crate::serve::{
    BODY_COPIES, Caller, DirectRequest, EndsByItself, Problem, Response, ResponseBody, read_body,
    read_bytes, require_json,
};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Room for the headers of an answer. hyper uses it again for the headers of the next request.
const HEADERS: usize = 14;

/// The endpoints of the gateway.
#[derive(Clone)]
pub struct Mount {
    endpoints: Arc<Endpoints>,
}

impl Mount {
    /// Serves a toolbox with its current configuration. `hub` receives its servers' messages. Needs a tokio runtime
    /// around it.
    pub fn new(runtime: Runtime, hub: Hub) -> Self {
        Self { endpoints: Endpoints::new(runtime, hub) }
    }

    /// The routes, for callers of tools. Each request needs the extension [`Caller`]; one without it is refused. In a
    /// router of your own, authenticate the request first, then insert [`Caller::of_app`]; the example `axum_mcp` shows
    /// it. The service's checks of keys, `Host` and `Origin`, its limits on connections and its memory budget for bodies
    /// do not apply there.
    pub fn routes(&self) -> Router {
        // Asked for its head alone, a stream would be opened all the same, and end the one there is.
        let head = async || StatusCode::METHOD_NOT_ALLOWED;
        let methods = || post(message).get(events).delete(end).head(head);
        Router::new()
            .route("/mcp", methods())
            .route("/mcp/{profile}", methods())
            .with_state(self.clone())
    }

    /// Returns true if a POST to this path is for the gateway.
    pub(crate) fn answers(path: &str) -> bool {
        path == "/mcp"
            || path.strip_prefix("/mcp/").is_some_and(|it| !it.is_empty() && !it.contains('/'))
    }

    /// Answers a POST that the router has not seen.
    pub(crate) async fn post(&self, request: DirectRequest) -> Result<Response, Problem> {
        let DirectRequest { uri, headers, body, caller, memory } = request;
        require_json(&headers)?;
        let endpoint = self.endpoint(&caller, &uri)?;
        let body = read_bytes(&headers, body, memory.as_ref(), BODY_COPIES).await?;
        Ok(respond(endpoint.post(&principal(&caller), &headers, &body).await))
    }

    /// Ends every session.
    pub async fn stop(&self) {
        self.endpoints.stop().await;
    }

    /// The endpoint of a request. Names of profiles need no escaping, so the path has them unmodified.
    fn endpoint(&self, caller: &Caller, uri: &Uri) -> Result<Arc<HttpEndpoint>, Problem> {
        self.endpoints.find(caller, uri.path().strip_prefix("/mcp/"))
    }
}

async fn message(
    State(mount): State<Mount>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<RoutedResponse, Problem> {
    require_json(request.headers())?;
    let endpoint = mount.endpoint(&caller, request.uri())?;
    let (headers, body) = read_body(request).await?;
    Ok(routed(endpoint.post(&principal(&caller), &headers, &body).await))
}

async fn events(
    State(mount): State<Mount>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<RoutedResponse, Problem> {
    let endpoint = mount.endpoint(&caller, request.uri())?;
    Ok(routed(endpoint.get(&principal(&caller), request.headers())))
}

async fn end(
    State(mount): State<Mount>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<RoutedResponse, Problem> {
    let endpoint = mount.endpoint(&caller, request.uri())?;
    Ok(routed(endpoint.delete(&principal(&caller), request.headers())))
}

fn routed(reply: Reply) -> RoutedResponse {
    respond(reply).map(ResponseBody::into_routed)
}

/// The caller as the MCP endpoint knows it. Its sessions and suspended requests end with its key.
fn principal(caller: &Caller) -> Principal {
    Principal::new(Arc::clone(&caller.owner))
        .with_role(caller.scope.word())
        .until(Arc::clone(&caller.ended))
}

fn respond(reply: Reply) -> Response {
    let Reply { status, session, body } = reply;
    let mut headers = HeaderMap::with_capacity(HEADERS);
    let (body, ends_by_itself) = match body {
        ReplyBody::Empty => (Bytes::new().into(), false),
        ReplyBody::Json(message) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            (Bytes::from(message).into(), false)
        }
        ReplyBody::Notifications(events) => (stream(&mut headers, events), false),
        ReplyBody::Response(events) => (stream(&mut headers, events), true),
    };
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    if let Some(session) = session {
        headers.insert(SESSION, session);
    }
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    if ends_by_itself {
        response.extensions_mut().insert(EndsByItself);
    }
    response
}

fn stream(headers: &mut HeaderMap, events: ReplyEvents) -> ResponseBody {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies must not buffer.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Body::from_stream(events.map(Ok::<_, Infallible>)).into()
}
