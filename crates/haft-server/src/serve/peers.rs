//! Forwarding to the other replicas of a service: the same request, with the caller's own key, to the replica that owns
//! its state. At most one hop: a request with the header `Haft-Hop` is answered where it arrives.
//!
//! The header gives its sender nothing: it only keeps a request from being forwarded. Addresses come from the table of
//! live replicas, never from a request, and the owner authenticates the caller as always.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use futures_util::{future, stream};
use haft::ReplicaNumber;
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use super::body::Response;
use super::request_id;

/// Marks a request that a replica forwarded.
const HOP: HeaderName = HeaderName::from_static("haft-hop");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Headers of one connection. They are not passed on.
const CONNECTION_HEADERS: [HeaderName; 9] = [
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Time limit for a connection to another replica.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit for the answers of all replicas to one question.
pub(crate) const GATHER_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest time a connection stays unused: less than a replica keeps an idle one.
const IDLE_MAX: Duration = Duration::from_secs(20);
/// Interval between looks at the table while a replica answers: one that is frozen keeps its connections open.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The live replicas of a service.
pub trait Replicas: Send + Sync + 'static {
    /// The number of this replica.
    fn own(&self) -> ReplicaNumber;

    /// The address of another replica that is alive, such as `http://10.0.0.3:7300`.
    fn address_of(&self, number: ReplicaNumber) -> Option<Arc<str>>;

    /// The other replicas that are alive.
    fn live(&self) -> Vec<ReplicaNumber>;

    /// All replicas that are alive with this one, by number.
    fn list(&self) -> Vec<ReplicaInfo>;
}

/// One replica, as it last reported itself.
#[derive(Debug, Clone)]
pub struct ReplicaInfo {
    /// Its number.
    pub number: ReplicaNumber,
    /// Where other replicas reach it.
    pub address: String,
    /// Its version of Haft.
    pub version: String,
    /// The revision of the registry that it uses.
    pub revision: Option<String>,
    /// A digest of its configuration.
    pub config: String,
    /// Its problem, in one line.
    pub problem: Option<String>,
    /// The time since its last heartbeat.
    pub age: Duration,
}

/// The way to the other replicas. Clones share their connections.
#[derive(Clone)]
pub struct Peers {
    replicas: Arc<dyn Replicas>,
    client: reqwest::Client,
}

/// A request as another replica receives it.
#[derive(Debug, Clone)]
pub(crate) struct PeerRequest {
    method: Method,
    /// The path and the query.
    target: String,
    headers: HeaderMap,
    body: Bytes,
}

/// The replica is not alive, or does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// Returns true if another replica forwarded a request.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(HOP)
}

