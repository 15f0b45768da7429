//! One connection attempt: from a configured endpoint to a connected client.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::{
    Client, ClientOptions, ConnectError, Connector, Failure, Handler, Limits,
    Protocol as WireProtocol, RequestError, TransportError,
};
use tokio::time::Instant;

use super::connection::Connection;
use super::failure::{self, login_remedy};
use super::health::Reason;
use super::lists::Lists;
use super::memory::ServerMemory;
use super::process;
use super::remote;
use crate::backend::process::last_line;
use crate::config::choices::Protocol;
use crate::config::model::Endpoint;
use crate::error::Diagnosis;
use haft_text::human;

/// The result of one attempt to connect.
pub(super) struct Attempt {
    /// The client and what the server offers, or why there is none.
    pub(super) outcome: Result<(Client, Lists), Reason>,
    /// True if a retry may help.
    pub(super) is_transient: bool,
    /// The pause that the server asks for.
    pub(super) retry_after: Option<Duration>,
}

/// The time that a round of attempts may spend connecting: `connect_timeout`, over every phase of every attempt.
/// Pauses between attempts do not count.
#[derive(Clone)]
pub(super) struct ConnectTime {
    limit: Duration,
    left: Duration,
}

impl ConnectTime {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, left: limit }
    }

    /// Runs one attempt on the time that is left; none if that is used up first.
    async fn run<T>(&mut self, connecting: impl Future<Output = T>) -> Option<T> {
        let began = Instant::now();
        let outcome = tokio::time::timeout(self.left, connecting).await.ok();
        self.left = self.left.saturating_sub(began.elapsed());
        outcome
    }
}

/// Connects once and reads the lists.
pub(super) async fn attempt(connection: &Connection, time: &mut ConnectTime) -> Attempt {
    let handler = Arc::clone(&connection.events) as Arc<dyn Handler>;
    let began = std::time::Instant::now();
    let connecting = async {
        let Connectors { first, fallback } = Connectors::of(connection)?;
        Client::connect(&*first, fallback.as_deref(), handler, options(connection)).await
    };
    let client = match time.run(connecting).await {
        Some(Ok(client)) => client,
        // A phase with its own limit may have ended at the same time.
        Some(Err(error)) if !time.left.is_zero() => {
            let text = explain(connection, &error).await;
            let (is_transient, retry_after) = (error.is_transient(), error.retry_after());
            return Attempt { outcome: Err(text), is_transient, retry_after };
        }
        Some(Err(_)) | None => {
            let limit = human(time.limit);
            let text = format!("it did not answer within {limit} (`connect_timeout`)");
            let text = with_diagnosis(connection, text, began);
            let text = with_last_words(connection, &text, EndedBy::Us).await;
            // A server that was silent for so long is not tried again at once.
            return Attempt { outcome: Err(text), is_transient: false, retry_after: None };
        }
    };
    match Lists::load(&client, &connection.config).await {
        Ok(lists) => {
            Attempt { outcome: Ok((client, lists)), is_transient: false, retry_after: None }
        }
        Err(error) => {
            let mut text = format!("it is connected but does not list what it offers: {error}");
            if matches!(error, RequestError::Timeout { .. }) {
                text = with_diagnosis(connection, text, began);
            }
            let text = with_last_words(connection, &text, EndedBy::of(&error)).await;
            client.close().await;
            let is_transient = ConnectError::from(error).is_transient();
            Attempt { outcome: Err(text), is_transient, retry_after: None }
        }
    }
}

/// Adds what the server sent instead of an answer, and what to do about it.
fn with_diagnosis(connection: &Connection, text: String, began: std::time::Instant) -> String {
    match connection.diagnosis_since(began) {
        Some(Diagnosis { problem, remedy }) => format!("{text}; {problem}; {remedy}"),
        None => match &connection.config.endpoint {
            // Text in another encoding may have no line end at all, so that no line arrives.
            Endpoint::Stdio(stdio) if stdio.encoding.value != "UTF-8" => format!(
                "{text}; check that it reads and writes {} (`encoding`)",
                stdio.encoding.value
            ),
            Endpoint::Stdio(_) | Endpoint::Http(_) | Endpoint::Sse(_) | Endpoint::Websocket(_) => {
                text
            }
        },
    }
}

