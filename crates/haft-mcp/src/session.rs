//! One connection: requests out, answers in, each request with its own limits.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::budget::AnswerBytes;
use crate::error::{Failure, RequestError, TransportError};
use crate::handler::Handler;
use crate::message_router::{MessageRouter, ProgressFn, Waiter};
use crate::trace::Trace;
use crate::transport::{Kind, Outgoing, Transport};
use crate::wire;

/// Time limit for sending a cancellation.
const TELL_WAIT_MAX: Duration = Duration::from_secs(5);
/// Time that a closing connection waits for cancellations in flight.
const LAST_WORDS_MAX: Duration = Duration::from_millis(250);

/// A connection. Answers find their requests whatever the order; nothing waits for ever.
#[derive(Clone)]
pub struct Session(Arc<Connection>);

/// Dropped with the last session, it ends the connection and with it every task that serves it.
struct Connection {
    transport: Arc<dyn Transport>,
    router: MessageRouter,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let reason = TransportError::unsent(Failure::Closed, "the connection is not used");
        self.router.end_unreported(&reason);
    }
}

/// The limits of one request.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// Time limit without progress. Progress restarts it. None: the caller sets the limit by dropping the future.
    pub timeout: Option<Duration>,
    /// Time limit of the request, progress or not.
    pub timeout_max: Option<Duration>,
    /// Receives progress.
    pub progress: Option<ProgressFn>,
    /// The subject of the method: a tool's or prompt's name, a resource's URI.
    pub name: Option<String>,
    /// Arguments that travel as headers too.
    pub param_headers: Vec<(String, String)>,
    /// Handles the server's messages in the exchange of this very request, if the transport has one, in place of the
    /// connection's handler.
    pub handler: Option<Arc<dyn Handler>>,
    /// The trace it belongs to, for transports that have headers. `params` hold it too.
    pub trace: Option<Trace>,
    /// Holds the memory of a long answer.
    pub answer_bytes: Option<AnswerBytes>,
}

impl Session {
    /// A session over a transport that delivers to `router`.
    pub fn new(transport: Arc<dyn Transport>, router: MessageRouter) -> Self {
        router.answer_through(&transport);
        Self(Arc::new(Connection { transport, router }))
    }

    /// The transport.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.0.transport
    }

    /// Where the server's messages go.
    pub fn router(&self) -> &MessageRouter {
        &self.0.router
    }

    /// An id for a request that is about to be sent; also its progress token.
    pub fn next_id(&self) -> u64 {
        self.router().core().next_id()
    }

    /// Sends a request and waits for its answer. `params` is JSON text.
    ///
    /// Dropping the future sends a cancellation to the server.
    pub async fn request(
        &self,
        id: u64,
        method: &str,
        params: &str,
        options: RequestOptions,
    ) -> Result<Box<RawValue>, RequestError> {
        self.request_message(id, method, wire::request(id, method, params), options).await
    }

    /// Sends a whole message that is the request `id` and waits for its answer.
    pub(crate) async fn request_message(
        &self,
        id: u64,
        method: &str,
        body: String,
        options: RequestOptions,
    ) -> Result<Box<RawValue>, RequestError> {
        let RequestOptions {
            timeout,
            timeout_max,
            progress,
            name,
            param_headers,
            handler,
            trace,
            answer_bytes,
        } = options;
        let (answer, mut answered) = oneshot::channel();
        let waiter = Waiter { answer, progress, handler, answer_bytes, last_sign: Instant::now() };
        self.router().core().wait(id, waiter)?;
        let mut abandon = Abandon { session: self, id, method, is_sent: false };
        let message = Outgoing {
            kind: Kind::Request(id),
            method: method.to_owned(),
            name,
            param_headers,
            trace,
            body,
        };
        abandon.is_sent = true;
        let exchange = async {
            let delivery = self.transport().deliver(&message);
            tokio::select! {
                biased;
                answer = &mut answered => return answer,
                delivered = delivery => if let Err(error) = delivered {
                    self.router().fail(id, error);
                },
            }
            answered.await
        };
        let answer = match self.limited(id, timeout, timeout_max, exchange).await {
            Ok(answer) => answer,
            Err(after) => return Err(RequestError::Timeout { method: method.to_owned(), after }),
        };
        // The sender lives in the core until it is used or the connection ends.
        answer.unwrap_or_else(|_| Err(RequestError::protocol("the answer was lost")))
    }

    /// Sends a notification. `params` is JSON text.
    pub async fn notify(&self, method: &str, params: &str) -> Result<(), TransportError> {
        let message = Outgoing {
            kind: Kind::Notification,
            method: method.to_owned(),
            name: None,
            param_headers: Vec::new(),
            trace: None,
            body: wire::notification(method, params),
        };
        self.transport().deliver(&message).await
    }

    /// Ends the connection: sends the last messages, fails pending requests, waits for its tasks.
    pub async fn close(&self, reason: TransportError) {
        self.router().closing();
        // The last cancellation shall reach the server, unless it does not read.
        self.router().tellings().close();
        drop(tokio::time::timeout(LAST_WORDS_MAX, self.router().tellings().wait()).await);
        self.transport().close().await;
        self.router().end(&reason);
        self.router().tasks().close();
        self.router().tasks().wait().await;
    }

    /// Runs `exchange` until the server was silent too long, or took too long altogether.
    async fn limited<T>(
        &self,
        id: u64,
        timeout: Option<Duration>,
        timeout_max: Option<Duration>,
        exchange: impl Future<Output = T>,
    ) -> Result<T, Duration> {
        let (Some(idle), started) = (timeout, Instant::now()) else {
            return match timeout_max {
                Some(max) => tokio::time::timeout(max, exchange).await.map_err(|_| max),
                None => Ok(exchange.await),
            };
        };
        let mut exchange = std::pin::pin!(exchange);
        let mut last_sign = started;
        loop {
            let limit =
                timeout_max.map_or(last_sign + idle, |max| (last_sign + idle).min(started + max));
            if let Ok(answer) = tokio::time::timeout_at(limit, &mut exchange).await {
                return Ok(answer);
            }
            if let Some(max) = timeout_max.filter(|max| started.elapsed() >= *max) {
                return Err(max);
            }
            let seen = self.router().core().waiter(id).map(|waiter| waiter.last_sign);
            last_sign = seen.filter(|seen| *seen > last_sign).ok_or(idle)?;
        }
    }
}

/// Cleans up after a request, however it ends: the core drops its waiter, and a server that still works on it
/// receives a cancellation.
struct Abandon<'a> {
    session: &'a Session,
    id: u64,
    method: &'a str,
    is_sent: bool,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        let was_waiting = self.session.router().core().abandon(self.id).is_some();
        // The handshake must not be cancelled.
        let must_tell = was_waiting
            && self.is_sent
            && self.method != "initialize"
            && !self.session.transport().cancels_by_closing();
        if !must_tell || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (session, id) = (self.session.clone(), self.id);
        let telling = self.session.router().tellings().token();
        self.session.router().spawn(async move {
            let _telling = telling;
            let params = format!(r#"{{"requestId":{id},"reason":"the request was abandoned"}}"#);
            let telling = session.notify("notifications/cancelled", &params);
            // A server that takes no messages keeps nothing of ours alive.
            let told = tokio::time::timeout(TELL_WAIT_MAX, telling).await;
            if !matches!(told, Ok(Ok(()))) {
                session.router().report_anomaly("a cancellation did not reach the server");
            }
        });
    }
}
