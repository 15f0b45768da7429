//! The registry in the database: one row, replaced by compare-and-set, with its history.

use std::time::Duration;

use haft::BoxFuture;
use haft::live::{Documents, RegistryStore, Revision, StoreError, Stored};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tokio_postgres::types::Type;

use crate::database::Database;
use crate::error::DatabaseError;
use crate::random;
use crate::topics::Topic;

/// Time to find out whether a commit took effect whose connection broke.
const SETTLE_MAX: Duration = Duration::from_secs(5);
/// The longest pause between two attempts.
const SETTLE_PAUSE: Duration = Duration::from_millis(200);
/// Digits of the token in a revision.
const TOKEN_DIGITS: usize = 8;

/// Also reports whether the revision that was seen before is in the history, as far as that goes back. If it is not, the
/// database lost it, and counters that have passed their old values do not show that.
const LOAD: &str = "
    select revision, token, tools, servers,
        $1::int8 is null
            or exists (select from haft.registry_history where revision = $1 and left(token, 8) = $2)
            or not exists (select from haft.registry_history where revision <= $1)
    from haft.registry";

/// Replaces the documents if the row is at the expected revision. The statement that was sent once and lost takes no
/// effect after another one took effect.
const COMMIT: &str = "
    with moved as (
        update haft.registry set revision = revision + 1, token = $3, tools = $4, servers = $5
        where revision = $1 and left(token, 8) = $2
        returning revision
    ), kept as (
        insert into haft.registry_history (revision, token, by, tools, servers)
        select revision, $3, $6, $4, $5 from moved
    ), counted as (
        update haft.topic set seq = seq + 1 where name = 'registry' and exists (select from moved)
    )
    select revision, pg_notify('haft', 'registry') from moved";

/// Raises the revision and keeps the documents, so that a commit at the expected revision cannot match any more.
const FENCE: &str = "
    with moved as (
        update haft.registry set revision = revision + 1, token = $3
        where revision = $1 and left(token, 8) = $2
        returning revision, tools, servers
    ), kept as (
        insert into haft.registry_history (revision, token, by, tools, servers)
        select revision, $3, $4, tools, servers from moved
    ), counted as (
        update haft.topic set seq = seq + 1 where name = 'registry' and exists (select from moved)
    )
    select revision, pg_notify('haft', 'registry') from moved";

const FIND: &str = "select revision from haft.registry_history where token = $1";

/// The registry in the database.
pub struct PostgresRegistry {
    database: Database,
    by: String,
    /// The server and the counter of changes at the last call of `changed`.
    seen: Mutex<Option<(i64, i64)>>,
    /// The last revision that the database reported as durable.
    last: Mutex<Option<Revision>>,
}

/// The two parts of a revision.
struct Position {
    number: i64,
    digits: String,
}

impl Position {
    /// Returns `None` for a revision of another store: the registry cannot be at it.
    fn of(revision: &Revision) -> Option<Self> {
        let (number, digits) = revision.as_str().split_once('-')?;
        Some(Self { number: number.parse().ok()?, digits: digits.to_owned() })
    }
}

/// A revision is compared for equality, never for order: a failover can give a number to another writer.
fn revision(number: i64, token: &str) -> Revision {
    Revision::new(format!("{number}-{}", token.get(..TOKEN_DIGITS).unwrap_or(token)))
}

impl Database {
    /// The registry in this database. `by` names the writer in its history.
    pub fn registry(&self, by: impl Into<String>) -> PostgresRegistry {
        PostgresRegistry {
            database: self.clone(),
            by: by.into(),
            seen: Mutex::default(),
            last: Mutex::default(),
        }
    }
}

impl PostgresRegistry {
    async fn load_stored(&self) -> Result<Stored, DatabaseError> {
        let last = self.last.lock().clone();
        let at = last.as_ref().and_then(Position::of);
        let (number, digits) = at.map(|at| (at.number, at.digits)).unzip();
        let params = [(&number as _, Type::INT8), (&digits as _, Type::TEXT)];
        let rows = self.database.read(LOAD, &params).await?;
        let row = rows.first().ok_or(DatabaseError::NoSchema)?;
        let documents = Documents { tools: row.get(2), servers: row.get(3) };
        let revision = revision(row.get(0), row.get(1));
        let is_known: bool = row.get(4);
        let is_first = {
            let mut now = self.last.lock();
            let is_first = *now == last;
            *now = Some(revision.clone());
            is_first
        };
        if !is_known && is_first {
            self.database.note_lost_commits();
        }
        Ok(Stored { documents, revision })
    }

