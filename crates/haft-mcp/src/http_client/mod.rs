//! An HTTP/1.1 client on hyper whose peers cannot exhaust it.
//!
//! hyper reads interim responses (`100 Continue`) in a loop that only tokio's budget interrupts, and reqwest offers
//! no hook below that loop. This client wraps every connection, so that a [`HeadGate`] ends a flood of interim
//! responses after [`HEAD_BYTES_MAX`] bytes. Bodies arrive chunk by chunk: their limits belong to the caller.
//! Redirects are not followed and nothing is decompressed.

mod connect;
mod error;
mod gate;
mod resolve;
mod response;

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, HeaderValue, PROXY_AUTHORIZATION};
use http::uri::Scheme;
use http::{HeaderMap, Method, Request, Uri};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::client::legacy;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use url::Url;

pub use self::error::HttpError;
pub use self::gate::HEAD_BYTES_MAX;
pub(crate) use self::resolve::{Resolve, Resolving};
pub use self::response::{Response, Upgraded};

use self::connect::Connector;
use self::resolve::{Resolver, SystemResolver};

/// The size of one read, and of one response head. [`HEAD_BYTES_MAX`] is several of them, because the read that ends
/// the head may contain a part of the body, and hyper reads one chunk ahead.
const READ_BYTES_MAX: usize = 64 << 10;

/// Settings for opening and keeping connections.
#[derive(Debug, Clone, Copy)]
pub struct HttpClientOptions {
    /// The limit for connecting: name lookup, proxy and TLS included.
    pub connect_timeout: Duration,
    /// The longest time a connection stays in the pool unused.
    pub idle_max: Duration,
    /// The number of unused connections kept for each host.
    pub idle_connections_max: usize,
}

/// A client with a pool of connections. Clones share the pool.
///
/// Connections live on the runtime that sent their first request.
#[derive(Clone)]
pub struct HttpClient {
    client: legacy::Client<Connector, Full<Bytes>>,
    proxies: Arc<Matcher>,
}

impl HttpClient {
    /// A client that honours the proxies of the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`).
    pub fn new(options: HttpClientOptions) -> Result<Self, HttpError> {
        Self::with_resolver(options, Arc::new(SystemResolver))
    }

    /// The same with another name lookup.
    pub(crate) fn with_resolver(
        options: HttpClientOptions,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, HttpError> {
        let proxies = Arc::new(Matcher::from_system());
        let resolver = Resolver(resolver);
        let connector = Connector::new(options.connect_timeout, resolver, Arc::clone(&proxies))?;
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(options.idle_max)
            .pool_max_idle_per_host(options.idle_connections_max)
            .http1_max_buf_size(READ_BYTES_MAX)
            .build(connector);
        Ok(Self { client, proxies })
    }

    /// Sends a request and returns its response as soon as the head is there, whatever its status.
    ///
    /// There is no time limit here beyond the one for connecting. Dropping the future, or the response, closes the
    /// exchange.
    pub async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<Response, HttpError> {
        let uri: Uri = url.as_str().parse().map_err(|error| HttpError::Address(Box::new(error)))?;
        let mut request = Request::new(Full::new(body.into()));
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        request.headers_mut().entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        self.add_proxy_credentials(&uri, request.headers_mut());
        *request.uri_mut() = uri;
        let response = self.client.request(request).await.map_err(HttpError::of_request)?;
        Ok(Response::new(response, url.clone()))
    }

    /// A proxy for https receives its credentials in the CONNECT request, where the target cannot see them.
    fn add_proxy_credentials(&self, uri: &Uri, headers: &mut HeaderMap) {
        if uri.scheme() != Some(&Scheme::HTTP) {
            return;
        }
        let Some(proxy) = self.proxies.intercept(uri) else { return };
        if let Some(credentials) = proxy.basic_auth() {
            headers.entry(PROXY_AUTHORIZATION).or_insert(credentials.clone());
        }
    }
}
