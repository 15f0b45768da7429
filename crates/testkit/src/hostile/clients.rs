//! The kinds of hostile clients.

use std::io::Result;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::bodies::{Bodies, Body, initialize};
use super::http::{Answer, Connection, Request};
use super::service::Service;
use super::tally::Tally;
use crate::Random;

/// Pause between two attacks of a client, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 50..250;
/// The longest that a client waits for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Idle connections that one client holds open: five such clients exceed what a service usually takes from all.
const SILENT_CONNECTIONS: usize = 250;
const SLOW_CONNECTIONS: usize = 10;
/// Pause of a slow client between two bytes.
const SLOW_BYTE_EVERY: Duration = Duration::from_millis(300);
const QUEUED_CALLS: usize = 8;
const SESSIONS_EACH: usize = 50;
const WRONG_KEYS_EACH: usize = 20;
const PIPELINED: usize = 20;

/// The behaviour of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientKind {
    /// Bodies of millions of tiny values.
    TinyValues,
    /// Arguments nested half a million levels deep.
    DeepNesting,
    /// Names of several megabytes.
    HugeNames,
    /// `initialize` with 1.8 MB of capabilities.
    Capabilities,
    /// Heads and bodies that arrive byte by byte.
    SlowSender,
    /// Leaves while its call runs, with bytes behind the request.
    EarlyLeaver,
    /// Guesses keys.
    WrongKeys,
    /// Holds connections and sends nothing, or half a greeting.
    HalfOpen,
    /// Opens sessions and leaves them.
    SessionFlood,
    /// Calls with large arguments that wait for a tool.
    LargeArguments,
}

pub(super) const CLIENT_KINDS: [ClientKind; 10] = [
    ClientKind::TinyValues,
    ClientKind::DeepNesting,
    ClientKind::HugeNames,
    ClientKind::Capabilities,
    ClientKind::SlowSender,
    ClientKind::EarlyLeaver,
    ClientKind::WrongKeys,
    ClientKind::HalfOpen,
    ClientKind::SessionFlood,
    ClientKind::LargeArguments,
];

impl ClientKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TinyValues => "tiny-values",
            Self::DeepNesting => "deep-nesting",
            Self::HugeNames => "huge-names",
            Self::Capabilities => "capabilities",
            Self::SlowSender => "slow-sender",
            Self::EarlyLeaver => "early-leaver",
            Self::WrongKeys => "wrong-keys",
            Self::HalfOpen => "half-open",
            Self::SessionFlood => "session-flood",
            Self::LargeArguments => "large-arguments",
        }
    }
}

/// One hostile client: where it comes from and what it knows.
#[derive(Clone)]
pub(super) struct Attacker {
    source: Ipv4Addr,
    port: u16,
    key: Arc<str>,
    random: Random,
    session: Option<String>,
    pub(super) tally: Arc<Tally>,
    bodies: Arc<Bodies>,
}

impl Attacker {
    /// The client with this number. Each has an address of its own, and several share a key.
    pub(super) fn new(
        service: &Service,
        number: u8,
        random: Random,
        tally: Arc<Tally>,
        bodies: Arc<Bodies>,
    ) -> Self {
        let keys = &service.hostile_keys;
        Self {
            source: Ipv4Addr::new(127, 0, 1, number.max(1)),
            port: service.port(),
            key: keys[usize::from(number) % keys.len()].as_str().into(),
            random,
            session: None,
            tally,
            bodies,
        }
    }

    pub(super) async fn pause(&mut self) {
        sleep(Duration::from_millis(self.random.within(PAUSE_MS))).await;
    }

    async fn connect(&self) -> Result<Connection> {
        Connection::open(self.source, self.port).await
    }

    fn request<'a>(&'a self, path: &'a str, body: &'a [u8]) -> Request<'a> {
        let session = if path == "/mcp" { self.session.as_deref() } else { None };
        Request { path, key: &self.key, session, body }
    }

    /// One request on a connection of its own.
    pub(super) async fn post(&self, path: &str, body: &[u8]) -> Result<Answer> {
        let exchange = async { self.connect().await?.exchange(&self.request(path, body)).await };
        timeout(ANSWER_MAX, exchange).await.unwrap_or_else(|late| Err(late.into()))
    }

    /// Sends a body and counts what becomes of it.
    async fn attack(&mut self, body: &Body) {
        if body.path == "/mcp" && self.session.is_none() {
            self.session =
                self.post("/mcp", &initialize("{}")).await.ok().and_then(|it| it.session);
        }
        self.tally.attack();
        let answer = self.post(body.path, &body.bytes).await;
        if answer.as_ref().is_ok_and(|answer| answer.status == 404) {
            self.session = None;
        }
        self.tally.end(&answer);
    }
}

/// Attacks until the task is aborted.
pub(super) async fn run(kind: ClientKind, mut attacker: Attacker) {
    let at_once = match kind {
        ClientKind::SlowSender => SLOW_CONNECTIONS,
        ClientKind::HalfOpen => SILENT_CONNECTIONS,
        ClientKind::LargeArguments => QUEUED_CALLS,
        ClientKind::TinyValues
        | ClientKind::DeepNesting
        | ClientKind::HugeNames
        | ClientKind::Capabilities
        | ClientKind::EarlyLeaver
        | ClientKind::WrongKeys
        | ClientKind::SessionFlood => 1,
    };
    let mut tasks = JoinSet::new();
    for _ in 0..at_once {
        let mut attacker = Attacker { random: attacker.random.fork(), ..attacker.clone() };
        tasks.spawn(async move {
            loop {
                attacker.pause().await;
                attack(kind, &mut attacker).await;
            }
        });
    }
    // They never end by themselves.
    tasks.join_all().await;
}