fn options(connection: &Connection) -> ClientOptions {
    let config = &connection.config;
    let connect_timeout = config.connect_timeout.value;
    let mut options = ClientOptions {
        protocol: match config.protocol.value {
            Protocol::Auto => WireProtocol::Auto,
            Protocol::Legacy => WireProtocol::Legacy,
            Protocol::Modern => WireProtocol::Modern,
        },
        request_timeout: config.request_timeout.value,
        log_level: Some(if tracing::enabled!(tracing::Level::DEBUG) { "debug" } else { "info" }),
        config: config.config.as_ref().map(|config| config.expose().clone()),
        limits: Limits { nodes_max: connection.context.nodes_max, ..Limits::default() },
        budget: Some(Arc::new(ServerMemory::of(connection))),
        ..ClientOptions::default()
    };
    // The probe must leave time for what follows it.
    options.probe_timeout = options.probe_timeout.min(connect_timeout / 2);
    options
}

/// The transport to open, and the fallback if the server does not support it.
struct Connectors {
    first: Box<dyn Connector>,
    fallback: Option<Box<dyn Connector>>,
}

impl Connectors {
    fn of(connection: &Connection) -> Result<Self, TransportError> {
        let (first, fallback) = match &connection.config.endpoint {
            Endpoint::Stdio(endpoint) => (process::connector(connection, endpoint), None),
            Endpoint::Http(to) => {
                (remote::http(connection, to)?, Some(remote::sse(connection, to)?))
            }
            Endpoint::Sse(to) => (remote::sse(connection, to)?, None),
            Endpoint::Websocket(to) => (remote::websocket(connection, to)?, None),
        };
        Ok(Self { first, fallback })
    }
}

/// Describes a failed connection: the cause, the process's output, the remedy.
async fn explain(connection: &Connection, error: &ConnectError) -> Reason {
    let reason = with_last_words(connection, &error.message, EndedBy::of(&error.cause)).await;
    let text = reason.cause;
    let mut sign_in = None;
    let cause = match &error.cause {
        RequestError::Transport(cause) => match cause.kind {
            Failure::AuthRequired => {
                let remedy = sign_in.insert(login_remedy(connection));
                format!("auth_required: {text}; {remedy}")
            }
            Failure::Unreachable => format!("{text}; start the server, or correct its address"),
            Failure::Tls => format!("{text}; fix its certificate, or correct its address"),
            Failure::Status(400..=499) | Failure::Redirect | Failure::Protocol => {
                format!("{text}; check its address and `transport`")
            }
            // The message holds the remedy, or only the server can fix it.
            Failure::NotFound
            | Failure::Closed
            | Failure::Timeout
            | Failure::StreamTimeout
            | Failure::SessionExpired
            | Failure::OverBudget
            | Failure::Status(_) => text,
        },
        RequestError::Protocol { fault, .. } => match failure::fault_remedy(connection, *fault) {
            Some(remedy) => format!("{text}; {remedy}"),
            None => text,
        },
        RequestError::Rpc(_) | RequestError::Timeout { .. } => text,
    };
    Reason { cause, remedy: sign_in, ..reason }
}

/// The reason why a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// It exited by itself, so its exit code is meaningful.
    Itself,
    /// Haft stopped it, so its exit code is meaningless.
    Us,
}

impl EndedBy {
    fn of(error: &RequestError) -> Self {
        match error {
            RequestError::Transport(error) => Self::of_transport(error),
            RequestError::Rpc(_) | RequestError::Protocol { .. } | RequestError::Timeout { .. } => {
                Self::Us
            }
        }
    }

    pub(super) fn of_transport(error: &TransportError) -> Self {
        if error.kind == Failure::Closed { Self::Itself } else { Self::Us }
    }
}

/// Adds how the process ended and the last line it wrote to its standard error, secrets masked;
/// leaves nothing of it behind.
pub(super) async fn with_last_words(
    connection: &Connection,
    text: &str,
    ended_by: EndedBy,
) -> Reason {
    let mut text = text.to_owned();
    let exit = process::bury(&connection.process.tree).await;
    if let Some(exit) = exit.filter(|_| ended_by == EndedBy::Itself) {
        // The pipe that broke first is arbitrary.
        text = format!("it ended by itself ({exit})");
    }
    let cause = connection.context.redactor.text(&text).into_owned();
    let last_words = connection.stderr_tail().and_then(|tail| last_line(&tail));
    Reason { cause, last_words, remedy: None }
}