impl Peers {
    /// The way to the replicas of a table.
    pub fn new(replicas: Arc<dyn Replicas>) -> Result<Self, reqwest::Error> {
        let client = haft::http_client_builder()
            // A proxy for the web is not the way to a replica, and the requests carry keys.
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_MAX)
            .build()?;
        Ok(Self { replicas, client })
    }

    /// The number of this replica.
    pub fn own(&self) -> ReplicaNumber {
        self.replicas.own()
    }

    /// The other replicas that are alive.
    pub(crate) fn live(&self) -> Vec<ReplicaNumber> {
        self.replicas.live()
    }

    /// All replicas that are alive with this one, by number.
    pub(crate) fn list(&self) -> Vec<ReplicaInfo> {
        self.replicas.list()
    }

    /// The owner of an id, if it is another replica that is alive.
    pub(crate) fn other_owner(&self, id: &str) -> Option<ReplicaNumber> {
        let owner = ReplicaNumber::of_id(id).filter(|owner| *owner != self.own())?;
        self.replicas.address_of(owner).map(|_| owner)
    }

    /// Sends a request to a replica, and returns its response as soon as the head is there. Dropping the response ends
    /// the request there.
    pub(crate) async fn forward(
        &self,
        to: ReplicaNumber,
        request: &PeerRequest,
    ) -> Result<Response, Gone> {
        let response = self.send(to, request).await?;
        let mut headers = response.headers().clone();
        for name in &CONNECTION_HEADERS {
            headers.remove(name);
        }
        let status = response.status();
        let peers = self.clone();
        let left = Box::pin(async move { peers.left(to).await });
        let body = stream::unfold(Some(ForwardedBody { response, left }), ForwardedBody::next);
        let mut forwarded = Response::new(Body::from_stream(body).into());
        *forwarded.status_mut() = status;
        *forwarded.headers_mut() = headers;
        Ok(forwarded)
    }

    /// Sends a request to all other replicas and waits for their responses, within [`GATHER_TIMEOUT`] for all of them.
    /// A response that is late, or longer than `bytes_max`, is missing.
    pub(crate) async fn gather(
        &self,
        request: &PeerRequest,
        bytes_max: usize,
    ) -> Vec<(ReplicaNumber, Result<Bytes, Gone>)> {
        let until = Instant::now() + GATHER_TIMEOUT;
        let answers = self.live().into_iter().map(|to| async move {
            let answer = timeout_at(until, self.whole(to, request, bytes_max)).await;
            (to, answer.unwrap_or(Err(Gone)))
        });
        future::join_all(answers).await
    }

    async fn whole(
        &self,
        to: ReplicaNumber,
        request: &PeerRequest,
        bytes_max: usize,
    ) -> Result<Bytes, Gone> {
        let mut response = self.send(to, request).await?;
        if !response.status().is_success() {
            return Err(Gone);
        }
        let mut whole = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|_| Gone)? {
            if whole.len() + chunk.len() > bytes_max {
                return Err(Gone);
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.into())
    }

    async fn send(
        &self,
        to: ReplicaNumber,
        request: &PeerRequest,
    ) -> Result<reqwest::Response, Gone> {
        let address = self.replicas.address_of(to).ok_or(Gone)?;
        let PeerRequest { method, target, headers, body } = request;
        let url = format!("{}{target}", address.trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|_| Gone)?;
        let request = self.client.request(method.clone(), url).headers(headers.clone());
        let sending = request.body(body.clone()).send();
        let sent = tokio::select! {
            sent = sending => sent,
            () = self.left(to) => return Err(Gone),
        };
        sent.map_err(|error| {
            // Only the replica and its address: the rest of the URL is the caller's.
            let error = error.without_url();
            tracing::warn!(replica = %to, %address, %error, "a replica cannot be reached");
            Gone
        })
    }

    /// Waits until a replica is not alive any more.
    pub(crate) async fn left(&self, number: ReplicaNumber) {
        while self.replicas.address_of(number).is_some() {
            sleep(LOOK_EVERY).await;
        }
    }
}

/// The body of a response that another replica sends.
struct ForwardedBody {
    response: reqwest::Response,
    /// Ends when the replica is not alive any more.
    left: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl ForwardedBody {
    /// The next chunk. A body that breaks off here breaks off for the client too: it must not look whole.
    async fn next(body: Option<Self>) -> Option<(io::Result<Bytes>, Option<Self>)> {
        let mut body = body?;
        let chunk = tokio::select! {
            biased;
            chunk = body.response.chunk() => chunk.map_err(io::Error::other),
            () = &mut body.left => Err(io::Error::other("the replica is gone")),
        };
        match chunk {
            Ok(Some(chunk)) => Some((Ok(chunk), Some(body))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    }
}

impl std::fmt::Debug for Peers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peers").field("own", &self.own()).finish_non_exhaustive()
    }
}

impl PeerRequest {
    /// The same request for another replica. Host and key stay as they are, and so does the request's id, which it has
    /// from now on.
    pub(crate) fn new(method: Method, uri: &Uri, headers: &HeaderMap, body: Bytes) -> Self {
        let mut headers = headers.clone();
        for name in &CONNECTION_HEADERS {
            headers.remove(name);
        }
        headers.insert(HOP, HeaderValue::from_static("1"));
        // A request over HTTP/2 has its host in the address.
        if !headers.contains_key(HOST)
            && let Some(host) = uri.authority()
            && let Ok(host) = HeaderValue::from_str(host.as_str())
        {
            headers.insert(HOST, host);
        }
        let id = request_id::with_current(|id| HeaderValue::from_str(id).ok()).flatten();
        if let Some(id) = id {
            headers.insert(REQUEST_ID, id);
        }
        let target = uri.path_and_query().map_or(uri.path(), |target| target.as_str()).to_owned();
        Self { method, target, headers, body }
    }

    /// The same request without a body.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        Self::new(request.method().clone(), request.uri(), request.headers(), Bytes::new())
    }
}
