//! Where transports put what arrives. Each message finds the one it is for, at once and in order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use haft_bounds::heavy;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::budget::{AnswerBytes, ByteBudget, Charge, FREE_BYTES, over_budget};
use crate::core::{Core, Counts, Ignored, Step};
use crate::delivery::{Kind, Outgoing, Transport};
use crate::error::{INTERNAL_ERROR, RequestError, RpcError, Sent, TransportError};
use crate::handler::{Anomaly, Handler, ServerRequest};
use crate::limits::Limits;
use crate::wire::{self, Parsed};

/// Largest number of answers to the server in flight. A server that asks and does not read would otherwise fill the
/// memory.
const REPLIES_MAX: usize = 1024;

/// Receives the progress of one request: the parameters of the notification, in order.
pub type ProgressFn = Arc<dyn Fn(&RawValue) + Send + Sync>;

/// The receiving half of a connection. Clones share it.
#[derive(Clone)]
pub struct MessageRouter(Arc<Shared>);

pub(crate) struct Shared {
    core: Mutex<Core<Waiter>>,
    handler: Arc<dyn Handler>,
    limits: Limits,
    /// The memory for what the server sends.
    budget: Option<Arc<dyn ByteBudget>>,
    /// The way back, for answers to the server's requests.
    transport: OnceLock<Weak<dyn Transport>>,
    /// Requests of the server that are being answered, by the server's id.
    serving: Mutex<HashMap<Box<str>, CancellationToken>>,
    /// Room for answers to the server that are on their way.
    replies: Arc<Semaphore>,
    pub(crate) tasks: TaskTracker,
    /// Cancellations on their way to the server.
    tellings: TaskTracker,
    /// The connection is being closed: an incomplete exchange is not an anomaly any more.
    is_closing: AtomicBool,
    ended: CancellationToken,
}

/// One request that waits for its answer.
pub(crate) struct Waiter {
    pub(crate) answer: oneshot::Sender<Result<Box<RawValue>, RequestError>>,
    pub(crate) progress: Option<ProgressFn>,
    pub(crate) handler: Option<Arc<dyn Handler>>,
    pub(crate) answer_bytes: Option<AnswerBytes>,
    pub(crate) last_sign: Instant,
}

impl MessageRouter {
    /// The router of a new connection.
    pub fn new(handler: Arc<dyn Handler>, limits: Limits) -> Self {
        Self::with_budget(handler, limits, None)
    }

    /// The same, with the memory for what the server sends.
    pub fn with_budget(
        handler: Arc<dyn Handler>,
        limits: Limits,
        budget: Option<Arc<dyn ByteBudget>>,
    ) -> Self {
        Self(Arc::new(Shared {
            core: Mutex::new(Core::new(limits)),
            handler,
            limits,
            budget,
            transport: OnceLock::new(),
            serving: Mutex::default(),
            replies: Arc::new(Semaphore::new(REPLIES_MAX)),
            tasks: TaskTracker::new(),
            tellings: TaskTracker::new(),
            is_closing: AtomicBool::new(false),
            ended: CancellationToken::new(),
        }))
    }

    /// The limits a transport has to keep while it reads.
    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    /// The memory of a message that is about to be read.
    pub(crate) fn charge(&self) -> Charge {
        Charge::new(self.0.budget.clone())
    }

    /// Fails the request that a message answers of which only the beginning was read. An unidentified one ends by its
    /// own time limit.
    pub(crate) fn refuse_unread(&self, beginning: &[u8], reason: TransportError) {
        self.report_anomaly(&reason.message);
        if let Some(id) = wire::salvage_id(beginning) {
            self.fail(id, reason);
        }
    }

