//! Whether a connection still gets anywhere: a client that never reads its answers, or holds a connection
//! without using it, keeps others out.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What is known about one connection. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Pulse(Arc<State>);

#[derive(Debug)]
struct State {
    began: Instant,
    /// Milliseconds after the beginning; `NEVER` while writing goes on.
    blocked_since: AtomicU64,
    /// Requests whose answer is not sent to its end.
    under_way: AtomicUsize,
    /// When the last of them ended.
    idle_since: AtomicU64,
    /// Whether the client has sent anything.
    has_sent: AtomicBool,
    /// Whether a request of HTTP/1 has arrived in full and its answer is not sent to its end.
    is_answering: AtomicBool,
}

const NEVER: u64 = u64::MAX;

impl Pulse {
    pub(super) fn new() -> Self {
        Self(Arc::new(State {
            began: Instant::now(),
            blocked_since: AtomicU64::new(NEVER),
            under_way: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            has_sent: AtomicBool::new(false),
            is_answering: AtomicBool::new(false),
        }))
    }

    /// For how long nothing could be written.
    pub(super) fn blocked(&self) -> Duration {
        self.since(self.0.blocked_since.load(Ordering::Relaxed))
    }

    /// Whether the client has sent a first byte.
    pub(super) fn has_sent(&self) -> bool {
        self.0.has_sent.load(Ordering::Relaxed)
    }

    /// Whether a request of HTTP/1 has arrived in full and is being answered: what the client sends meanwhile
    /// belongs to its next requests.
    pub(super) fn is_answering(&self) -> bool {
        self.0.is_answering.load(Ordering::Relaxed)
    }

    /// The body of a request of HTTP/1, whose end is noted.
    pub(super) fn receive(&self, body: Incoming) -> Body {
        let arriving = Arriving { body, pulse: self.clone() };
        if arriving.body.is_end_stream() {
            arriving.arrived();
        }
        Body::new(arriving)
    }

    /// Whether no request is being answered.
    pub(super) fn is_idle(&self) -> bool {
        self.0.under_way.load(Ordering::Acquire) == 0
    }

    /// For how long there was no request.
    pub(super) fn idle(&self) -> Duration {
        if !self.is_idle() {
            return Duration::ZERO;
        }
        self.since(self.0.idle_since.load(Ordering::Relaxed))
    }

    /// A request, until the guard is dropped.
    pub(super) fn asked(&self) -> Asked {
        self.0.under_way.fetch_add(1, Ordering::AcqRel);
        Asked(self.clone())
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
pub(super) struct Asked(Pulse);

impl Asked {
    /// Goes on until the whole answer is sent.
    pub(super) fn until_sent(self, response: Response) -> Response {
        response.map(|body| Body::new(Sending { body, _asked: self }))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Self(pulse) = self;
        pulse.0.is_answering.store(false, Ordering::Relaxed);
        pulse.0.idle_since.store(pulse.now(), Ordering::Relaxed);
        pulse.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A body that notes when it has arrived in full.
struct Arriving {
    body: Incoming,
    pulse: Pulse,
}

impl Arriving {
    fn arrived(&self) {
        self.pulse.0.is_answering.store(true, Ordering::Relaxed);
    }
}

impl HttpBody for Arriving {
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

struct Sending {
    body: Body,
    _asked: Asked,
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
pub(super) struct Felt<I> {
    pub(super) stream: I,
    pub(super) pulse: Pulse,
}

impl<I: AsyncRead + Unpin> AsyncRead for Felt<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.pulse.0.has_sent.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Felt<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.pulse.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.pulse.note_write(&written);
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
