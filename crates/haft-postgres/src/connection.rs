//! One connection to the database, opened again when it breaks.
//!
//! A statement has a time limit of its own beside the server's: a half-open connection never answers.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Row, Socket};
use tokio_util::task::TaskTracker;

use crate::error::{DatabaseError, chain};
use crate::random;
use crate::tls::{Stream, Tls};

/// The longest attempt to connect, over all hosts.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Our time limit beyond the server's.
const GRACE: Duration = Duration::from_secs(1);
/// The first and the longest pause after failed attempts.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A parameter of a statement with its type.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Poll, heartbeats, notifications.
    Watch,
    /// Everything else.
    Work,
    /// Batches of the execution log.
    Ship,
}

impl Role {
    fn statement_timeout(self) -> Duration {
        match self {
            Self::Watch | Self::Work => Duration::from_secs(5),
            Self::Ship => Duration::from_secs(30),
        }
    }

    /// The session's settings. The driver's start-up options would not pass a pooling proxy.
    fn setup(self) -> String {
        let limit = self.statement_timeout().as_millis();
        let listen = match self {
            Self::Watch => "; listen haft",
            Self::Work | Self::Ship => "",
        };
        format!("set statement_timeout = {limit}{listen}")
    }
}

/// The database to connect to, shared by its connections.
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
    pub(crate) tasks: TaskTracker,
    /// Signalled when a notification arrives.
    pub(crate) notified: Notify,
    pub(crate) contact: Contact,
}

/// The last contact with the database.
#[derive(Default)]
pub(crate) struct Contact(Mutex<(Option<Instant>, Option<DatabaseError>)>);

impl Contact {
    fn succeeded(&self) {
        *self.0.lock() = (Some(Instant::now()), None);
    }

    fn failed(&self, error: &DatabaseError) {
        self.0.lock().1 = Some(error.clone());
    }

    /// The time since the last success.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.0.lock().0.map(|at| at.elapsed())
    }

    /// The failure since the last success.
    pub(crate) fn failure(&self) -> Option<DatabaseError> {
        self.0.lock().1.clone()
    }
}

/// A connection of one role.
pub(crate) struct Link {
    role: Role,
    target: Arc<Target>,
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// The last failed attempt, and the earliest time of the next one.
    failed: Option<(DatabaseError, Instant)>,
    failures: u32,
}

struct Open {
    client: Arc<Client>,
    driver: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        // A half-open connection would wait for its end.
        self.driver.abort();
    }
}

impl Link {
    pub(crate) fn new(role: Role, target: Arc<Target>) -> Self {
        Self { role, target, state: tokio::sync::Mutex::default() }
    }

    /// Runs one statement. After [`DatabaseError::Ambiguous`] it may have taken effect or not.
    pub(crate) async fn query(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DatabaseError> {
        let client = self.client().await?;
        let limit = self.role.statement_timeout();
        let answered = timeout(limit + GRACE, client.query_typed(sql, params)).await;
        let result = answered.map_or_else(
            |_| {
                let cause = format!("no response within {} s", (limit + GRACE).as_secs());
                Err(DatabaseError::Ambiguous { cause })
            },
            |result| result.map_err(|error| DatabaseError::of_statement(&error, limit)),
        );
        match &result {
            Ok(_) => self.target.contact.succeeded(),
            // A demoted host stays read-only, so another is tried.
            Err(error @ (DatabaseError::Ambiguous { .. } | DatabaseError::ReadOnly)) => {
                self.target.contact.failed(error);
                self.close(&client).await;
            }
            Err(_) => {}
        }
        result
    }

    /// Runs a statement that changes nothing, a second time if the connection broke.
    pub(crate) async fn read(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DatabaseError> {
        match self.query(sql, params).await {
            Err(DatabaseError::Ambiguous { .. }) => match self.query(sql, params).await {
                Err(DatabaseError::Ambiguous { cause }) => {
                    Err(DatabaseError::Unreachable { cause, age: self.target.contact.age() })
                }
                result => result,
            },
            result => result,
        }
    }

    async fn close(&self, broken: &Arc<Client>) {
        let mut state = self.state.lock().await;
        if state.open.as_ref().is_some_and(|open| Arc::ptr_eq(&open.client, broken)) {
            state.open = None;
        }
    }

    /// The open client. Callers that come while it is being opened wait for the same attempt.
    async fn client(&self) -> Result<Arc<Client>, DatabaseError> {
        let mut state = self.state.lock().await;
        if let Some(open) = &state.open {
            if !open.client.is_closed() {
                return Ok(Arc::clone(&open.client));
            }
            state.open = None;
        }
        if let Some((error, until)) = &state.failed
            && Instant::now() < *until
        {
            return Err(with_age(error.clone(), self.target.contact.age()));
        }
        match self.open().await {
            Ok(open) => {
                let client = Arc::clone(&open.client);
                *state = State { open: Some(open), ..State::default() };
                Ok(client)
            }
            Err(error) => {
                let pause = (PAUSE_MIN * 2_u32.saturating_pow(state.failures)).min(PAUSE_MAX);
                let pause = pause / 2 + random::up_to(pause / 2);
                state.failures = (state.failures + 1).min(10);
                state.failed = Some((error.clone(), Instant::now() + pause));
                self.target.contact.failed(&error);
                Err(with_age(error, self.target.contact.age()))
            }
        }
    }

    async fn open(&self) -> Result<Open, DatabaseError> {
        let (client, driver) = connect(&self.target).await?;
        let open = Open { client: Arc::new(client), driver };
        let set_up = timeout(CONNECT_MAX, open.client.batch_execute(&self.role.setup())).await;
        match set_up {
            Ok(Ok(())) => Ok(open),
            Ok(Err(error)) => Err(DatabaseError::connecting(&error, None)),
            Err(_) => Err(too_slow()),
        }
    }
}

/// Opens a connection, with a task that drives it.
pub(crate) async fn connect(target: &Arc<Target>) -> Result<(Client, AbortHandle), DatabaseError> {
    match timeout(CONNECT_MAX, target.config.connect(target.tls.clone())).await {
        Ok(Ok((client, connection))) => {
            let driver = target.tasks.spawn(drive(connection, Arc::clone(target)));
            Ok((client, driver.abort_handle()))
        }
        Ok(Err(error)) => Err(DatabaseError::connecting(&error, None)),
        Err(_) => Err(too_slow()),
    }
}

fn too_slow() -> DatabaseError {
    let cause = format!("no response within {} s", CONNECT_MAX.as_secs());
    DatabaseError::Unreachable { cause, age: None }
}

fn with_age(error: DatabaseError, now: Option<Duration>) -> DatabaseError {
    match error {
        DatabaseError::Unreachable { cause, .. } => DatabaseError::Unreachable { cause, age: now },
        other => other,
    }
}

async fn drive(mut connection: Connection<Socket, Stream>, target: Arc<Target>) {
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notification(_))) => target.notified.notify_one(),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(error = chain(&error), "a connection to the database broke");
                return;
            }
            None => return,
        }
    }
}
