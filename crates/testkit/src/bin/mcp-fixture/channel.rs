//! Outgoing frames, and the other side of a conversation. Independent of the transport.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// Longest wait of a tool for the client's answer to a request.
const CLIENT_ANSWER_MAX: Duration = Duration::from_secs(30);

/// Something to put on the channel.
#[derive(Debug)]
pub enum Frame {
    /// A JSON-RPC message.
    Message(Value),
    /// Bytes as they are, whatever they are. A transport with frames makes one of them.
    Raw(Vec<u8>),
    /// Notified when everything before it has left.
    Flushed(oneshot::Sender<()>),
    /// Ends the connection (WebSocket).
    Close,
}

/// Takes frames. It never blocks: who sends much waits for [`Outbox::flushed`] now and then.
#[derive(Debug, Clone)]
pub struct Outbox(UnboundedSender<Frame>);

/// The frames of an [`Outbox`], for a transport.
pub type Frames = UnboundedReceiver<Frame>;

impl Outbox {
    /// An outbox and what comes out of it.
    pub fn new() -> (Self, Frames) {
        let (sender, frames) = unbounded_channel();
        (Self(sender), frames)
    }

    /// Sends a frame. Returns false if the receiver is gone.
    pub fn send(&self, frame: Frame) -> bool {
        self.0.send(frame).is_ok()
    }

    /// Sends a message.
    pub fn message(&self, message: Value) -> bool {
        self.send(Frame::Message(message))
    }

    /// Waits until everything sent so far has left, or the receiver is gone.
    pub async fn flushed(&self) -> bool {
        let (done, flushed) = oneshot::channel();
        self.send(Frame::Flushed(done)) && flushed.await.is_ok()
    }

    /// Returns true if both lead to the same place.
    pub fn same(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }

    /// Waits until the transport has let go of the other end.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// The client at the other end of one connection or session.
#[derive(Debug)]
pub struct Peer {
    /// For messages that belong to no request.
    pub general: Outbox,
    /// True if it sent `initialize`, and so expects the legacy era.
    pub initialized: AtomicBool,
    /// The index of the lowest log level it wants (legacy).
    pub log_level: AtomicU64,
    asked: AtomicU64,
    waiting: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    running: Mutex<HashMap<String, AbortHandle>>,
}

impl Peer {
    /// A client that just connected.
    pub fn new(general: Outbox) -> Self {
        Self {
            general,
            initialized: AtomicBool::new(false),
            log_level: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            waiting: Mutex::default(),
            running: Mutex::default(),
        }
    }

    /// Sends the client a request through `out`; its answer, `result` or `error` and all.
    pub async fn ask(&self, out: &Outbox, method: &str, params: Value) -> Value {
        let id = format!("fixture-{}", self.asked.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().insert(json!(id).to_string(), sender);
        out.message(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        match tokio::time::timeout(CLIENT_ANSWER_MAX, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => json!({ "error": { "message": "the client gave no answer" } }),
        }
    }

    /// Hands an answer of the client to the tool that waits for it; whether one did.
    pub fn answered(&self, answer: Value) -> bool {
        let waiting = self.waiting.lock().remove(&answer["id"].to_string());
        waiting.is_some_and(|waiting| waiting.send(answer).is_ok())
    }

    /// Remembers how to stop a request.
    pub fn started(&self, id: &Value, handle: AbortHandle) {
        self.running.lock().insert(id.to_string(), handle);
    }

    /// Forgets a request that has been answered.
    pub fn ended(&self, id: &Value) {
        self.running.lock().remove(&id.to_string());
    }

    /// Stops a request.
    pub fn cancel(&self, id: &Value) {
        if let Some(handle) = self.running.lock().remove(&id.to_string()) {
            handle.abort();
        }
    }
}

/// Notifies the task that waits for [`Frame::Flushed`]; it may have stopped waiting.
pub fn acknowledge(done: oneshot::Sender<()>) {
    let _ = done.send(());
}
