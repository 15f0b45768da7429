//! One connection: requests out, answers in, each request with its own limits.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::budget::AnswerBytes;
use crate::error::{Failure, RequestError, TransportError};
use crate::handler::Handler;
use crate::inbox::{Inbox, ProgressFn, Waiter};
use crate::trace::Trace;
use crate::transport::{Kind, Outgoing, Transport};
use crate::wire;

/// How long it may take to tell a server that nobody waits any more.
const TELL_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long a connection that is being closed waits for cancellations that are on their way.
const LAST_WORDS_MAX: Duration = Duration::from_millis(250);

/// A connection. Answers find their requests whatever the order; nothing waits for ever.
#[derive(Clone)]
pub struct Session(Arc<Connection>);

/// Dropped with the last session, it ends the connection and with it every task that serves it.
struct Connection {
    transport: Arc<dyn Transport>,
    inbox: Inbox,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let reason = TransportError::unsent(Failure::Closed, "nobody uses the connection");
        self.inbox.end_unheard(&reason);
    }
}

/// The limits of one request.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// How long the server may be silent. Progress starts it anew. None: the caller sets the limit
    /// by dropping the future.
    pub timeout: Option<Duration>,
    /// How long the request may take, progress or not.
    pub timeout_max: Option<Duration>,
    /// Hears progress.
    pub progress: Option<ProgressFn>,
    /// What the method is about: a tool's or prompt's name, a resource's URI.
    pub name: Option<String>,
    /// Arguments that travel as headers too.
    pub mirrored: Vec<(String, String)>,
    /// Answers and hears what the server says in the exchange of this very request, where the transport
    /// has such a thing, in place of the connection's handler.
    pub handler: Option<Arc<dyn Handler>>,
    /// The trace it belongs to, for transports that have headers. `params` hold it too.
    pub trace: Option<Trace>,
    /// Holds the memory of a long answer.
    pub answer_bytes: Option<AnswerBytes>,
}

impl Session {
    /// A session over a transport that delivers to `inbox`.
    pub fn new(transport: Arc<dyn Transport>, inbox: Inbox) -> Self {
        inbox.answer_through(&transport);
        Self(Arc::new(Connection { transport, inbox }))
    }

    /// What carries it.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.0.transport
    }

    /// Where the server's messages go.
    pub fn inbox(&self) -> &Inbox {
        &self.0.inbox
    }

    /// An id for a request that is about to be sent; also its progress token.
    pub fn next_id(&self) -> u64 {
        self.inbox().core().next_id()
    }

    /// Sends a request and waits for its answer. `params` is JSON text.
    ///
    /// Dropping the future tells the server that nobody waits any more.
    pub async fn request(
        &self,
        id: u64,
        method: &str,
        params: &str,
        options: RequestOptions,
    ) -> Result<Box<RawValue>, RequestError> {
        let RequestOptions {
            timeout,
            timeout_max,
            progress,
            name,
            mirrored,
            handler,
            trace,
            answer_bytes,
        } = options;
        let (answer, mut answered) = oneshot::channel();
        let waiter = Waiter { answer, progress, handler, answer_bytes, last_sign: Instant::now() };
        self.inbox().core().wait(id, waiter)?;
        let mut abandon = Abandon { session: self, id, method, is_sent: false };
        let message = Outgoing {
            kind: Kind::Request(id),
            method: method.to_owned(),
            name,
            mirrored,
            trace,
            body: wire::request(id, method, params),
        };
        abandon.is_sent = true;
        let exchange = async {
            let delivery = self.transport().deliver(&message);
            tokio::select! {
                biased;
                answer = &mut answered => return answer,
                delivered = delivery => if let Err(error) = delivered {
                    self.inbox().fail(id, error);
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
            mirrored: Vec::new(),
            trace: None,
            body: wire::notification(method, params),
        };
        self.transport().deliver(&message).await
    }

    /// Ends the connection: says goodbye, fails what waits, waits for its tasks.
    pub async fn close(&self, reason: TransportError) {
        self.inbox().closing();
        // Whoever is told last that nobody waits shall hear it, unless it does not listen.
        self.inbox().tellings().close();
        drop(tokio::time::timeout(LAST_WORDS_MAX, self.inbox().tellings().wait()).await);
        self.transport().close().await;
        self.inbox().end(&reason);
        self.inbox().tasks().close();
        self.inbox().tasks().wait().await;
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
            let seen = self.inbox().core().waiter(id).map(|waiter| waiter.last_sign);
            last_sign = seen.filter(|seen| *seen > last_sign).ok_or(idle)?;
        }
    }
}

/// Tidies up after a request, however it ends: nobody waits in the core, and a server that still
/// works on it hears that it need not.
struct Abandon<'a> {
    session: &'a Session,
    id: u64,
    method: &'a str,
    is_sent: bool,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        let was_waiting = self.session.inbox().core().abandon(self.id).is_some();
        // The handshake must not be cancelled.
        let must_tell = was_waiting
            && self.is_sent
            && self.method != "initialize"
            && !self.session.transport().cancels_by_closing();
        if !must_tell || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (session, id) = (self.session.clone(), self.id);
        let telling = self.session.inbox().tellings().token();
        self.session.inbox().spawn(async move {
            let _telling = telling;
            let params = format!(r#"{{"requestId":{id},"reason":"nobody waits any more"}}"#);
            let telling = session.notify("notifications/cancelled", &params);
            // A server that takes no messages keeps nothing of ours alive.
            let told = tokio::time::timeout(TELL_WAIT_MAX, telling).await;
            if !matches!(told, Ok(Ok(()))) {
                session.inbox().trouble("a cancellation did not reach the server");
            }
        });
    }
}