async fn attack(kind: ClientKind, attacker: &mut Attacker) {
    let bodies = Arc::clone(&attacker.bodies);
    match kind {
        ClientKind::TinyValues => {
            let body = attacker.random.choose(&bodies.tiny_values);
            attacker.attack(body).await;
        }
        ClientKind::DeepNesting => {
            let body = attacker.random.choose(&bodies.deep);
            attacker.attack(body).await;
        }
        ClientKind::HugeNames => {
            let body = attacker.random.choose(&bodies.names);
            attacker.attack(body).await;
        }
        ClientKind::Capabilities => {
            attacker.session = None;
            attacker.tally.attack();
            let answer = attacker.post("/mcp", &bodies.capabilities.bytes).await;
            attacker.tally.end(&answer);
        }
        ClientKind::LargeArguments => attacker.attack(&bodies.large_arguments).await,
        ClientKind::SlowSender => send_slowly(attacker).await,
        ClientKind::EarlyLeaver => leave_early(attacker).await,
        ClientKind::WrongKeys => guess_keys(attacker).await,
        ClientKind::HalfOpen => hold_open(attacker).await,
        ClientKind::SessionFlood => flood_sessions(attacker).await,
    }
}

/// A head or a body, byte by byte, until the service answers or closes.
async fn send_slowly(attacker: &mut Attacker) {
    let request = attacker.request("/api/v1/tools/echo/call", br#"{"arguments":{"text":"slow"}}"#);
    let (head, whole) = (request.head().len(), request.bytes());
    let is_head_fast = attacker.random.next().is_multiple_of(2);
    let fast = if is_head_fast { head } else { 0 };
    attacker.tally.attack();
    let Ok(mut connection) = attacker.connect().await else { return attacker.tally.cut_off() };
    if connection.send(&whole[..fast]).await.is_err() {
        return attacker.tally.cut_off();
    }
    for byte in whole[fast..].chunks(1) {
        if timeout(SLOW_BYTE_EVERY, connection.closed()).await.is_ok() {
            break;
        }
        if connection.send(byte).await.is_err() {
            break;
        }
    }
    let answer = timeout(ANSWER_MAX, connection.receive()).await;
    attacker.tally.end(&answer.unwrap_or_else(|late| Err(late.into())));
}

/// Leaves while its call runs, with bytes behind the request that keep a reader from seeing the end.
async fn leave_early(attacker: &mut Attacker) {
    let request = attacker.request("/api/v1/tools/sleep/call", br#"{"arguments":{"ms":3000}}"#);
    let mut bytes = request.bytes();
    match attacker.random.within(0..3) {
        0 => {}
        1 => bytes.extend_from_slice(b"\r\n"),
        _ => bytes = bytes.repeat(PIPELINED),
    }
    attacker.tally.attack();
    let Ok(mut connection) = attacker.connect().await else { return attacker.tally.cut_off() };
    if connection.send(&bytes).await.is_err() {
        return attacker.tally.cut_off();
    }
    // Long enough for the call to begin.
    sleep(Duration::from_millis(20)).await;
}

/// Keys that look right, one after the other on one connection.
async fn guess_keys(attacker: &mut Attacker) {
    let Ok(mut connection) = attacker.connect().await else { return attacker.tally.cut_off() };
    for _ in 0..WRONG_KEYS_EACH {
        let guess = format!("{:016x}", attacker.random.next());
        let kept = attacker.key.len().saturating_sub(guess.len());
        let key = format!("{}{guess}", &attacker.key[..kept]);
        let request =
            Request { path: "/api/v1/calls", key: &key, session: None, body: b"{\"calls\":[]}" };
        attacker.tally.attack();
        let answer = timeout(ANSWER_MAX, connection.exchange(&request)).await;
        let answer = answer.unwrap_or_else(|late| Err(late.into()));
        attacker.tally.end(&answer);
        if answer.map_or(true, |answer| answer.is_last) {
            return;
        }
    }
}

/// A connection that gets nowhere, until the service closes it.
async fn hold_open(attacker: &mut Attacker) {
    let begins: [&[u8]; 4] = [
        b"",
        b"PRI * HTTP/2.0\r\n",
        b"POST /api/v1/calls HTTP/1.1\r\nHost: 127.",
        // The first bytes of a TLS greeting.
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ];
    let begin = attacker.random.choose(&begins);
    attacker.tally.attack();
    let Ok(mut connection) = attacker.connect().await else { return attacker.tally.cut_off() };
    if connection.send(begin).await.is_ok() {
        connection.closed().await;
    }
    attacker.tally.cut_off();
}

/// Sessions that are opened and never used.
async fn flood_sessions(attacker: &mut Attacker) {
    let body = initialize("{}");
    let Ok(mut connection) = attacker.connect().await else { return attacker.tally.cut_off() };
    for _ in 0..SESSIONS_EACH {
        attacker.tally.attack();
        let request = Request { path: "/mcp", key: &attacker.key, session: None, body: &body };
        let answer = timeout(ANSWER_MAX, connection.exchange(&request)).await;
        let answer = answer.unwrap_or_else(|late| Err(late.into()));
        attacker.tally.end(&answer);
        if answer.map_or(true, |answer| answer.is_last) {
            return;
        }
    }
}
