//! Messages as frames of a WebSocket: both sides may speak at any time over one connection.

mod counting_stream;
mod handshake;
mod link;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{Connector, Outgoing, Transport};
use crate::MessageRouter;
use crate::error::{Failure, Sent, TransportError};
use crate::handler::BoxFuture;
use crate::oauth::Authorizer;

/// Time limit for the server's close frame.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(2);

/// Opens a WebSocket. Has no `Debug`, because headers and URL may hold secrets.
pub struct WebSocketConnector {
    /// Where the server listens: `ws://` or `wss://`.
    pub url: Url,
    /// The same for error messages, without anything secret.
    pub shown: String,
    /// Headers of the handshake. Those that make it a WebSocket handshake cannot be replaced.
    pub headers: Vec<(String, String)>,
    /// Time limit for connecting, from the name lookup to the server's agreement.
    pub connect_timeout: Duration,
    /// Interval between pings.
    pub ping_every: Duration,
    /// Time limit for the pong.
    pub pong_wait: Duration,
    /// Where tokens come from.
    pub authorizer: Option<Arc<dyn Authorizer>>,
}

impl Connector for WebSocketConnector {
    fn open(
        &self,
        router: MessageRouter,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
        Box::pin(async move {
            let wait = self.connect_timeout;
            let stream = tokio::time::timeout(wait, handshake::upgrade(self)).await;
            let stream = stream.map_err(|_| {
                let message = format!("`{}` did not connect within {wait:?}", self.shown);
                TransportError::unsent(Failure::Timeout, message)
            })??;
            let transport: Arc<dyn Transport> =
                Arc::new(link::start(stream, &router, self.ping_every, self.pong_wait).await);
            Ok(transport)
        })
    }
}

/// An open WebSocket.
struct WebSocket {
    /// To the one task that writes. Capacity one: a second sender waits until the server reads. A queued message goes
    /// out whole, even if its sender gives up.
    outgoing: mpsc::Sender<Message>,
    router: MessageRouter,
    /// A close frame was sent, so the end of the connection is not a failure.
    is_closing: Arc<AtomicBool>,
    /// Nothing more comes from the server.
    read_to_end: CancellationToken,
}

impl Transport for WebSocket {
    fn deliver<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(async move {
            let sent = self.outgoing.send(Message::text(message.body.clone())).await;
            sent.map_err(|_| match self.router.ended() {
                Some(reason) => TransportError { sent: Sent::No, ..reason },
                None => TransportError::unsent(
                    Failure::Closed,
                    "the connection to the server is closed",
                ),
            })
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.is_closing.store(true, Ordering::Relaxed);
            let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
            let goodbye = async {
                if self.outgoing.send(Message::Close(Some(frame))).await.is_ok() {
                    self.read_to_end.cancelled().await;
                }
            };
            // A server that does not answer it is left without.
            let _ = tokio::time::timeout(CLOSE_WAIT_MAX, goodbye).await;
        })
    }
}
