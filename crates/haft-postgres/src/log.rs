//! The execution log in the database: batches of a spool, stored together with its cursor.

use haft::record::{FileCursor, LogSink, ShipBatch, ShipRow, Shipped, SinkError, SpoolId};
use haft::{BoxFuture, Status};
use tokio_postgres::types::Type;

use crate::database::Database;
use crate::error::DatabaseError;

const CURSOR: &str = "select file, at from haft.spool where id = $1";
const CURSOR_OF_FILE: &str = "select at from haft.spool where id = $1 and file = $2";

/// Moves the cursor if it is at the expected position, and stores the rows if it moved. A file without a cursor is at 0.
/// Rows are stored in the order of their ids, so that replicas do not wait for each other in a circle.
const SHIP: &str = "
    with moved as (
        insert into haft.spool as spool (id, file, at)
        select $1, $2, $4
        where $3 = 0 or exists (select from haft.spool where id = $1 and file = $2)
        on conflict (id, file) do update set at = excluded.at, updated = now() where spool.at = $3
        returning file
    ), stored as (
        insert into haft.call (execution_id, replica, tool, server, caller, session, status, code,
            queued_ms, duration_ms, entry)
        select r.execution_id, $5, r.tool, r.server, r.caller, r.session, r.status, r.code,
            r.queued_ms, r.duration_ms, r.entry
        from moved, unnest($6::uuid[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
            $12::text[], $13::int8[], $14::int8[], $15::text[])
            as r (execution_id, tool, server, caller, session, status, code, queued_ms, duration_ms,
                entry)
        order by r.execution_id
        on conflict do nothing
    )
    select file from moved";

const FORGET: &str = "delete from haft.spool where id = $1 and file = $2 and at = $3";

/// The execution log in the database.
#[derive(Clone)]
pub struct PostgresLog {
    pub(crate) database: Database,
}

impl PostgresLog {
    /// The log in this database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    async fn cursors(&self, spool: &SpoolId) -> Result<Vec<FileCursor>, DatabaseError> {
        let rows = self.database.ship(CURSOR, &[(&spool.to_string(), Type::TEXT)]).await?;
        let cursor = |row: &tokio_postgres::Row| FileCursor {
            file: row.get(0),
            at: u64::try_from(row.get::<_, i64>(1)).unwrap_or(0),
        };
        Ok(rows.iter().map(cursor).collect())
    }

    async fn store(
        &self,
        spool: &SpoolId,
        from: &FileCursor,
        batch: &ShipBatch,
    ) -> Result<Shipped, DatabaseError> {
        let spool = spool.to_string();
        let replica = self.database.replica_number().map_or(0, i32::from);
        let (at, to) = (position(from.at), position(batch.to));
        let rows = &batch.rows;
        let ids: Vec<uuid::Uuid> = rows.iter().map(|row| row.execution_id).collect();
        let tools = texts(rows, |row| Some(&row.tool));
        let servers = texts(rows, |row| row.server.as_deref());
        let callers = texts(rows, |row| row.caller.as_deref());
        let sessions = texts(rows, |row| row.session.as_deref());
        let statuses = texts(rows, |row| Some(word(row.status)));
        let codes = texts(rows, |row| row.code.as_deref());
        let queued: Vec<i64> = rows.iter().map(|row| row.queued_ms).collect();
        let durations: Vec<i64> = rows.iter().map(|row| row.duration_ms).collect();
        let entries = texts(rows, |row| Some(&row.entry));
        let params = [
            (&spool as _, Type::TEXT),
            (&from.file as _, Type::TEXT),
            (&at as _, Type::INT8),
            (&to as _, Type::INT8),
            (&replica as _, Type::INT4),
            (&ids as _, Type::UUID_ARRAY),
            (&tools as _, Type::TEXT_ARRAY),
            (&servers as _, Type::TEXT_ARRAY),
            (&callers as _, Type::TEXT_ARRAY),
            (&sessions as _, Type::TEXT_ARRAY),
            (&statuses as _, Type::TEXT_ARRAY),
            (&codes as _, Type::TEXT_ARRAY),
            (&queued as _, Type::INT8_ARRAY),
            (&durations as _, Type::INT8_ARRAY),
            (&entries as _, Type::TEXT_ARRAY),
        ];
        if !self.database.ship(SHIP, &params).await?.is_empty() {
            return Ok(Shipped::Moved);
        }
        let params = [(&spool as _, Type::TEXT), (&from.file as _, Type::TEXT)];
        let rows = self.database.ship(CURSOR_OF_FILE, &params).await?;
        let at = rows.first().map_or(0, |row| u64::try_from(row.get::<_, i64>(0)).unwrap_or(0));
        Ok(Shipped::At(at))
    }
}

impl LogSink for PostgresLog {
    fn cursor<'a>(
        &'a self,
        spool: &'a SpoolId,
    ) -> BoxFuture<'a, Result<Vec<FileCursor>, SinkError>> {
        Box::pin(async { self.cursors(spool).await.map_err(sink_error) })
    }

    fn ship<'a>(
        &'a self,
        spool: &'a SpoolId,
        from: &'a FileCursor,
        batch: &'a ShipBatch,
    ) -> BoxFuture<'a, Result<Shipped, SinkError>> {
        Box::pin(async move { self.store(spool, from, batch).await.map_err(sink_error) })
    }

    fn forget<'a>(
        &'a self,
        spool: &'a SpoolId,
        file: &'a FileCursor,
    ) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async move {
            let (spool, at) = (spool.to_string(), position(file.at));
            let params =
                [(&spool as _, Type::TEXT), (&file.file as _, Type::TEXT), (&at as _, Type::INT8)];
            self.database.ship(FORGET, &params).await.map(drop).map_err(sink_error)
        })
    }
}

fn texts<'a>(
    rows: &'a [ShipRow],
    field: impl Fn(&'a ShipRow) -> Option<&'a str>,
) -> Vec<Option<&'a str>> {
    rows.iter().map(field).collect()
}

/// A status in its column.
pub(crate) fn word(status: Status) -> &'static str {
    match status {
        Status::Success => "success",
        Status::Error => "error",
    }
}

fn position(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

#[allow(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn sink_error(error: DatabaseError) -> SinkError {
    let problem = error.to_string();
    match error {
        DatabaseError::Content { .. } => SinkError::Rejected { problem },
        DatabaseError::Settings { .. }
        | DatabaseError::Unreachable { .. }
        | DatabaseError::TimedOut { .. }
        | DatabaseError::Ambiguous { .. }
        | DatabaseError::ReadOnly
        | DatabaseError::Refused { .. }
        | DatabaseError::NoSchema
        | DatabaseError::SchemaTooOld { .. }
        | DatabaseError::SchemaTooNew { .. }
        | DatabaseError::Other { .. } => SinkError::Unavailable { problem, remedy: error.remedy() },
    }
}

impl std::fmt::Debug for PostgresLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresLog").finish_non_exhaustive()
    }
}
