//! The database: its three connections, and the task that follows it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::{Contact, Link, Param, Role, Target};
use crate::error::DatabaseError;
use crate::migrate::{self, Migrations, Version};
use crate::replicas::{self, OwnReplica, ReplicaTable};
use crate::schema::SCHEMA_VERSION;
use crate::settings::{ReplicaSettings, Settings, parse};
use crate::status::{DatabaseHealth, DatabaseStatus};
use crate::tls::Tls;
use crate::topics::TopicSeqs;
use crate::watch::{Follower, Poller};

/// Age of the last poll from which on the database counts as lost.
const AGE_MAX: Duration = Duration::from_secs(3);
/// Time to leave the table of replicas at the end.
const LEAVE_MAX: Duration = Duration::from_secs(2);

/// A connection to the shared database. Clones share it.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    target: Arc<Target>,
    work: Arc<Link>,
    ship: Link,
    poller: Arc<Poller>,
    stop: CancellationToken,
    tasks: TaskTracker,
    number: OnceLock<u16>,
}

impl Database {
    /// Connects, and creates, changes or checks the tables.
    pub async fn open(settings: Settings) -> Result<Self, DatabaseError> {
        let Settings { url, ca, migrates } = settings;
        let tasks = TaskTracker::new();
        let target = Arc::new(Target {
            config: parse(url.expose())?,
            tls: Tls::new(ca.as_deref())?,
            tasks: tasks.clone(),
            notified: Notify::new(),
            contact: Contact::default(),
        });
        let work = Arc::new(Link::new(Role::Work, Arc::clone(&target)));
        if migrates {
            migrate_if_needed(&target, &work).await?;
        }
        migrate::check(version(&work).await?)?;
        let poller = Arc::new(Poller::new(Link::new(Role::Watch, Arc::clone(&target))));
        poller.poll().await?;
        let ship = Link::new(Role::Ship, Arc::clone(&target));
        let (stop, number) = (CancellationToken::new(), OnceLock::new());
        Ok(Self { inner: Arc::new(Inner { target, work, ship, poller, stop, tasks, number }) })
    }

    /// Takes a number in the table of replicas, and follows the database from then on. A process joins once.
    pub async fn join(&self, settings: ReplicaSettings) -> Result<u16, DatabaseError> {
        let retain_days = settings.retain_days;
        let number = self.inner.poller.join(settings).await?;
        if self.inner.number.set(number).is_ok() {
            let follower = Follower {
                poller: Arc::clone(&self.inner.poller),
                work: Arc::clone(&self.inner.work),
                target: Arc::clone(&self.inner.target),
                stop: self.inner.stop.clone(),
                retain_days,
            };
            self.inner.tasks.spawn(follower.run());
        }
        Ok(number)
    }

    /// Creates or changes the tables of a database, and nothing else.
    pub async fn migrate(settings: &Settings) -> Result<Migrations, DatabaseError> {
        let target = Arc::new(Target {
            config: parse(settings.url.expose())?,
            tls: Tls::new(settings.ca.as_deref())?,
            tasks: TaskTracker::new(),
            notified: Notify::new(),
            contact: Contact::default(),
        });
        migrate::migrate(&target).await
    }

