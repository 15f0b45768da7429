//! The listener: takes connections within limits, and lets them end in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Version};
use axum::response::Response;
use futures_util::StreamExt as _;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::access::may_listen;
use super::pulse::{Felt, Pulse};
use super::socket::{CloseWatch, Socket};
use super::table::{ConnectionSlot, ConnectionStanding};
use super::tls::{Tls, TlsError, TlsFiles};
use crate::keys::Keyring;

/// How many connections there may be at once.
const CONNECTIONS_MAX: usize = 1024;
/// How long a client may take to send its first byte.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request's head may take, and how long a connection may be idle.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests under way may go on when the server stops.
const GRACE: Duration = Duration::from_secs(10);
/// How many headers a request may have, and how large all of them may be together.
const HEADERS_MAX: usize = 100;
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// How many requests one HTTP/2 connection may have under way.
const STREAMS_MAX: u32 = 256;

/// Where and how to listen.
#[derive(Debug, Clone)]
pub struct ListenerSettings {
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
    /// TLS, or none.
    pub tls: Option<TlsFiles>,
    /// How many connections there may be at once. A new one takes the place of the oldest idle one that has not
    /// presented a key; without any, it is refused.
    pub connections_max: usize,
    /// How long a client may take to send its first byte.
    pub first_byte_timeout: Duration,
    /// How long a request's head may take to arrive, and how long a connection may be idle.
    pub header_timeout: Duration,
    /// How long a TLS handshake may take.
    pub handshake_timeout: Duration,
    /// How long requests under way may go on when the server stops.
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
    /// What to do next.
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
    /// Whether it is encrypted up to here.
    pub is_tls: bool,
    /// Cancelled when the server stops. Shared, because each clone of a token takes a lock that all
    /// connections have in common.
    pub stopping: Arc<CancellationToken>,
    /// What the connection has proven, for the table of connections.
    pub(super) standing: ConnectionStanding,
}

/// Put into the extensions of an answer that is an event stream: it ends by itself soon, such as the one
/// of a call, and may go on through the grace period. All others end when the server stops.
#[derive(Debug, Clone, Copy)]
pub struct EndsByItself;

/// How serving ended.
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

    /// Serves until `stop`, then lets requests under way finish within the grace period.
    pub async fn serve(self, router: Router, stop: CancellationToken) -> Ended {
        let tasks = Tasks { tracker: TaskTracker::new(), cut: CancellationToken::new() };
        let service = Arc::new(Service {
            http: http(&self.settings, tasks.clone()),
            router,
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
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEADER_BYTES_MAX);
    http.http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX))
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(settings.header_timeout)
        .keep_alive_timeout(settings.header_timeout);
    http
}

pub(super) struct Service {
    http: auto::Builder<Tasks>,
    router: Router,
    tls: Option<Arc<Tls>>,
    first_byte_timeout: Duration,
    header_timeout: Duration,
    handshake_timeout: Duration,
    stop: CancellationToken,
}

/// The client left before its next request was started.
#[derive(Debug, thiserror::Error)]
#[error("the client has closed the connection")]
struct ClientLeft;

impl Service {
    /// Serves one connection from its first byte to its last.
    pub(super) async fn hold(&self, stream: TcpStream, peer: SocketAddr, slot: ConnectionSlot) {
        // Without it small answers wait for more to come; a connection that cannot have it still works.
        let _ = stream.set_nodelay(true);
        let (socket, watch) = Socket::new(stream);
        tokio::select! {
            () = slot.evicted() => {}
            () = self.shake_hands(socket, watch, peer, &slot) => {}
        }
    }

    async fn shake_hands(
        &self,
        socket: Socket,
        watch: CloseWatch,
        peer: SocketAddr,
        slot: &ConnectionSlot,
    ) {
        let Some(tls) = &self.tls else {
            return self.talk(socket, watch, peer, slot).await;
        };
        let handshake = timeout(self.handshake_timeout, tls.acceptor().accept(socket));
        tokio::select! {
            () = self.stop.cancelled() => {}
            shaken = handshake => match shaken {
                Ok(Ok(stream)) => self.talk(stream, watch, peer, slot).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
            },
        }
    }

    async fn talk<I>(&self, stream: I, watch: CloseWatch, peer: SocketAddr, slot: &ConnectionSlot)
    where
        I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let pulse = slot.pulse();
        let has_asked = Arc::new(AtomicBool::new(false));
        let connection = Connection {
            peer,
            is_tls: self.tls.is_some(),
            stopping: Arc::new(self.stop.clone()),
            standing: slot.standing(),
        };
        let answer = self.answering(connection, watch.clone(), pulse.clone(), &has_asked);
        let stream = Felt { stream, pulse: pulse.clone() };
        let talking = self.http.serve_connection(TokioIo::new(stream), answer);
        let left = watch.left(pulse);
        // The limit of hyper begins only when it knows which protocol is spoken.
        let first_request = sleep(self.header_timeout);
        let first_byte = sleep(self.first_byte_timeout);
        tokio::pin!(talking, left, first_request, first_byte);
        let (mut awaits_byte, mut awaits_request, mut is_stopping) = (true, true, false);
        let mut looks = interval(self.header_timeout / 4);
        loop {
            tokio::select! {
                ended = talking.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%peer, %error, "a connection broke");
                    }
                    return;
                }
                // What the client still waits for ends with the connection.
                () = left.as_mut() => return,
                () = self.stop.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    talking.as_mut().graceful_shutdown();
                }
                _ = looks.tick() => {
                    // A client that does not read keeps a connection from others, and so does an idle one.
                    if pulse.blocked() > self.header_timeout || pulse.idle() > 3 * self.header_timeout {
                        tracing::debug!(%peer, "closed a connection without progress");
                        return;
                    }
                    if pulse.idle() > 2 * self.header_timeout && !is_stopping {
                        is_stopping = true;
                        talking.as_mut().graceful_shutdown();
                    }
                }
                () = first_byte.as_mut(), if awaits_byte => {
                    awaits_byte = false;
                    if !pulse.has_sent() {
                        return;
                    }
                }
                () = first_request.as_mut(), if awaits_request => {
                    awaits_request = false;
                    if !has_asked.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
        }
    }

    /// Answers the requests of one connection. Those of a client that has left are not started.
    fn answering(
        &self,
        connection: Connection,
        watch: CloseWatch,
        pulse: Pulse,
        has_asked: &Arc<AtomicBool>,
    ) -> impl hyper::service::Service<
        hyper::Request<Incoming>,
        Response = Response,
        Error = ClientLeft,
        Future: Send + 'static,
    > + use<> {
        let (has_asked, router) = (Arc::clone(has_asked), self.router.clone());
        hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
            has_asked.store(true, Ordering::Relaxed);
            let has_left = watch.is_closed();
            let asked = pulse.asked();
            let stop = Arc::clone(&connection.stopping);
            request.extensions_mut().insert(connection.clone());
            let request = match request.version() {
                // Each stream of HTTP/2 has its own bytes, and hyper reads all the time.
                Version::HTTP_2 => request.map(Body::new),
                _ => request.map(|body| pulse.receive(body)),
            };
            let router = router.clone();
            async move {
                if has_left {
                    return Err(ClientLeft);
                }
                let response = match router.oneshot(request).await {
                    Ok(response) => response,
                    Err(never) => match never {},
                };
                Ok(asked.until_sent(end_with(response, &stop)))
            }
        })
    }
}

/// Event streams go on for as long as somebody listens, so they end with the server.
fn end_with(response: Response, stop: &CancellationToken) -> Response {
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
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(ended)))
}
