//! Numbered migrations, each in one transaction under a lock.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Client;

use crate::connection::{Target, connect};
use crate::error::DatabaseError;
use crate::schema::SCHEMA_VERSION;

/// The migrations in their order; the first makes version 1.
const MIGRATIONS: [&str; SCHEMA_VERSION as usize] = [
    include_str!("../migrations/0001_shared_state.sql"),
    include_str!("../migrations/0002_agents.sql"),
];

/// Held by the process that migrates, until the end of its transaction.
const LOCK: i64 = 0x6861_6674;
/// The longest migration, with the wait for another process.
const MIGRATION_MAX: Duration = Duration::from_mins(10);

/// The version of the tables in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) version: i32,
    /// The oldest version whose Haft can use them.
    pub(crate) works_from: i32,
}

/// The result of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrations {
    /// The version before; 0 without tables.
    pub before: i32,
    /// The version now.
    pub now: i32,
}

/// Brings the tables to [`SCHEMA_VERSION`]. Newer tables stay unchanged.
pub(crate) async fn migrate(target: &Arc<Target>) -> Result<Migrations, DatabaseError> {
    let (mut client, driver) = connect(target).await?;
    let migrated = timeout(MIGRATION_MAX, apply(&mut client)).await;
    driver.abort();
    match migrated {
        Ok(migrated) => migrated,
        Err(_) => Err(DatabaseError::TimedOut { after: MIGRATION_MAX }),
    }
}

async fn apply(client: &mut Client) -> Result<Migrations, DatabaseError> {
    let failed = |error: tokio_postgres::Error| DatabaseError::of_statement(&error, MIGRATION_MAX);
    let before = version(client).await?.map_or(0, |found| found.version);
    let mut now = before;
    for (number, sql) in (1..).zip(MIGRATIONS) {
        if number <= now {
            continue;
        }
        let transaction = client.transaction().await.map_err(failed)?;
        let lock = format!("select pg_advisory_xact_lock({LOCK})");
        transaction.batch_execute(&lock).await.map_err(failed)?;
        // Another process may have done it while this one waited.
        let found = version(transaction.client()).await?.map_or(0, |found| found.version);
        if found < number {
            let schema = "create schema if not exists haft";
            if number == 1 && !has_schema(transaction.client()).await? {
                transaction.batch_execute(schema).await.map_err(failed)?;
            }
            transaction.batch_execute(sql).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)?;
        now = found.max(number);
    }
    Ok(Migrations { before, now })
}

async fn has_schema(client: &Client) -> Result<bool, DatabaseError> {
    let sql = "select exists (select from pg_namespace where nspname = 'haft')";
    let rows = client.query_typed(sql, &[]).await;
    let rows = rows.map_err(|error| DatabaseError::of_statement(&error, MIGRATION_MAX))?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// The version of the tables; `None` without them.
async fn version(client: &Client) -> Result<Option<Version>, DatabaseError> {
    let failed = |error: tokio_postgres::Error| DatabaseError::of_statement(&error, MIGRATION_MAX);
    // `to_regclass` could answer from a cache that is older than the lock of the migration.
    let exists = "
        select exists (
            select from pg_class join pg_namespace on pg_namespace.oid = pg_class.relnamespace
            where nspname = 'haft' and relname = 'meta'
        )";
    let rows = client.query_typed(exists, &[]).await.map_err(failed)?;
    if !rows.first().is_some_and(|row| row.get(0)) {
        return Ok(None);
    }
    let rows = client.query_typed(VERSION, &[]).await.map_err(failed)?;
    Ok(rows.first().map(|row| Version { version: row.get(0), works_from: row.get(1) }))
}

pub(crate) const VERSION: &str = "select version, works_from from haft.meta";

/// Checks that this Haft can use tables of a version.
pub(crate) fn check(found: Version) -> Result<(), DatabaseError> {
    let Version { version, works_from } = found;
    if works_from > SCHEMA_VERSION {
        return Err(DatabaseError::SchemaTooNew { found: version, works_from });
    }
    if version < SCHEMA_VERSION {
        return Err(DatabaseError::SchemaTooOld { found: version });
    }
    Ok(())
}
