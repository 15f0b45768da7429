//! The endpoints `/mcp` and `/mcp/{profile}` of the HTTP service.

use std::convert::Infallible;
use std::num::NonZeroU16;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response as RoutedResponse;
use axum::routing::post;
use axum::{Extension, Router};
use futures_util::StreamExt as _;
use haft::mcp_server::{
    HttpEndpoint, Principal, Reply, ReplyBody, ReplyEvents, Routing, SigningKeys,
};
use haft::{ReplicaNumber, Runtime};

use super::Hub;
use super::endpoints::Endpoints;
use crate::serve::{
    BODY_COPIES, Caller, DirectRequest, EndsByItself, Gone, PeerRequest, Peers, Problem, Response,
    ResponseBody, is_forwarded, read_body, read_bytes, require_json,
};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Room for the headers of an answer. hyper uses it again for the headers of the next request.
const HEADERS: usize = 14;

/// The longest response of another replica to a request that concerns all of them. It has a status alone.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The answer of other replicas to a request.
enum Elsewhere {
    /// None of them answers it: the reply is this one's.
    No(Reply),
    /// Its owner answers it.
    Answered(Response),
    /// Its owner is gone.
    Gone,
}

/// The endpoints of the gateway.
#[derive(Clone)]
pub struct Mount {
    endpoints: Arc<Endpoints>,
    /// The other replicas, if the service has several.
    peers: Option<Peers>,
}

impl Mount {
    /// Serves a toolbox with its current configuration. `hub` receives its servers' messages. Needs a tokio runtime
    /// around it.
    pub fn new(runtime: Runtime, hub: Hub) -> Self {
        Self { endpoints: Endpoints::new(runtime, hub, None), peers: None }
    }

    /// The same as one of several replicas. Clients may send each request to another one; the keys are those of all.
    pub fn of_replica(runtime: Runtime, hub: Hub, peers: Peers, keys: SigningKeys) -> Self {
        let number = NonZeroU16::new(peers.own().get());
        let replica = number.map(|number| (number, keys));
        Self { endpoints: Endpoints::new(runtime, hub, replica), peers: Some(peers) }
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
        Ok(self.answer_post(&endpoint, &caller, &uri, &headers, body).await)
    }

    async fn answer_post(
        &self,
        endpoint: &HttpEndpoint,
        caller: &Caller,
        uri: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Response {
        let (from, routing) = (principal(caller), self.routing(headers));
        let reply = endpoint.post(&from, headers, &body, routing).await;
        if self.peers.is_none() {
            return respond(reply);
        }
        let request = || PeerRequest::new(Method::POST, uri, headers, body.clone());
        // Boxed: a service without replicas must not carry these futures with every request.
        match Box::pin(self.elsewhere(reply, routing, request)).await {
            Elsewhere::No(reply) => respond(reply),
            // The stream of a call, which ends by itself: no other one is forwarded here.
            Elsewhere::Answered(response) => ending(response),
            Elsewhere::Gone => {
                let again = Box::pin(endpoint.post(&from, headers, &body, Routing::Here));
                respond(again.await)
            }
        }
    }

    /// Where a request may be answered: one that another replica forwarded, here.
    fn routing(&self, headers: &HeaderMap) -> Routing {
        if self.peers.is_none() || is_forwarded(headers) { Routing::Here } else { Routing::Owner }
    }

    /// Sends a request to the replica, or to all replicas, that `reply` names.
    async fn elsewhere(
        &self,
        reply: Reply,
        routing: Routing,
        request: impl FnOnce() -> PeerRequest,
    ) -> Elsewhere {
        let Some(peers) = &self.peers else { return Elsewhere::No(reply) };
        if let ReplyBody::ForwardTo(owner) = reply.body {
            let (owner, request) = (ReplicaNumber::new(owner.get()), request());
            return match peers.forward(owner, &request).await {
                Ok(response) => Elsewhere::Answered(response),
                Err(Gone) => Elsewhere::Gone,
            };
        }
        if reply.is_for_all && routing == Routing::Owner {
            let request = request();
            // Whatever the others answer, this replica has done its part.
            drop(peers.gather(&request, ANSWER_BYTES_MAX).await);
        }
        Elsewhere::No(reply)
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
    let uri = request.uri().clone();
    let endpoint = mount.endpoint(&caller, &uri)?;
    let (headers, body) = read_body(request).await?;
    let response = mount.answer_post(&endpoint, &caller, &uri, &headers, body).await;
    Ok(response.map(ResponseBody::into_routed))
}

async fn events(
    State(mount): State<Mount>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<RoutedResponse, Problem> {
    let (Parts { method, uri, headers, .. }, _) = request.into_parts();
    let endpoint = mount.endpoint(&caller, &uri)?;
    let (from, routing) = (principal(&caller), mount.routing(&headers));
    let reply = endpoint.get(&from, &headers, routing);
    let request = || PeerRequest::new(method, &uri, &headers, Bytes::new());
    Ok(match mount.elsewhere(reply, routing, request).await {
        Elsewhere::No(reply) => routed(reply),
        Elsewhere::Answered(response) => response.map(ResponseBody::into_routed),
        Elsewhere::Gone => routed(endpoint.get(&from, &headers, Routing::Here)),
    })
}

async fn end(
    State(mount): State<Mount>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<RoutedResponse, Problem> {
    let (Parts { method, uri, headers, .. }, _) = request.into_parts();
    let endpoint = mount.endpoint(&caller, &uri)?;
    let (from, routing) = (principal(&caller), mount.routing(&headers));
    let reply = endpoint.delete(&from, &headers);
    let request = || PeerRequest::new(method, &uri, &headers, Bytes::new());
    // Each replica ends its own copy, so nothing is answered elsewhere.
    Ok(match mount.elsewhere(reply, routing, request).await {
        Elsewhere::No(reply) => routed(reply),
        Elsewhere::Answered(response) => response.map(ResponseBody::into_routed),
        Elsewhere::Gone => routed(endpoint.delete(&from, &headers)),
    })
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
    let Reply { status, session, body, is_for_all: _ } = reply;
    let mut headers = HeaderMap::with_capacity(HEADERS);
    let (body, ends_by_itself) = match body {
        // A request whose owner is gone is answered here, so no reply that forwards is left.
        ReplyBody::Empty | ReplyBody::ForwardTo(_) => (Bytes::new().into(), false),
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
    if ends_by_itself { ending(response) } else { response }
}

/// Marks a response whose stream ends by itself.
fn ending(mut response: Response) -> Response {
    response.extensions_mut().insert(EndsByItself);
    response
}

fn stream(headers: &mut HeaderMap, events: ReplyEvents) -> ResponseBody {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies must not buffer.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Body::from_stream(events.map(Ok::<_, Infallible>)).into()
}
