//! The tasks of an open WebSocket: one reads, one writes, one sends keep-alives. Reading and writing never wait for
//! each other: with large messages both ways, both sides would wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, Error, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_util::sync::CancellationToken;

use super::WebSocket;
use super::counting_stream::CountingStream;
use crate::MessageRouter;
use crate::error::{Failure, TransportError};

/// The least room for what waits to be written.
const WRITE_BYTES_MIN: usize = 1024 * 1024;

/// Time that the reader has to find the reason why writing failed.
const LAST_WORDS_WAIT: Duration = Duration::from_secs(1);

/// Speaks WebSocket over a stream whose handshake is done.
pub(super) async fn start<S>(
    stream: S,
    router: &MessageRouter,
    ping_every: Duration,
    pong_wait: Duration,
) -> WebSocket
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let max = router.limits().message_bytes_max;
    let config = WebSocketConfig::default()
        .max_message_size(Some(max))
        .max_frame_size(Some(max))
        // A server that pings and never reads must not make our answers pile up.
        .max_write_buffer_size(max.saturating_mul(2).max(WRITE_BYTES_MIN));
    let stream = CountingStream::new(stream);
    let received_bytes = stream.bytes();
    let socket = WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await;
    let (sink, source) = socket.split();
    let (outgoing, queue) = mpsc::channel(1);
    let (is_closing, read_to_end) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
    router.spawn({
        // Also when the task is dropped.
        let guard = read_to_end.clone().drop_guard();
        let (router, is_closing) = (router.clone(), Arc::clone(&is_closing));
        async move {
            let reason = read(source, &router).await;
            drop(guard);
            if !is_closing.load(Ordering::Relaxed) {
                router.end(&reason);
            }
        }
    });
    router.spawn(write(sink, queue, router.clone()));
    router.spawn(ask_for_life(
        outgoing.clone(),
        received_bytes,
        ping_every,
        pong_wait,
        router.clone(),
    ));
    WebSocket { outgoing, router: router.clone(), is_closing, read_to_end }
}

/// Hands over messages until there are no more; returns why.
async fn read<S>(
    mut source: SplitStream<WebSocketStream<S>>,
    router: &MessageRouter,
) -> TransportError
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match source.next().await {
            Some(Ok(Message::Text(text))) => drop(router.accept(None, Bytes::from(text)).await),
            Some(Ok(Message::Binary(bytes))) => drop(router.accept(None, bytes).await),
            // Pings are answered with the next read; any frame counts as activity.
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(frame))) => {
                // Our half of the goodbye goes out with the next read, which need not wait.
                let _ = source.next().now_or_never();
                return goodbye(frame.as_ref());
            }
            Some(Err(error)) => return broken(&error, router),
            None => return goodbye(None),
        }
    }
}

async fn write<S>(
    mut sink: SplitSink<WebSocketStream<S>, Message>,
    mut queue: mpsc::Receiver<Message>,
    router: MessageRouter,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = queue.recv().await {
        let Err(error) = sink.send(message).await else { continue };
        drop(queue);
        // The server's last frames are still to be read, and give a better reason.
        let _ = tokio::time::timeout(LAST_WORDS_WAIT, router.wait_ended()).await;
        router.end(&broken(&error, &router));
        return;
    }
}

/// Pings the server now and then; ends the connection when nothing at all comes back.
async fn ask_for_life(
    outgoing: mpsc::Sender<Message>,
    received_bytes: Arc<AtomicU64>,
    ping_every: Duration,
    pong_wait: Duration,
    router: MessageRouter,
) {
    loop {
        tokio::time::sleep(ping_every).await;
        let before = received_bytes.load(Ordering::Relaxed);
        let limit = Instant::now() + pong_wait;
        // A server that does not even read keeps the ping from leaving; its time runs all the same.
        let ping = outgoing.send(Message::Ping(Bytes::new()));
        let _ = tokio::time::timeout_at(limit, ping).await;
        tokio::time::sleep_until(limit).await;
        if received_bytes.load(Ordering::Relaxed) == before {
            return router
                .end(&closed(format!("the server answered no ping within {pong_wait:?}")));
        }
    }
}

fn goodbye(frame: Option<&CloseFrame>) -> TransportError {
    closed(match frame {
        Some(CloseFrame { code, reason }) if reason.is_empty() => {
            format!("the server closed the connection (code {code})")
        }
        Some(CloseFrame { code, reason }) => {
            format!("the server closed the connection (code {code}): {reason}")
        }
        None => "the server closed the connection".to_owned(),
    })
}

fn broken(error: &Error, router: &MessageRouter) -> TransportError {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => goodbye(None),
        Error::Protocol(
            ProtocolError::ResetWithoutClosingHandshake | ProtocolError::SendAfterClosing,
        ) => closed("the server closed the connection without a goodbye".to_owned()),
        Error::Io(error) => closed(format!("the connection to the server was lost: {error}")),
        Error::Capacity(CapacityError::MessageTooLong { .. }) => router.too_long(),
        Error::Utf8(_) => protocol("the server sent text that is not UTF-8".to_owned()),
        error => protocol(format!("the server breaks the WebSocket protocol: {error}")),
    }
}

fn closed(message: String) -> TransportError {
    TransportError::after_sending(Failure::Closed, message)
}

fn protocol(message: String) -> TransportError {
    TransportError::after_sending(Failure::Protocol, message)
}
