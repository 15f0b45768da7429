//! The state one server process has: its lists, its clients, its counts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::channel::{Outbox, Peer};
use crate::facts::Facts;
use crate::lists::{self, ToolEntry};
use crate::scenario::Scenario;
use crate::tasks::Task;

/// The `_meta` key that ties a notification to its subscription.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// One server process.
#[derive(Debug)]
pub struct Server {
    /// The behaviour that the test wants.
    pub scenario: Scenario,
    /// Recorded facts.
    pub facts: Facts,
    /// Where its tasks run.
    pub tasks: TaskTracker,
    /// Its tools now.
    pub tools: Mutex<Vec<ToolEntry>>,
    /// Its prompts now.
    pub prompts: Mutex<Vec<Map<String, Value>>>,
    /// Requests of the modern era that wait for input: `requestState` and the tool it belongs to.
    pub states: Mutex<HashMap<String, String>>,
    /// Calls that became tasks.
    pub called_tasks: Mutex<Vec<Task>>,
    /// Counts whatever needs a number of its own.
    pub serial: AtomicU64,
    /// Calls so far.
    pub calls: AtomicU64,
    /// A call has begun that `late` is to disturb.
    pub overtaken: Notify,
    /// `late` has sent everything.
    pub late_sent: Notify,
    in_flight: AtomicU64,
    in_flight_max: AtomicU64,
    peers: Mutex<Vec<Weak<Peer>>>,
    subscriptions: Mutex<Vec<Subscription>>,
}

/// An open `subscriptions/listen`.
#[derive(Debug)]
pub struct Subscription {
    /// The id of its request.
    pub id: Value,
    /// The notifications that the client wants.
    pub filter: Value,
    /// The destination of the notifications.
    pub out: Outbox,
}

/// A call in flight, for the count.
#[derive(Debug)]
pub struct InFlight<'a>(&'a Server);

impl Server {
    /// A server as the scenario wants it.
    pub fn new(scenario: Scenario, facts: Facts) -> Self {
        Self {
            tools: Mutex::new(lists::tools(&scenario)),
            prompts: Mutex::new(lists::prompts(&scenario)),
            scenario,
            facts,
            tasks: TaskTracker::new(),
            states: Mutex::default(),
            called_tasks: Mutex::default(),
            serial: AtomicU64::new(1),
            calls: AtomicU64::new(0),
            overtaken: Notify::new(),
            late_sent: Notify::new(),
            in_flight: AtomicU64::new(0),
            in_flight_max: AtomicU64::new(0),
            peers: Mutex::default(),
            subscriptions: Mutex::default(),
        }
    }

    /// A client that just connected.
    pub fn connect(&self, general: Outbox) -> Arc<Peer> {
        let peer = Arc::new(Peer::new(general));
        let mut peers = self.peers.lock();
        peers.retain(|peer| peer.strong_count() > 0);
        peers.push(Arc::downgrade(&peer));
        peer
    }

    /// Counts a call until the guard is dropped.
    pub fn call_starts(&self) -> InFlight<'_> {
        let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.in_flight_max.fetch_max(now, Ordering::SeqCst);
        InFlight(self)
    }

    /// The facts recorded so far.
    pub fn stats(&self) -> Value {
        self.facts.stats(self.in_flight_max.load(Ordering::SeqCst))
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::SeqCst)
    }

    /// Acknowledges a subscription and keeps it.
    pub fn subscribe(&self, subscription: Subscription) {
        let meta = json!({ SUBSCRIPTION_ID: subscription.id });
        let params = json!({ "_meta": meta, "notifications": subscription.filter });
        let method = "notifications/subscriptions/acknowledged";
        // Under the lock, so that no notification overtakes the acknowledgement.
        let mut subscriptions = self.subscriptions.lock();
        subscription.out.message(notification(method, params));
        subscriptions.push(subscription);
    }

    /// Ends a subscription. Another client may have used the same id.
    pub fn unsubscribe(&self, id: &Value, out: &Outbox) {
        self.subscriptions.lock().retain(|other| other.id != *id || !other.out.same(out));
    }

    /// Notifies every legacy client, and every subscription that wants it.
    pub fn announce(&self, method: &str, params: &Value) {
        for peer in self.peers.lock().iter().filter_map(Weak::upgrade) {
            if peer.initialized.load(Ordering::SeqCst) {
                peer.general.message(notification(method, params.clone()));
            }
        }
        self.subscriptions.lock().retain(|subscription| {
            if !wanted(&subscription.filter, method, params) {
                return true;
            }
            let mut tagged = params.clone();
            tagged["_meta"] = json!({ SUBSCRIPTION_ID: subscription.id });
            subscription.out.message(notification(method, tagged))
        });
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A notification.
pub fn notification(method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if params.as_object().is_none_or(|params| !params.is_empty()) {
        message["params"] = params;
    }
    message
}

fn wanted(filter: &Value, method: &str, params: &Value) -> bool {
    match method {
        "notifications/tools/list_changed" => filter["toolsListChanged"] == true,
        "notifications/prompts/list_changed" => filter["promptsListChanged"] == true,
        "notifications/resources/list_changed" => filter["resourcesListChanged"] == true,
        "notifications/resources/updated" => {
            let wanted = filter["resourceSubscriptions"].as_array();
            wanted.is_some_and(|uris| uris.contains(&params["uri"]))
        }
        _ => false,
    }
}