    /// Takes in one message, or a batch of them, and hands the bytes back. Large ones are read on a blocking thread.
    ///
    /// What came back in the exchange of one request concerns that request and no other where it cannot be read.
    pub async fn accept<B: AsRef<[u8]> + Send + 'static>(
        &self,
        exchange: Option<u64>,
        bytes: B,
    ) -> B {
        let router = self.clone();
        heavy::run(bytes.as_ref().len(), move || {
            router.receive_in_exchange(exchange, bytes.as_ref());
            bytes
        })
        .await
    }

    /// Takes in one small message, or a batch of them, at once.
    pub fn receive(&self, bytes: &[u8]) {
        self.receive_in_exchange(None, bytes);
    }

    fn receive_in_exchange(&self, exchange: Option<u64>, bytes: &[u8]) {
        if bytes.trim_ascii_start().first() == Some(&b'[')
            // The list itself is bounded too, and not only each message in it.
            && bytes.len() <= self.0.limits.message_bytes_max
            && self.0.limits.budget().check(bytes).is_ok()
            && let Ok(batch) = serde_json::from_slice::<Vec<&RawValue>>(bytes)
            // An empty one is noise, and has to be counted as such.
            && !batch.is_empty()
        {
            for message in batch {
                self.receive_one(exchange, message.get().as_bytes());
            }
            return;
        }
        self.receive_one(exchange, bytes);
    }

    fn receive_one(&self, exchange: Option<u64>, bytes: &[u8]) {
        if self.has_ended() {
            return;
        }
        // Outside the lock: a large message takes its time, and requests need the lock too.
        let message = Parsed::read(bytes, &self.0.limits);
        let step = {
            let mut core = self.core();
            if core.ended().is_some() {
                return;
            }
            core.take(message, exchange, Instant::now().into_std())
        };
        match step {
            Step::Answer(waiter, outcome) => {
                let outcome = outcome.and_then(|result| self.kept(result, &waiter));
                // The receiver may have given up in the meantime.
                let _ = waiter.answer.send(outcome);
            }
            Step::Notification { method, params } => {
                self.notification(&self.handler_in(exchange), &method, params);
            }
            Step::Request { id, method, params } => {
                self.serve(self.handler_in(exchange), id, &method, params);
            }
            Step::Broken(waiters, why) => {
                self.report_anomaly(&why.to_string());
                for waiter in waiters {
                    let _ = waiter.answer.send(Err(why.clone()));
                }
            }
            Step::Ignored(Ignored::Noise) => self.0.handler.anomaly(Anomaly::Stray(bytes)),
            Step::Foreign(id) => {
                self.0.handler.anomaly(Anomaly::ForeignId(id.get()));
                self.report_anomaly("the server answered an unknown request");
            }
            Step::Ignored(Ignored::Unmatched) => {
                self.report_anomaly("the server answered a request that is not pending");
            }
            Step::End(reason) => self.end(&reason),
        }
    }

    /// A copy of an answer to keep, with its memory held for the request.
    fn kept(&self, result: &RawValue, waiter: &Waiter) -> Result<Box<RawValue>, RequestError> {
        let bytes = result.get().len();
        if let (Some(budget), Some(answer)) = (&self.0.budget, &waiter.answer_bytes)
            && bytes > FREE_BYTES
        {
            answer.hold(budget.reserve(bytes).map_err(|why| over_budget(&why))?);
        }
        Ok(result.to_owned())
    }

    /// The connection ended, or has to: every waiter receives the reason.
    pub fn end(&self, reason: &TransportError) {
        if self.end_unreported(reason) {
            self.0.handler.ended(reason);
        }
    }

    /// The same for a connection that was given up before its first use: the handler, which may serve another one
    /// already, is not notified. Returns true if it had not ended before.
    pub(crate) fn end_unreported(&self, reason: &TransportError) -> bool {
        let (is_first, waiters) = {
            let mut core = self.core();
            (core.ended().is_none(), core.end(reason.clone()))
        };
        // Before the waiters are notified: a caller that fails here and retries must not find it alive.
        self.0.ended.cancel();
        // Regardless of the reason: a waiter here has sent its request, and the server may have it.
        let lost = TransportError { sent: Sent::Maybe, ..reason.clone() };
        for waiter in waiters {
            let _ = waiter.answer.send(Err(lost.clone().into()));
        }
        is_first
    }

    /// The exchange of one request failed, and only that.
    pub fn fail(&self, id: u64, reason: impl Into<RequestError>) {
        let waiter = self.core().abandon(id);
        if let Some(waiter) = waiter {
            let _ = waiter.answer.send(Err(reason.into()));
        }
    }

    /// The error for a message that is longer than allowed, for a transport that stops reading.
    pub fn too_long(&self) -> TransportError {
        self.core().too_long()
    }

    /// The error for a stream with too many bytes outside messages.
    pub(crate) fn too_noisy(&self) -> TransportError {
        self.core().too_noisy()
    }

    /// Returns true if the answer to `id` is still to come.
    pub fn awaits(&self, id: u64) -> bool {
        self.core().waiter(id).is_some()
    }

    /// Why the connection ended, if it has.
    pub fn ended(&self) -> Option<TransportError> {
        self.core().ended().cloned()
    }

    /// Returns true if the connection has ended.
    pub fn has_ended(&self) -> bool {
        self.0.ended.is_cancelled()
    }

    /// Waits until the connection ends. Transports stop their own tasks by it.
    pub async fn wait_ended(&self) {
        self.0.ended.cancelled().await;
    }

    /// Counters of ignored input.
    pub fn counts(&self) -> Counts {
        self.core().counts()
    }

    /// Runs a task that belongs to the connection; it ends when the connection does.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let ended = self.0.ended.clone();
        self.0.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = ended.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// The connection is about to be closed by us.
    pub(crate) fn closing(&self) {
        self.0.is_closing.store(true, Ordering::Relaxed);
    }

    /// Reports a problem that fails no request.
    pub(crate) fn report_anomaly(&self, what: &str) {
        if !self.0.is_closing.load(Ordering::Relaxed) {
            self.0.handler.report_anomaly(what);
        }
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core<Waiter>> {
        self.0.core.lock()
    }

    pub(crate) fn handler(&self) -> &Arc<dyn Handler> {
        &self.0.handler
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    pub(crate) fn tellings(&self) -> &TaskTracker {
        &self.0.tellings
    }

    /// Sets the transport for answers to the server's requests.
    pub(crate) fn answer_through(&self, transport: &Arc<dyn Transport>) {
        let _ = self.0.transport.set(Arc::downgrade(transport));
    }

    /// The handler of messages in the exchange of a request.
    fn handler_in(&self, exchange: Option<u64>) -> Arc<dyn Handler> {
        let core = exchange.map(|id| (id, self.core()));
        let own = core.and_then(|(id, core)| core.waiter(id)?.handler.clone());
        own.unwrap_or_else(|| Arc::clone(&self.0.handler))
    }

    fn notification(&self, handler: &Arc<dyn Handler>, method: &str, params: Option<&RawValue>) {
        match (method, params) {
            ("notifications/progress", Some(params)) => self.progress(params),
            ("notifications/cancelled", Some(params)) => self.cancelled(params),
            _ => {}
        }
        handler.notification(method, params);
    }

    /// Restarts the time limit of one request, up to its absolute limit.
    fn progress(&self, params: &RawValue) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Progress {
            progress_token: u64,
        }
        let Ok(Progress { progress_token }) = serde_json::from_str(params.get()) else { return };
        let progress = self.core().waiter_mut(progress_token).and_then(|waiter| {
            waiter.last_sign = Instant::now();
            waiter.progress.clone()
        });
        if let Some(progress) = progress {
            progress(params);
        }
    }

    /// The server does not want its answer any more.
    fn cancelled(&self, params: &RawValue) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        if let Ok(cancelled) = serde_json::from_str::<Cancelled<'_>>(params.get())
            && let Some(token) = self.serving().remove(cancelled.request_id.get())
        {
            token.cancel();
        }
    }

    /// Answers a request of the server in a task of its own, so that nothing else waits for it.
    fn serve(
        &self,
        handler: Arc<dyn Handler>,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) {
        if method == "ping" {
            self.reply(wire::empty_response(id));
            return;
        }
        let token = CancellationToken::new();
        {
            let mut serving = self.serving();
            if serving.len() >= self.0.limits.server_requests_max {
                drop(serving);
                let busy = RpcError::new(INTERNAL_ERROR, "too many requests are in flight");
                self.reply(wire::error_response(id, &busy));
                return;
            }
            serving.insert(id.get().into(), token.clone());
        }
        let request = ServerRequest {
            name: None,
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
        };
        let (router, id) = (self.clone(), id.to_owned());
        self.spawn(async move {
            let answer = tokio::select! {
                biased;
                () = token.cancelled() => return,
                answer = handler.request(request) => answer,
            };
            router.serving().remove(id.get());
            router.reply(match answer {
                Ok(result) => wire::response(&id, &result),
                Err(error) => wire::error_response(&id, &error),
            });
        });
    }

    fn serving(&self) -> MutexGuard<'_, HashMap<Box<str>, CancellationToken>> {
        self.0.serving.lock()
    }

    fn reply(&self, body: String) {
        let Some(transport) = self.0.transport.get().and_then(Weak::upgrade) else { return };
        let Ok(on_its_way) = Arc::clone(&self.0.replies).try_acquire_owned() else {
            self.report_anomaly("the server asks, and does not read the answers");
            return;
        };
        let message = Outgoing {
            kind: Kind::Response,
            method: String::new(),
            name: None,
            param_headers: Vec::new(),
            trace: None,
            body,
        };
        let router = self.clone();
        self.spawn(async move {
            let _on_its_way = on_its_way;
            if let Err(error) = transport.deliver(&message).await {
                router.report_anomaly(&format!("an answer did not reach the server: {error}"));
            }
        });
    }
}
