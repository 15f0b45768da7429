//! Activity of a connection: a client that never reads its answers, or holds a connection without using it, keeps
//! others out.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Bytes, HttpBody};
use axum::http::{Response as HttpResponse, Version};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::body::{Response, ResponseBody};

/// Activity of one connection. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct ConnectionActivity(Arc<State>);

#[derive(Debug)]
struct State {
    began: Instant,
    /// Milliseconds after the beginning; `NEVER` while writes succeed.
    blocked_since: AtomicU64,
    /// Requests whose answer is not sent to its end.
    in_flight: AtomicUsize,
    /// When the last of them ended.
    idle_since: AtomicU64,
    /// True if the client has sent anything.
    has_sent: AtomicBool,
    /// True if a request has begun, and whether it was one of HTTP/2.
    has_asked: AtomicBool,
    is_http2: AtomicBool,
    /// True if a request of HTTP/1 has arrived in full and its answer is not sent to its end.
    is_answering: AtomicBool,
}

const NEVER: u64 = u64::MAX;

impl ConnectionActivity {
    pub(super) fn new() -> Self {
        Self(Arc::new(State {
            began: Instant::now(),
            blocked_since: AtomicU64::new(NEVER),
            in_flight: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            has_sent: AtomicBool::new(false),
            has_asked: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
            is_answering: AtomicBool::new(false),
        }))
    }

    /// For how long nothing could be written.
    pub(super) fn blocked(&self) -> Duration {
        self.since(self.0.blocked_since.load(Ordering::Relaxed))
    }

    /// Returns true if the client has sent a first byte.
    pub(super) fn has_sent(&self) -> bool {
        self.0.has_sent.load(Ordering::Relaxed)
    }

    /// Returns true if a request of HTTP/1 has arrived in full and is being answered: further bytes belong to the
    /// next requests.
    pub(super) fn is_answering(&self) -> bool {
        self.0.is_answering.load(Ordering::Relaxed)
    }

    /// The body of a request of HTTP/1, whose end is noted.
    pub(super) fn receive(&self, body: Incoming) -> RequestBody {
        let arriving = RequestBody { body, activity: Some(self.clone()) };
        if arriving.body.is_end_stream() {
            arriving.arrived();
        }
        arriving
    }

    /// Notes that a request of this version of HTTP has begun.
    pub(super) fn note_request(&self, version: Version) {
        if version == Version::HTTP_2 {
            self.0.is_http2.store(true, Ordering::Relaxed);
        }
        self.0.has_asked.store(true, Ordering::Relaxed);
    }

    /// Returns true if a request has begun.
    pub(super) fn has_asked(&self) -> bool {
        self.0.has_asked.load(Ordering::Relaxed)
    }

    /// Returns true if the connection has carried a request of HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        self.0.is_http2.load(Ordering::Relaxed)
    }

    /// Returns true if no request is being answered.
    pub(super) fn is_idle(&self) -> bool {
        self.0.in_flight.load(Ordering::Acquire) == 0
    }

    /// For how long there was no request.
    pub(super) fn idle(&self) -> Duration {
        if !self.is_idle() {
            return Duration::ZERO;
        }
        self.since(self.0.idle_since.load(Ordering::Relaxed))
    }

    /// A request, until the guard is dropped.
    pub(super) fn begin_request(&self) -> InFlightGuard {
        self.0.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlightGuard(self.clone())
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(NEVER - 1)
    }

    fn since(&self, then: u64) -> Duration {
        if then == NEVER {
            Duration::ZERO
        } else {
            Duration::from_millis(self.now().saturating_sub(then))
        }
    }

    fn note_write<T>(&self, written: &Poll<T>) {
        let blocked = &self.0.blocked_since;
        match written {
            Poll::Ready(_) => blocked.store(NEVER, Ordering::Relaxed),
            Poll::Pending if blocked.load(Ordering::Relaxed) == NEVER => {
                blocked.store(self.now(), Ordering::Relaxed);
            }
            Poll::Pending => {}
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct InFlightGuard(ConnectionActivity);

impl InFlightGuard {
    /// Lasts until the whole answer is sent.
    pub(super) fn until_sent(self, response: Response) -> HttpResponse<Sending> {
        response.map(|body| Sending { body, _guard: self })
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let Self(activity) = self;
        activity.0.is_answering.store(false, Ordering::Relaxed);
        activity.0.idle_since.store(activity.now(), Ordering::Relaxed);
        activity.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The body of a request. Notes when it has arrived in full.
#[derive(Debug)]
pub struct RequestBody {
    body: Incoming,
    /// None for a stream of HTTP/2: it has its own bytes, and hyper reads all the time.
    activity: Option<ConnectionActivity>,
}

impl RequestBody {
    /// The body of a stream of HTTP/2.
    pub(super) fn of_stream(body: Incoming) -> Self {
        Self { body, activity: None }
    }

    fn arrived(&self) {
        if let Some(activity) = &self.activity {
            activity.0.is_answering.store(true, Ordering::Relaxed);
        }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.arrived();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response, which keeps its request running until it is sent.
#[derive(Debug)]
pub(super) struct Sending {
    body: ResponseBody,
    _guard: InFlightGuard,
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that notes whether writing gets anywhere.
pub(super) struct MonitoredIo<I> {
    pub(super) stream: I,
    pub(super) activity: ConnectionActivity,
}

impl<I: AsyncRead + Unpin> AsyncRead for MonitoredIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.activity.0.has_sent.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for MonitoredIo<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.activity.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.activity.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
