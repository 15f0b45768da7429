//! The limit for what a server sends before the head of its final response is complete.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use hyper_util::client::legacy::connect::{Connected, Connection};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The number of bytes a server may send before its final response head is complete: interim responses included.
pub const HEAD_BYTES_MAX: usize = 256 << 10;

/// The value of [`HeadGate::left`] while a body is read.
const OPEN: usize = usize::MAX;

/// The gate of one connection. It is shut from the start of a request until its response head is there.
#[derive(Debug)]
pub(super) struct HeadGate {
    /// The number of bytes that may still be read.
    left: AtomicUsize,
    /// Counts the responses of this connection, so that a late end of one leaves the next alone.
    response: Mutex<u64>,
}

/// Keeps the gate open for as long as a body is read.
#[derive(Debug)]
pub(super) struct OpenGate {
    gate: Arc<HeadGate>,
    response: u64,
}

/// The server sent more than [`HEAD_BYTES_MAX`] without completing a response head.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("it sent more than {} KiB of headers and interim responses", HEAD_BYTES_MAX >> 10)]
pub(super) struct HeadTooLarge;

impl HeadGate {
    fn shut() -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(HEAD_BYTES_MAX), response: Mutex::default() })
    }

    /// Opens the gate: the response head is complete.
    pub(super) fn open(self: Arc<Self>) -> OpenGate {
        let mut response = self.response.lock();
        *response += 1;
        self.left.store(OPEN, Ordering::Relaxed);
        let number = *response;
        drop(response);
        OpenGate { gate: self, response: number }
    }

    fn count(&self, read: usize) {
        let subtract = |left: usize| (left != OPEN).then(|| left.saturating_sub(read));
        // An error means that the gate was opened in between.
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
    }
}

impl OpenGate {
    /// Leaves the gate open for the rest of the connection, which is no longer HTTP.
    pub(super) fn keep_open(mut self) {
        self.response = 0;
    }
}

impl Drop for OpenGate {
    fn drop(&mut self) {
        let response = self.gate.response.lock();
        if *response == self.response {
            self.gate.left.store(HEAD_BYTES_MAX, Ordering::Relaxed);
        }
    }
}

/// Anything that a connection can run over.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection whose reads pass the gate.
pub(super) struct GatedIo {
    io: Box<dyn Io>,
    is_proxied: bool,
    gate: Arc<HeadGate>,
}

impl GatedIo {
    pub(super) fn new(io: Box<dyn Io>, is_proxied: bool) -> Self {
        Self { io, is_proxied, gate: HeadGate::shut() }
    }
}

impl Connection for GatedIo {
    fn connected(&self) -> Connected {
        // Every response carries the gate of its connection among its extensions.
        Connected::new().proxy(self.is_proxied).extra(Arc::clone(&self.gate))
    }
}

impl AsyncRead for GatedIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.gate.left.load(Ordering::Relaxed) {
            OPEN => Pin::new(&mut self.io).poll_read(context, buffer),
            0 => Poll::Ready(Err(io::Error::other(HeadTooLarge))),
            _ => {
                let before = buffer.filled().len();
                ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
                self.gate.count(buffer.filled().len() - before);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncWrite for GatedIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, slices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_late_end_of_one_response_leaves_the_next_one_open() {
        let gate = HeadGate::shut();
        gate.count(1000);
        let first = Arc::clone(&gate).open();
        let second = Arc::clone(&gate).open();
        drop(first);
        assert_eq!(gate.left.load(Ordering::Relaxed), OPEN);
        drop(second);
        assert_eq!(gate.left.load(Ordering::Relaxed), HEAD_BYTES_MAX);
        Arc::clone(&gate).open().keep_open();
        assert_eq!(gate.left.load(Ordering::Relaxed), OPEN);
    }
}