    async fn replace(&self, expected: &Revision, new: &Documents) -> Result<Revision, StoreError> {
        let Some(at) = Position::of(expected) else { return Err(StoreError::Conflict) };
        let token = random::token().map_err(|error| StoreError::Unavailable {
            cause: format!("the system gives no random numbers: {error}"),
            remedy: "retry".to_owned(),
        })?;
        let committed = self
            .database
            .query(
                COMMIT,
                &[
                    (&at.number, Type::INT8),
                    (&at.digits, Type::TEXT),
                    (&token, Type::TEXT),
                    (&new.tools, Type::TEXT),
                    (&new.servers, Type::TEXT),
                    (&self.by, Type::TEXT),
                ],
            )
            .await;
        match committed {
            Ok(rows) => match rows.first() {
                Some(row) => {
                    let revision = revision(row.get(0), &token);
                    *self.last.lock() = Some(revision.clone());
                    Ok(revision)
                }
                None => Err(StoreError::Conflict),
            },
            Err(DatabaseError::Ambiguous { cause }) => self.settle(&at, &token, cause).await,
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Finds out whether a commit took effect whose connection broke.
    async fn settle(
        &self,
        at: &Position,
        token: &str,
        cause: String,
    ) -> Result<Revision, StoreError> {
        let began = Instant::now();
        loop {
            match self.settle_once(at, token).await {
                Ok(settled) => return settled,
                Err(error) if began.elapsed() > SETTLE_MAX => {
                    return Err(StoreError::Unknown { cause: format!("{cause}; {error}") });
                }
                Err(_) => sleep(SETTLE_PAUSE / 2 + random::up_to(SETTLE_PAUSE / 2)).await,
            }
        }
    }

    async fn settle_once(
        &self,
        at: &Position,
        token: &str,
    ) -> Result<Result<Revision, StoreError>, DatabaseError> {
        if let Some(found) = self.find(token).await? {
            return Ok(Ok(found));
        }
        // The statement may still arrive. After this one it cannot match.
        let fence =
            random::token().map_err(|error| DatabaseError::Other { cause: error.to_string() })?;
        let by = format!("{} (no change)", self.by);
        let params = [
            (&at.number as _, Type::INT8),
            (&at.digits as _, Type::TEXT),
            (&fence as _, Type::TEXT),
            (&by as _, Type::TEXT),
        ];
        let is_fenced = !self.database.query(FENCE, &params).await?.is_empty();
        if is_fenced {
            return Ok(Err(StoreError::Unavailable {
                cause: "the connection to the database broke, and the change was not written"
                    .to_owned(),
                remedy: "retry".to_owned(),
            }));
        }
        // The registry is past the expected revision: by the statement itself, or by another writer.
        Ok(self.find(token).await?.ok_or(StoreError::Conflict))
    }

    async fn find(&self, token: &str) -> Result<Option<Revision>, DatabaseError> {
        let rows = self.database.read(FIND, &[(&token, Type::TEXT)]).await?;
        Ok(rows.first().map(|row| revision(row.get(0), token)))
    }
}

/// A statement that took no effect.
fn unavailable(error: &DatabaseError) -> StoreError {
    StoreError::Unavailable { cause: error.to_string(), remedy: error.remedy() }
}

impl RegistryStore for PostgresRegistry {
    fn load(&self) -> BoxFuture<'_, Result<Stored, StoreError>> {
        Box::pin(async { self.load_stored().await.map_err(|error| unavailable(&error)) })
    }

    fn commit<'a>(
        &'a self,
        expected: &'a Revision,
        new: &'a Documents,
    ) -> BoxFuture<'a, Result<Revision, StoreError>> {
        Box::pin(self.replace(expected, new))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut topics = self.database.topics();
            loop {
                let now = {
                    let topics = topics.borrow_and_update();
                    (topics.server(), topics.seq(Topic::Registry))
                };
                if self.seen.lock().replace(now) != Some(now) {
                    return;
                }
                if topics.changed().await.is_err() {
                    // The database is closed.
                    return std::future::pending().await;
                }
            }
        })
    }
}
