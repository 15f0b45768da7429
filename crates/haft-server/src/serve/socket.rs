//! A client's socket, and the watch that notices when the client closes its side.
//!
//! hyper reads nothing while a response is pending and bytes of the next request are buffered, so it misses a
//! client that left. The kernel reports the close beside unread data, and the watch waits for that report: it
//! reads nothing itself. The report cannot arrive behind more data than the kernel takes in, so a client may send
//! only a little behind a request that is still being answered.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt as _;
use rustix::io::ioctl_fionread;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::sleep;

use super::activity::ConnectionActivity;

/// Interest in the close alone: `READABLE` would wake up for data as well.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOSE: Interest = Interest::PRIORITY;
/// Elsewhere the system reports a close only together with data; a connection that was reset is noticed.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOSE: Interest = Interest::ERROR;

/// Bytes that may wait behind a request that is being answered. Far less than the kernel takes in.
const PIPELINED_BYTES_MAX: u64 = 16 * 1024;
/// Interval between counts, while there are any.
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// A socket for reading and writing.
pub(super) struct Socket(OwnedWriteHalf);

/// The watch over the same socket. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct CloseWatch(Arc<OwnedReadHalf>);

impl Socket {
    pub(super) fn new(stream: TcpStream) -> (Self, CloseWatch) {
        let (watch, socket) = stream.into_split();
        (Self(socket), CloseWatch(Arc::new(watch)))
    }
}

impl CloseWatch {
    /// Waits until the client has closed its side, the connection is broken, or the client sends too much behind
    /// a request that is being answered.
    pub(super) async fn left(&self, activity: &ConnectionActivity) {
        tokio::select! {
            () = self.closed() => {}
            () = self.flooded(activity) => {}
        }
    }

    /// Returns true if the client has closed its side or the connection is broken.
    pub(super) fn is_closed(&self) -> bool {
        self.closed().now_or_never().is_some()
    }

    async fn closed(&self) {
        // An error means that the connection cannot be watched any more, which is its end too.
        let _ = self.0.ready(CLOSE).await;
    }

    async fn flooded(&self, activity: &ConnectionActivity) {
        // Ready as long as the last read did not take everything: rarely, and never for long, unless a client
        // sends ahead.
        while self.0.ready(Interest::READABLE).await.is_ok() {
            sleep(COUNT_EVERY).await;
            let stream: &TcpStream = (*self.0).as_ref();
            let is_too_much = match ioctl_fionread(stream) {
                Ok(bytes) => bytes > PIPELINED_BYTES_MAX,
                // What cannot be counted has no limit.
                Err(_) => true,
            };
            if is_too_much && activity.is_answering() {
                tracing::debug!("closed a connection: the client sends too much ahead");
                return;
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream: &TcpStream = self.0.as_ref();
        loop {
            ready!(stream.poll_read_ready(cx))?;
            match stream.try_read_buf(buf) {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
