//! The listener: takes connections within limits, and lets them end in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::access::may_listen;
use super::body::Response;
use super::checked_service::CheckedService;
use super::connection::Service;
use super::direct::DirectEndpoints;
use super::table::ConnectionStanding;
use super::tls::{Tls, TlsError, TlsFiles};
use crate::keys::{Keyring, PresentedKey};

/// Largest number of connections.
const CONNECTIONS_MAX: usize = 1024;
/// Time limit of a client for its first byte.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a request's head, and for an idle connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for requests in flight when the server stops.
const GRACE: Duration = Duration::from_secs(10);
/// Largest total size of a request's headers. hyper takes 100 of them; naming that number would make it allocate room
/// for all of them with each request.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Requests of one HTTP/2 connection in flight.
const STREAMS_MAX: u32 = 256;

/// Where and how to listen.
#[derive(Debug, Clone)]
pub struct ListenerSettings {
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
    /// TLS, or none.
    pub tls: Option<TlsFiles>,
    /// Largest number of connections. A new one takes the place of the oldest idle one that has not presented a key;
    /// without any, it is refused.
    pub connections_max: usize,
    /// Time limit of a client for its first byte.
    pub first_byte_timeout: Duration,
    /// Time limit for a request's head, and for an idle connection.
    pub header_timeout: Duration,
    /// Time limit of a TLS handshake.
    pub handshake_timeout: Duration,
    /// Time for requests in flight when the server stops.
    pub grace: Duration,
}

impl ListenerSettings {
    /// The usual limits, without TLS.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            tls: None,
            connections_max: CONNECTIONS_MAX,
            first_byte_timeout: FIRST_BYTE_TIMEOUT,
            header_timeout: HEADER_TIMEOUT,
            handshake_timeout: HANDSHAKE_TIMEOUT,
            grace: GRACE,
        }
    }
}

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Others could reach the server, and it has no key.
    #[error("will not listen on `{address}`, which others can reach, without a key")]
    NoKey {
        /// The address.
        address: SocketAddr,
    },
    /// The system refuses the address.
    #[error("cannot listen on `{address}`: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Where an address is chosen.
const WHERE_TO_SAY: &str = "`--listen ADDRESS:PORT`, or `api.listen` in the configuration";

impl ListenError {
    /// The next step for the caller.
    pub fn remedy(&self) -> String {
        match self {
            Self::NoKey { .. } => {
                "create a key with `haft keys create --scope admin --name me`, or \
                                   listen on `127.0.0.1`"
                    .to_owned()
            }
            Self::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                format!("stop what listens there, or choose another port: {WHERE_TO_SAY}")
            }
            Self::Bind { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                format!("choose a port from 1024 on: {WHERE_TO_SAY}")
            }
            Self::Bind { .. } => format!("choose an address of this machine: {WHERE_TO_SAY}"),
            Self::Tls(error) => error.remedy(),
        }
    }
}

/// The connection a request came by; in each request's extensions.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The other side's address.
    pub peer: SocketAddr,
    /// True if it is encrypted up to here.
    pub is_tls: bool,
    /// Cancelled when the server stops. Shared, because each clone of a token takes a lock that all
    /// connections have in common.
    pub stopping: Arc<CancellationToken>,
    /// The connection's standing in the table of connections.
    pub(super) standing: ConnectionStanding,
    /// The key it has presented.
    pub(super) presented: Arc<PresentedKey>,
}

/// Put into the extensions of an event stream that ends by itself soon, such as the one of a call: it may continue
/// through the grace period. All others end when the server stops.
#[derive(Debug, Clone, Copy)]
pub struct EndsByItself;

/// The end of serving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every request got its answer.
    Clean,
    /// Requests that took longer than the grace period were cut off.
    Cut,
}

/// A socket that listens.
#[derive(Debug)]
pub struct Listener {
    pub(super) settings: ListenerSettings,
    pub(super) socket: TcpListener,
    local: SocketAddr,
    pub(super) tls: Option<Arc<Tls>>,
}

impl Listener {
    /// Takes the address. Refused beyond this machine as long as there is no key.
    pub async fn bind(settings: ListenerSettings, keys: &Keyring) -> Result<Self, ListenError> {
        let address = settings.address;
        may_listen(address, keys)?;
        let tls = settings.tls.clone().map(Tls::open).transpose()?.map(Arc::new);
        let bound = TcpListener::bind(address).await.and_then(|it| Ok((it.local_addr()?, it)));
        let (local, socket) = bound.map_err(|source| ListenError::Bind { address, source })?;
        Ok(Self { settings, socket, local, tls })
    }

    /// The address, with the port that was taken.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Serves until `stop`, then lets requests in flight finish within the grace period.
    pub async fn serve<D: DirectEndpoints>(
        self,
        service: CheckedService<D>,
        stop: CancellationToken,
    ) -> Ended {
        let tasks = Tasks { tracker: TaskTracker::new(), cut: CancellationToken::new() };
        let service = Arc::new(Service {
            http: http(&self.settings, tasks.clone()),
            endpoints: Arc::new(service),
            tls: self.tls.clone(),
            first_byte_timeout: self.settings.first_byte_timeout,
            header_timeout: self.settings.header_timeout,
            handshake_timeout: self.settings.handshake_timeout,
            stop: stop.clone(),
        });
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.accept(&service, &tasks) => {}
        }
        // New connections are refused from here on.
        drop(self.socket);
        tasks.tracker.close();
        if timeout(self.settings.grace, tasks.tracker.wait()).await.is_ok() {
            return Ended::Clean;
        }
        tasks.cut.cancel();
        tasks.tracker.wait().await;
        Ended::Cut
    }
}

/// Starts what belongs to connections, and ends it.
#[derive(Debug, Clone)]
pub(super) struct Tasks {
    tracker: TaskTracker,
    cut: CancellationToken,
}

impl Tasks {
    /// Starts work that ends by itself when the token is cancelled.
    pub(super) fn start_with<F>(&self, work: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tracker.spawn(work(self.cut.clone()));
    }

    pub(super) fn start(&self, work: impl Future<Output = ()> + Send + 'static) {
        let cut = self.cut.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                () = cut.cancelled() => {}
                () = work => {}
            }
        });
    }
}

/// For the streams of HTTP/2.
impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Tasks {
    fn execute(&self, work: F) {
        self.start(work);
    }
}

fn http(settings: &ListenerSettings, tasks: Tasks) -> auto::Builder<Tasks> {
    let mut http = auto::Builder::new(tasks);
    // The watch over the connection limits the time for a head: hyper would start a timer for each request.
    http.http1().header_read_timeout(None).max_buf_size(HEADER_BYTES_MAX);
    http.http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX))
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(settings.header_timeout)
        .keep_alive_timeout(settings.header_timeout);
    http
}

/// Event streams last as long as their listener, so they end with the server.
pub(super) fn end_with(response: Response, stop: &CancellationToken) -> Response {
    if response.extensions().get::<EndsByItself>().is_some() {
        return response;
    }
    end_stream(response, stop)
}

/// Ends an answer with `end` where it is an event stream. All others are whole when they begin.
pub(super) fn end_stream(response: Response, end: &CancellationToken) -> Response {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
        return response;
    }
    let ended = end.clone().cancelled_owned();
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(ended)).into())
}
