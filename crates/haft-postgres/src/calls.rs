//! Looks calls up in the log of all replicas.

use haft::record::{COLUMN_BYTES_MAX, Filter, LoggedCall, column};
use jiff::Timestamp;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::error::DatabaseError;
use crate::log::{PostgresLog, word};

/// Number of rows that are looked at in one statement.
const PAGE: i64 = 500;
/// Size of the entries that are read in one statement, unless one is larger.
const CHUNK_BYTES: i64 = 4 << 20;

/// The newest ids before `$1`. A filter that is null lets everything through.
const FIND: &str = "
    select execution_id, octet_length(entry)::int8 from haft.call
    where execution_id < $1 and execution_id >= $2
        and ($3::text is null or tool = $3) and ($4::text is null or server = $4)
        and ($5::text is null or caller = $5) and ($6::text is null or session = $6)
        and ($7::text is null or status = $7) and ($8::text is null or code = $8)
        and ($9::text is null or strpos(lower(entry), $9) > 0)
    order by execution_id desc limit $10";

const ENTRIES: &str =
    "select execution_id, entry from haft.call where execution_id = any($1) order by execution_id";

/// A call that was found. Entries may be large, and there may be many, so they are read later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundCall {
    /// Its id.
    pub execution_id: Uuid,
    /// The size of its entry.
    pub bytes: i64,
}

/// The columns of a filter.
struct Columns {
    tool: Option<String>,
    server: Option<String>,
    caller: Option<String>,
    session: Option<String>,
    status: Option<&'static str>,
    code: Option<String>,
    text: Option<String>,
    /// True if an entry that the columns select may still not match.
    is_inexact: bool,
}

impl Columns {
    fn of(filter: &Filter) -> Self {
        let texts = [&filter.tool, &filter.server, &filter.caller, &filter.session];
        let is_long = texts.into_iter().flatten().any(|text| text.len() > COLUMN_BYTES_MAX);
        let cut = |text: &Option<String>| text.as_deref().map(column);
        // A text with other characters may be written with escapes in the entry.
        let is_plain = |text: &&String| {
            text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\')
        };
        Self {
            tool: cut(&filter.tool),
            server: cut(&filter.server),
            caller: cut(&filter.caller),
            session: cut(&filter.session),
            status: filter.status.map(word),
            code: filter.code.map(|code| format!("{code:?}")),
            text: filter.text.as_ref().filter(is_plain).map(|text| text.to_lowercase()),
            is_inexact: is_long || filter.text.is_some(),
        }
    }
}

impl PostgresLog {
    /// Finds the newest calls that `filter` selects, newest first, by the time of their ids.
    pub async fn find(&self, filter: &Filter) -> Result<Vec<FoundCall>, DatabaseError> {
        let limit = filter.limit.unwrap_or(usize::MAX);
        let (mut before, from) = match &filter.execution_id {
            None => (
                filter.until.map_or(Uuid::max(), first_id),
                filter.since.map_or(Uuid::nil(), first_id),
            ),
            Some(id) => match Uuid::try_parse(id) {
                Ok(id) => (Uuid::from_u128(id.as_u128().saturating_add(1)), id),
                Err(_) => return Ok(Vec::new()),
            },
        };
        let columns = Columns::of(filter);
        let mut found = Vec::new();
        while found.len() < limit {
            let page = self.page(&columns, before, from).await?;
            let Some(last) = page.last() else { break };
            before = last.execution_id;
            let is_last = page.len() < usize::try_from(PAGE).unwrap_or(usize::MAX);
            if columns.is_inexact {
                found.extend(self.matching(filter, &page).await?);
            } else {
                found.extend(page);
            }
            if is_last {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    async fn page(
        &self,
        columns: &Columns,
        before: Uuid,
        from: Uuid,
    ) -> Result<Vec<FoundCall>, DatabaseError> {
        let params = [
            (&before as _, Type::UUID),
            (&from as _, Type::UUID),
            (&columns.tool as _, Type::TEXT),
            (&columns.server as _, Type::TEXT),
            (&columns.caller as _, Type::TEXT),
            (&columns.session as _, Type::TEXT),
            (&columns.status as _, Type::TEXT),
            (&columns.code as _, Type::TEXT),
            (&columns.text as _, Type::TEXT),
            (&PAGE as _, Type::INT8),
        ];
        let rows = self.database.read_log(FIND, &params).await?;
        let found =
            rows.iter().map(|row| FoundCall { execution_id: row.get(0), bytes: row.get(1) });
        Ok(found.collect())
    }

    /// Those of `page` whose entries match.
    async fn matching(
        &self,
        filter: &Filter,
        page: &[FoundCall],
    ) -> Result<Vec<FoundCall>, DatabaseError> {
        let exact = Filter { since: None, until: None, ..filter.clone() };
        let mut matching = Vec::new();
        for chunk in chunks(page) {
            for (id, entry) in self.entries(chunk).await? {
                let call: Option<LoggedCall> = serde_json::from_str(&entry).ok();
                if call.is_some_and(|call| exact.matches(&call)) {
                    matching.extend(chunk.iter().find(|found| found.execution_id == id));
                }
            }
        }
        matching.sort_by_key(|found: &FoundCall| std::cmp::Reverse(found.execution_id));
        Ok(matching)
    }

    /// Reads the entries of some calls, in the order of their ids. Calls that expired meanwhile are left out.
    pub async fn entries(&self, calls: &[FoundCall]) -> Result<Vec<(Uuid, String)>, DatabaseError> {
        let ids: Vec<Uuid> = calls.iter().map(|call| call.execution_id).collect();
        let rows = self.database.read_log(ENTRIES, &[(&ids, Type::UUID_ARRAY)]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }
}

/// Splits calls into parts whose entries can be read together.
pub fn chunks(calls: &[FoundCall]) -> impl Iterator<Item = &[FoundCall]> {
    let mut rest = calls;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let count = rest
            .iter()
            .take_while(|call| {
                bytes += call.bytes;
                bytes <= CHUNK_BYTES
            })
            .count()
            .max(1)
            .min(rest.len());
        let (chunk, after) = rest.split_at(count);
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// The first id at a time.
fn first_id(at: Timestamp) -> Uuid {
    let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
    Uuid::from_u128(u128::from(millis) << 80)
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, FoundCall, chunks, first_id};
    use uuid::Uuid;

    #[test]
    fn a_chunk_has_a_large_entry_alone_and_small_ones_together() {
        let sizes = [1, 1, 2 * CHUNK_BYTES, 1, CHUNK_BYTES - 1, 1];
        let found = |bytes: &i64| FoundCall { execution_id: Uuid::nil(), bytes: *bytes };
        let calls: Vec<FoundCall> = sizes.iter().map(found).collect();
        let counts: Vec<usize> = chunks(&calls).map(<[FoundCall]>::len).collect();
        assert_eq!(counts, [2, 1, 2, 1]);
        assert_eq!(chunks(&[]).count(), 0);
    }

    #[test]
    fn an_id_sorts_after_the_first_one_of_its_millisecond() {
        let id = Uuid::now_v7();
        let at = jiff::Timestamp::now();
        assert!(first_id(at - jiff::SignedDuration::from_secs(1)) < id);
        assert!(first_id(at + jiff::SignedDuration::from_secs(1)) > id);
    }
}
