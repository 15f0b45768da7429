//! Standing approvals in the database. A change raises the counter of their topic in the same statement.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::database::Database;
use crate::error::DatabaseError;

const LIST: &str = "
    select t.seq, a.tool, a.owner, a.session, a.server, a.rule, a.definition
    from haft.topic t left join (select * from haft.approval order by id desc limit $1) a on true
    where t.name = 'approvals' order by a.id";

/// The deletion does not see the row that is inserted, so it leaves one less than the maximum.
const INSERT: &str = "
    with inserted as (
        insert into haft.approval (digest, tool, owner, session, server, rule, definition)
        values ($1, $2, $3, $4, $5, $6, $7)
        on conflict (digest) do nothing
        returning id
    ), evicted as (
        delete from haft.approval where exists (select from inserted)
        and id in (select id from haft.approval order by id desc offset $8)
    ), counted as (
        update haft.topic set seq = seq + 1 where name = 'approvals' and exists (select from inserted)
    )
    select pg_notify('haft', 'approvals') from inserted";

const DELETE: &str = "
    with gone as (
        delete from haft.approval where digest = $1 returning id
    ), counted as (
        update haft.topic set seq = seq + 1 where name = 'approvals' and exists (select from gone)
    )
    select pg_notify('haft', 'approvals') from gone";

/// Every standing approval, and the counter of changes that they belong to.
#[derive(Debug, Clone)]
pub struct ApprovalRows {
    /// The counter of [`Topic::Approvals`](crate::Topic::Approvals).
    pub seq: i64,
    /// The approvals, the oldest first.
    pub approvals: Vec<ApprovalRow>,
}

/// A standing approval: the calls that it covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    /// The tool.
    pub tool: String,
    /// The owner of the calls.
    pub owner: Option<String>,
    /// Their session.
    pub session: Option<String>,
    /// The server of the tool.
    pub server: Option<String>,
    /// The rule that asked.
    pub rule: Option<String>,
    /// The hash of the tool's definition.
    pub definition: String,
}

impl Database {
    /// Reads the last `approvals_max` standing approvals.
    pub async fn approvals(&self, approvals_max: i64) -> Result<ApprovalRows, DatabaseError> {
        let rows = self.read(LIST, &[(&approvals_max as _, Type::INT8)]).await?;
        let seq = rows.first().ok_or(DatabaseError::NoSchema)?.get(0);
        Ok(ApprovalRows { seq, approvals: rows.iter().filter_map(approval).collect() })
    }

    /// Stores a standing approval that `digest` identifies, once. The oldest beyond `approvals_max` are deleted.
    pub async fn insert_approval(
        &self,
        digest: &str,
        new: &ApprovalRow,
        approvals_max: i64,
    ) -> Result<(), DatabaseError> {
        let ApprovalRow { tool, owner, session, server, rule, definition } = new;
        let rest = approvals_max.saturating_sub(1).max(0);
        let params = [
            (&digest as _, Type::TEXT),
            (tool as _, Type::TEXT),
            (owner as _, Type::TEXT),
            (session as _, Type::TEXT),
            (server as _, Type::TEXT),
            (rule as _, Type::TEXT),
            (definition as _, Type::TEXT),
            (&rest as _, Type::INT8),
        ];
        // A second time it changes nothing.
        self.read(INSERT, &params).await.map(drop)
    }

    /// Deletes a standing approval. Returns false if there is none.
    pub async fn delete_approval(&self, digest: &str) -> Result<bool, DatabaseError> {
        Ok(!self.query(DELETE, &[(&digest as _, Type::TEXT)]).await?.is_empty())
    }
}

/// `None` for the row that has the counter alone.
fn approval(row: &Row) -> Option<ApprovalRow> {
    let tool: Option<String> = row.get(1);
    Some(ApprovalRow {
        tool: tool?,
        owner: row.get(2),
        session: row.get(3),
        server: row.get(4),
        rule: row.get(5),
        definition: row.get(6),
    })
}
