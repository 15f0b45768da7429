//! The HTTP service: its frame driven over real sockets, and the whole of it as `haft serve`.
#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]

mod access;
mod agent;
mod api_config;
mod api_log;
mod api_offers;
mod api_servers;
mod approvals;
mod attack_access;
mod attack_bodies;
mod attack_names;
mod attack_nodes;
mod attack_registry;
mod attack_secrets;
mod attack_stderr;
mod audit;
mod calls;

mod client_python;
mod cluster;
mod collector;
mod console;
mod console_api;
mod conversations;
mod crowd;
mod documents;
mod effort;
mod events;
mod fault_files;
mod fault_load;
mod fault_log;
mod fault_processes;
mod fault_writes;
mod faults;
mod guard;
mod hostile;
mod inbox;
mod index;
mod inside;
mod key_limits;
mod left;
mod limits;
mod lock;
mod masked;
mod memory;
mod metrics;
mod operators;
mod output_cap;
mod page;
mod problems;
mod python_tools;
mod readme;
mod remedies;
mod replicas;
mod replicas_mcp;
mod request_ids;
mod revoked;
mod revoked_mcp;
mod rules;
mod run_access;
mod run_docs;
mod run_lists;
mod run_questions;
mod run_secrets;
mod run_tools;
mod runs;
mod schemathesis;
mod served;
mod shared_approvals;
mod shared_conversations;
mod shared_failover;
mod shared_keys;
mod shared_log;
mod shared_outage;
mod shared_pgbouncer;
mod shared_registry;
mod shared_replicas;
mod shared_routing;
mod shared_support;
mod shutdown;
mod start;
mod system_calls;
mod tls;
mod tools;
mod tools_search;
mod traces;
mod wrong_keys;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get, post};
use haft_server::keys::{KeyFile, Keyring, Scope};
use haft_server::serve::{
    Caller, Connection, Ended, GuardSettings, HttpService, Json, Listener, ListenerSettings, Query,
    RequestId,
};
use serde_json::Value;
use testkit::Workspace;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A service on a free port, and what a test needs to reach into it.
struct Service {
    address: SocketAddr,
    stop: CancellationToken,
    ended: JoinHandle<Ended>,
    keys: KeyFile,
    ring: Arc<Keyring>,
}

/// Settings that a test may change.
struct Setup {
    listener: ListenerSettings,
    guard: GuardSettings,
    calling: Router,
}

fn setup() -> Setup {
    Setup {
        listener: ListenerSettings::new("127.0.0.1:0".parse().unwrap()),
        guard: GuardSettings::default(),
        calling: Router::new(),
    }
}

impl Setup {
    async fn start(self, workspace: &Workspace) -> Service {
        let keys = KeyFile::new(workspace.path().join("state/keys.json"));
        let ring = Arc::new(Keyring::open(keys.clone()).unwrap());
        let listener = Listener::bind(self.listener, &ring).await.unwrap();
        let address = listener.local_addr();
        let frame = HttpService::new(&self.guard, Arc::clone(&ring))
            .reading(Router::new().route("/healthz", get(async || "fine")))
            .reading(Router::new().route("/tools", get(async || "tools")))
            .calling(endpoints().merge(self.calling))
            .admin(Router::new().route("/tools", post(async || "made")))
            .admin(Router::new().route("/tools/{name}", delete(async || "gone")))
            .documented(["/tools".to_owned(), "/echo".to_owned()]);
        let stop = CancellationToken::new();
        let serving = listener.serve(frame.into_service(), stop.clone());
        let ended = TaskTracker::new().spawn(serving);
        Service { address, stop, ended, keys, ring }
    }
}

fn endpoints() -> Router {
    Router::new()
        .route("/echo", post(async |Json(body): Json<Value>| body.to_string()))
        .route("/number", get(async |Query(query): Query<Number>| query.n.to_string()))
        .route("/whoami", get(async |caller: Caller| format!("{} {}", caller.name, caller.scope)))
        .route(
            "/peer",
            get(async |connection: axum::Extension<Connection>| connection.peer.ip().to_string()),
        )
        .route("/id", get(async |id: axum::Extension<RequestId>| id.as_str().to_owned()))
        .route("/panic", get(panics))
}

#[derive(serde::Deserialize)]
struct Number {
    n: u32,
}

async fn panics() -> &'static str {
    panic!("on purpose");
}

impl Service {
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Creates a key and waits until the server knows it.
    async fn key(&self, name: &str, scope: Scope) -> String {
        let (key, _) = self.keys.create(name, scope).unwrap();
        until(|| self.ring.verify(key.expose()).is_some()).await;
        key.expose().to_owned()
    }

    /// Stops the service and waits for its end.
    async fn stopped(self) -> Ended {
        self.stop.cancel();
        let ended = tokio::time::timeout(2 * testkit::DEADLINE, self.ended).await;
        ended.expect("an end in time").unwrap()
    }

    /// Sends bytes on a connection of their own and reads until the server closes it.
    async fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // The server may close while bytes are in flight to it; its answer counts.
        let reading = stream.read_to_string(&mut answer);
        let _ = tokio::time::timeout(testkit::DEADLINE, reading).await.expect("an end in time");
        answer
    }
}

/// Waits until something holds.
async fn until(holds: impl Fn() -> bool) {
    faults::until("it holds", async || holds().then_some(())).await;
}

/// A client. TLS has a test of its own, but the client wants to know with what it would do it.
fn client() -> reqwest::ClientBuilder {
    // Fails where another test of the same process was faster.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy()
}

/// The status of a raw answer.
fn status(answer: &str) -> u16 {
    answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_default()
}

/// The problem document of a raw answer.
fn problem(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: application/problem+json"), "{answer}");
    serde_json::from_str(body).unwrap()
}
