//! One connection: its requests, and the watch that ends it.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Version;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, interval, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::activity::{ConnectionActivity, MonitoredIo, RequestBody, Sending};
use super::checked_service::CheckedService;
use super::direct::DirectEndpoints;
use super::listener::{Connection, Tasks, end_with};
use super::self_wake::PollSelfWoken;
use super::socket::{CloseWatch, Socket};
use super::table::ConnectionSlot;
use super::tls::Tls;

pub(super) struct Service<D> {
    pub(super) http: auto::Builder<Tasks>,
    pub(super) endpoints: Arc<CheckedService<D>>,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) first_byte_timeout: Duration,
    pub(super) header_timeout: Duration,
    pub(super) handshake_timeout: Duration,
    pub(super) stop: CancellationToken,
}

/// A connection beside its stream.
struct ConnectionContext {
    peer: SocketAddr,
    watch: CloseWatch,
    slot: ConnectionSlot,
    /// Ends it at once.
    cut: CancellationToken,
    began: Instant,
}

/// The end of a connection that its client does not bring about by a request.
enum Verdict {
    /// After the requests in flight.
    Finish,
    /// At once.
    Close,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Open,
    /// It takes no further requests.
    Finishing,
}

/// The client left before its next request was started.
#[derive(Debug, thiserror::Error)]
#[error("the client has closed the connection")]
struct ClientLeft;

impl<D: DirectEndpoints> Service<D> {
    /// Serves one connection from its first byte to its last.
    pub(super) async fn hold(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        slot: ConnectionSlot,
        cut: CancellationToken,
    ) {
        // Without it small answers wait for more to come; a connection that cannot have it still works.
        let _ = stream.set_nodelay(true);
        let (socket, watch) = Socket::new(stream);
        let context = ConnectionContext { peer, watch, slot, cut, began: Instant::now() };
        let Some(tls) = &self.tls else {
            return self.talk(socket, context).await;
        };
        let handshake = timeout(self.handshake_timeout, tls.acceptor().accept(socket));
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = context.cut.cancelled() => {}
            () = context.slot.evicted() => {}
            shaken = handshake => match shaken {
                Ok(Ok(stream)) => self.talk(stream, context).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
            },
        }
    }

    async fn talk<I>(&self, stream: I, context: ConnectionContext)
    where
        I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let activity = context.slot.activity();
        let peer = context.peer;
        let connection = Connection {
            peer,
            is_tls: self.tls.is_some(),
            stopping: Arc::new(self.stop.clone()),
            standing: context.slot.standing(),
            presented: Arc::default(),
        };
        let answer = self.answering(connection, context.watch.clone(), activity.clone());
        let stream = MonitoredIo { stream, activity: activity.clone() };
        let talking = self.http.serve_connection(TokioIo::new(stream), answer);
        tokio::pin!(talking);
        let mut talking = PollSelfWoken::new(talking);
        // Polled when one of its own events fires, not with each step of a request.
        let mut watching = FuturesUnordered::new();
        watching.push(self.watch(&context, Progress::Open));
        loop {
            tokio::select! {
                biased;
                ended = &mut talking => {
                    if let Err(error) = ended {
                        tracing::debug!(%peer, %error, "a connection broke");
                    }
                    return;
                }
                verdict = watching.next() => match verdict {
                    Some(Verdict::Finish) => {
                        talking.get_mut().as_mut().graceful_shutdown();
                        watching.push(self.watch(&context, Progress::Finishing));
                    }
                    // What the client still waits for ends with the connection.
                    Some(Verdict::Close) | None => return,
                },
            }
        }
    }

    /// Waits for the end of a connection that its client does not bring about by a request.
    async fn watch(&self, context: &ConnectionContext, progress: Progress) -> Verdict {
        let ConnectionContext { peer, watch, slot, cut, began } = context;
        let activity = slot.activity();
        let limit = self.header_timeout;
        let mut looks = interval(limit / 4);
        // hyper has no limit for a head before it knows which protocol is spoken.
        let mut first_byte = Some(Box::pin(sleep_until(*began + self.first_byte_timeout)));
        let mut first_request = Some(Box::pin(sleep_until(*began + limit)));
        let left = watch.left(activity);
        tokio::pin!(left);
        loop {
            tokio::select! {
                () = slot.evicted() => return Verdict::Close,
                () = cut.cancelled() => return Verdict::Close,
                () = left.as_mut() => return Verdict::Close,
                () = self.stop.cancelled(), if progress == Progress::Open => return Verdict::Finish,
                _ = looks.tick() => {
                    // A client that does not read keeps a connection from others, and so does an idle one. On a
                    // connection of HTTP/2 the client gets notice first.
                    let idle = activity.idle();
                    let idle_max = if activity.is_http2() { 3 * limit } else { limit };
                    if activity.blocked() > limit || (activity.has_asked() && idle > idle_max) {
                        tracing::debug!(%peer, "closed a connection without progress");
                        return Verdict::Close;
                    }
                    if idle > 2 * limit && progress == Progress::Open {
                        return Verdict::Finish;
                    }
                }
                () = elapsed(&mut first_byte), if first_byte.is_some() => {
                    first_byte = None;
                    if !activity.has_sent() {
                        return Verdict::Close;
                    }
                }
                () = elapsed(&mut first_request), if first_request.is_some() => {
                    first_request = None;
                    if !activity.has_asked() {
                        return Verdict::Close;
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
        activity: ConnectionActivity,
    ) -> impl hyper::service::Service<
        hyper::Request<Incoming>,
        Response = hyper::Response<Sending>,
        Error = ClientLeft,
        Future: Send + 'static,
    > + use<D> {
        let endpoints = Arc::clone(&self.endpoints);
        let connection = Arc::new(connection);
        hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let has_left = watch.is_closed();
            activity.note_request(request.version());
            let in_flight = activity.begin_request();
            let request = match request.version() {
                Version::HTTP_2 => request.map(RequestBody::of_stream),
                _ => request.map(|body| activity.receive(body)),
            };
            let (endpoints, connection) = (Arc::clone(&endpoints), Arc::clone(&connection));
            async move {
                if has_left {
                    return Err(ClientLeft);
                }
                let response = endpoints.answer(&connection, request).await;
                Ok(in_flight.until_sent(end_with(response, &connection.stopping)))
            }
        })
    }
}

/// Waits for a timer; forever without one.
async fn elapsed(timer: &mut Option<Pin<Box<Sleep>>>) {
    match timer {
        Some(timer) => timer.as_mut().await,
        None => std::future::pending().await,
    }
}
