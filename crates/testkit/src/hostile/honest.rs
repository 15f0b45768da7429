//! Honest calls: a fixed number every second, over the API and MCP, of a server's tool and a local one.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::bodies::{initialize, tools_call};
use super::http::{Answer, Connection, Request};
use super::service::Address;

/// The prefix of every marker.
pub(super) const MARK: &str = "honest-";
/// The longest that a call may take; beyond, it has failed.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// One in this many calls uses a new connection, as a new client would.
const FRESH_EVERY: u64 = 10;
/// The longest that a connection waits for its next call.
const IDLE_MAX: Duration = Duration::from_secs(3);
const SOURCE: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// The ways of a call, in turns.
const LANES: [Lane; 4] = [
    Lane { name: "API, server's tool", is_mcp: false, tool: "echo" },
    Lane { name: "API, local tool", is_mcp: false, tool: "greet" },
    Lane { name: "MCP, server's tool", is_mcp: true, tool: "echo" },
    Lane { name: "MCP, local tool", is_mcp: true, tool: "greet" },
];

#[derive(Debug, Clone, Copy)]
struct Lane {
    name: &'static str,
    is_mcp: bool,
    tool: &'static str,
}

/// The results of the honest calls.
#[derive(Debug, Default)]
pub(super) struct Honest {
    /// The calls that were made.
    pub(super) calls: u64,
    /// Why calls failed, and how often.
    pub(super) failures: BTreeMap<String, u64>,
    /// The latencies of the successful calls of each lane, sorted.
    pub(super) latencies: BTreeMap<&'static str, Vec<Duration>>,
}

struct Clients {
    address: Address,
    session: String,
    idle: Mutex<Vec<(Connection, Instant)>>,
    results: Mutex<Honest>,
}

/// Makes calls until the run is over, and waits for the last ones.
pub(super) fn run(address: &Address, calls_per_second: u32, is_over: &AtomicBool) -> Honest {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(call_all(address, calls_per_second, is_over))
}

async fn call_all(address: &Address, calls_per_second: u32, is_over: &AtomicBool) -> Honest {
    let session = match open_session(address).await {
        Ok(session) => session,
        Err(error) => {
            let failures = BTreeMap::from([(format!("no session: {error}"), 1)]);
            return Honest { calls: 1, failures, ..Honest::default() };
        }
    };
    let clients = Arc::new(Clients {
        address: address.clone(),
        session,
        idle: Mutex::default(),
        results: Mutex::default(),
    });
    let mut ticks = interval(Duration::from_secs(1) / calls_per_second);
    // A late tick does not move the later ones: the rate is fixed.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut calls = JoinSet::new();
    for number in 0.. {
        let due = ticks.tick().await.into_std();
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        calls.spawn(call(Arc::clone(&clients), number, due));
        while calls.try_join_next().is_some() {}
    }
    while calls.join_next().await.is_some() {}
    let mut honest = std::mem::take(&mut *clients.results.lock());
    honest.latencies.values_mut().for_each(|latencies| latencies.sort_unstable());
    honest
}

async fn open_session(address: &Address) -> std::io::Result<String> {
    let mut connection = Connection::open(SOURCE, address.port).await?;
    let body = initialize("{}");
    let request = Request { path: "/mcp", key: &address.key, session: None, body: &body };
    let answer = timeout(ANSWER_MAX, connection.exchange(&request)).await??;
    answer.session.ok_or_else(|| std::io::Error::other(format!("status {}", answer.status)))
}

async fn call(clients: Arc<Clients>, number: u64, due: Instant) {
    let lane = LANES[usize::try_from(number).unwrap_or_default() % LANES.len()];
    let marker = format!("{MARK}{number:08}");
    let answer = timeout(ANSWER_MAX, clients.exchange(lane, number, &marker)).await;
    let result = match answer {
        Err(_) => Err(format!("no answer within {} s", ANSWER_MAX.as_secs())),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(answer)) => judge(&answer, &marker),
    };
    let mut results = clients.results.lock();
    results.calls += 1;
    match result {
        Ok(()) => results.latencies.entry(lane.name).or_default().push(due.elapsed()),
        Err(reason) => {
            *results.failures.entry(format!("{}: {reason}", lane.name)).or_default() += 1;
        }
    }
}

impl Clients {
    async fn exchange(&self, lane: Lane, number: u64, marker: &str) -> std::io::Result<Answer> {
        let arguments = format!("{{\"marker\":\"{marker}\"}}");
        let (path, body) = if lane.is_mcp {
            ("/mcp".to_owned(), tools_call(number, lane.tool, &arguments))
        } else {
            let path = format!("/api/v1/tools/{}/call", lane.tool);
            (path, format!("{{\"arguments\":{arguments}}}"))
        };
        let session = lane.is_mcp.then_some(self.session.as_str());
        let request =
            Request { path: &path, key: &self.address.key, session, body: body.as_bytes() };
        let idle = if number.is_multiple_of(FRESH_EVERY) { None } else { self.take_idle() };
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(SOURCE, self.address.port).await?,
        };
        let answer = connection.exchange(&request).await?;
        if !answer.is_last {
            self.idle.lock().push((connection, Instant::now()));
        }
        Ok(answer)
    }

    /// An open connection. As in any client, one that was idle for long or that the service closed is not used again.
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        while let Some((connection, since)) = idle.pop() {
            if since.elapsed() < IDLE_MAX && connection.is_open() {
                return Some(connection);
            }
        }
        None
    }
}

/// A good answer carries the marker of its call.
fn judge(answer: &Answer, marker: &str) -> Result<(), String> {
    let text = String::from_utf8_lossy(&answer.body);
    if answer.status == 200 && text.contains(marker) && !text.contains("\"isError\":true") {
        let has_failed = text.contains("\"status\":\"error\"") || text.contains("\"error\":{");
        if !has_failed {
            return Ok(());
        }
    }
    let code = text.split("\"code\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
    Err(format!("status {}, code {}", answer.status, code.unwrap_or("none")))
}