    /// Runs one statement on the connection `work`.
    pub(crate) async fn query(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DatabaseError> {
        self.inner.work.query(sql, params).await
    }

    /// Runs a statement that changes nothing on the connection `work`. It is repeated if the connection broke.
    pub(crate) async fn read(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DatabaseError> {
        self.inner.work.read(sql, params).await
    }

    /// Runs one statement on the connection `ship`.
    pub(crate) async fn ship(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DatabaseError> {
        self.inner.ship.query(sql, params).await
    }

    /// Runs a statement that changes nothing on the connection `ship`. Searching the log may take long, and must not delay
    /// the keys.
    pub(crate) async fn read_log(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DatabaseError> {
        self.inner.ship.read(sql, params).await
    }

    /// The number that this process took when it joined; `None` if it is not a replica.
    pub fn replica_number(&self) -> Option<u16> {
        self.inner.number.get().copied()
    }

    /// Follows the counters of changes. They are confirmed twice a second, changed or not.
    pub fn topics(&self) -> watch::Receiver<TopicSeqs> {
        self.inner.poller.topics()
    }

    /// Follows the table of live replicas.
    pub fn replicas(&self) -> watch::Receiver<Arc<ReplicaTable>> {
        self.inner.poller.replicas()
    }

    /// Every row of the table of replicas, also those of dead ones.
    pub async fn all_replicas(&self) -> Result<Vec<replicas::Replica>, DatabaseError> {
        replicas::all(&self.inner.work).await
    }

    /// Polls now. Callers at the same time share a poll, and there are at most 20 in a second.
    pub async fn refresh(&self) -> Result<(), DatabaseError> {
        self.inner.poller.refresh().await
    }

    /// Reads the table of replicas now: one may have joined since the last heartbeat. Callers at the same time share a
    /// read, and there are at most 20 in a second.
    pub async fn refresh_replicas(&self) -> Result<(), DatabaseError> {
        self.inner.poller.refresh_replicas().await
    }

    pub(crate) fn note_lost_commits(&self) {
        self.inner.poller.note_lost_commits();
    }

    /// Sets what the next heartbeat reports.
    pub fn report(&self, own: OwnReplica) {
        self.inner.poller.report(own);
    }

    /// The keys that sign ids and states, the newest first.
    pub async fn signing_keys(&self) -> Result<Vec<Vec<u8>>, DatabaseError> {
        let rows = self.read("select key from haft.signing_key order by id desc", &[]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// The connection to the database.
    pub fn health(&self) -> DatabaseHealth {
        let age = self.inner.poller.age();
        let problem = (age > AGE_MAX).then(|| {
            let error = self.inner.target.contact.failure().unwrap_or(DatabaseError::Unreachable {
                cause: "it does not respond".to_owned(),
                age: None,
            });
            (error.to_string(), error.remedy())
        });
        DatabaseHealth { age, problem, lost_commits: self.inner.poller.has_lost_commits() }
    }

    /// The database at a glance.
    pub async fn status(&self) -> Result<DatabaseStatus, DatabaseError> {
        let Version { version, works_from } = version(&self.inner.work).await?;
        let sql = "
            select current_setting('server_version'), r.revision || '-' || left(r.token, 8),
                (select count(*) from haft.api_key),
                (select coalesce(sum(greatest(c.reltuples, 0)), 0)::int8 from pg_inherits i
                    join pg_class c on c.oid = i.inhrelid where i.inhparent = 'haft.call'::regclass)
            from haft.registry r";
        let rows = self.read(sql, &[]).await?;
        let row = rows.first().ok_or(DatabaseError::NoSchema)?;
        Ok(DatabaseStatus {
            server_version: row.get(0),
            schema_version: version,
            works_from,
            revision: row.get(1),
            keys: row.get(2),
            calls: row.get(3),
            replicas: self.all_replicas().await?,
        })
    }

    /// Leaves the table of replicas and closes the connections.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        if let Some(registered) = self.inner.poller.registered() {
            let left = timeout(LEAVE_MAX, registered.leave(&self.inner.work)).await;
            if let Ok(Err(error)) = left {
                tracing::warn!(%error, "the row of this replica stays for 10 s");
            }
        }
        self.inner.tasks.close();
    }
}

async fn version(link: &Link) -> Result<Version, DatabaseError> {
    let rows = link.read(migrate::VERSION, &[]).await?;
    let row = rows.first().ok_or(DatabaseError::NoSchema)?;
    Ok(Version { version: row.get(0), works_from: row.get(1) })
}

async fn migrate_if_needed(target: &Arc<Target>, link: &Link) -> Result<(), DatabaseError> {
    let is_current = match version(link).await {
        Ok(found) => found.version >= SCHEMA_VERSION,
        Err(DatabaseError::NoSchema) => false,
        Err(error) => return Err(error),
    };
    if is_current {
        return Ok(());
    }
    let Migrations { before, now } = migrate::migrate(target).await?;
    tracing::info!("migrated the tables of the database from version {before} to {now}");
    Ok(())
}
