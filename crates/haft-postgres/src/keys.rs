//! API keys in the database. A change of a key raises the counter of its topic in the same statement.

use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::database::Database;
use crate::error::DatabaseError;

/// Time is exchanged in microseconds after 1970.
const LIST: &str = "
    select t.seq, k.name, k.entry, (extract(epoch from k.last_used) * 1000000)::int8
    from haft.topic t left join haft.api_key k on true
    where t.name = 'keys' order by k.created, k.name";

const INSERT: &str = "
    with before as (
        select count(*) as total, count(*) filter (where name = $1) as named from haft.api_key
    ), inserted as (
        insert into haft.api_key (name, digest, scope, profile, created, entry)
        select $1, $2, $3, $4, to_timestamp($5::float8), $6 from before
        where total < $7 and named = 0
        on conflict do nothing
        returning name
    ), counted as (
        update haft.topic set seq = seq + 1 where name = 'keys' and exists (select from inserted)
    )
    select exists (select from inserted), named > 0 or total < $7,
        (select pg_notify('haft', 'keys') from inserted)::text
    from before";

const REPLACE: &str = "
    with changed as (
        update haft.api_key set digest = $3, entry = $4 where name = $1 and digest = $2
        returning name
    ), counted as (
        update haft.topic set seq = seq + 1 where name = 'keys' and exists (select from changed)
    )
    select pg_notify('haft', 'keys') from changed";

const DELETE: &str = "
    with gone as (
        delete from haft.api_key where name = $1 and digest = $2 returning name
    ), counted as (
        update haft.topic set seq = seq + 1 where name = 'keys' and exists (select from gone)
    )
    select pg_notify('haft', 'keys') from gone";

/// Locked in the order of their hashes, so that replicas that note the use of the same keys do not wait for each other
/// in a circle.
const NOTE_USE: &str = "
    with noted as (
        select digest, to_timestamp(at / 1000000.0) as at
        from unnest($1::text[], $2::int8[]) as used (digest, at)
    ), locked as (
        select k.digest, noted.at from haft.api_key k join noted on noted.digest = k.digest
        where k.last_used is null or k.last_used < noted.at
        order by k.digest for no key update of k
    )
    update haft.api_key k set last_used = greatest(k.last_used, locked.at)
    from locked where k.digest = locked.digest";

/// Every key, and the counter of changes that they belong to.
#[derive(Debug, Clone)]
pub struct KeyRows {
    /// The counter of [`Topic::Keys`](crate::Topic::Keys).
    pub seq: i64,
    /// The keys, in the order of their creation.
    pub keys: Vec<KeyRow>,
}

/// One key.
#[derive(Debug, Clone)]
pub struct KeyRow {
    /// Its name.
    pub name: String,
    /// The key as the file of keys has it.
    pub entry: String,
    /// When it was last used.
    pub last_used: Option<Timestamp>,
}

/// A key to store.
#[derive(Debug, Clone)]
pub struct NewKeyRow<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its hash.
    pub digest: &'a str,
    /// Its scope.
    pub scope: &'a str,
    /// The profile that it is bound to.
    pub profile: Option<&'a str>,
    /// When it was made.
    pub created: Timestamp,
    /// The key as the file of keys has it.
    pub entry: &'a str,
}

/// The outcome of storing a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyInserted {
    /// It is stored.
    Inserted,
    /// A key has its name.
    Taken,
    /// There are as many keys as there may be.
    TooMany,
}

impl Database {
    /// Reads every key.
    pub async fn keys(&self) -> Result<KeyRows, DatabaseError> {
        let rows = self.read(LIST, &[]).await?;
        let seq = rows.first().ok_or(DatabaseError::NoSchema)?.get(0);
        Ok(KeyRows { seq, keys: rows.iter().filter_map(key).collect() })
    }

    /// Stores a key, unless its name is taken or there are `keys_max` already.
    pub async fn insert_key(
        &self,
        new: &NewKeyRow<'_>,
        keys_max: i64,
    ) -> Result<KeyInserted, DatabaseError> {
        #[allow(clippy::cast_precision_loss, reason = "whole seconds are precise enough")]
        let created = new.created.as_second() as f64;
        let params = [
            (&new.name as _, Type::TEXT),
            (&new.digest as _, Type::TEXT),
            (&new.scope as _, Type::TEXT),
            (&new.profile as _, Type::TEXT),
            (&created as _, Type::FLOAT8),
            (&new.entry as _, Type::TEXT),
            (&keys_max as _, Type::INT8),
        ];
        let rows = self.query(INSERT, &params).await?;
        let row = rows.first().ok_or(DatabaseError::NoSchema)?;
        Ok(match (row.get(0), row.get(1)) {
            (true, _) => KeyInserted::Inserted,
            // Also one that was stored at the same time.
            (false, true) => KeyInserted::Taken,
            (false, false) => KeyInserted::TooMany,
        })
    }

    /// Replaces the secret of a key, if it still is `digest`.
    pub async fn replace_key(
        &self,
        digest: &str,
        new: &NewKeyRow<'_>,
    ) -> Result<bool, DatabaseError> {
        let params = [
            (&new.name as _, Type::TEXT),
            (&digest as _, Type::TEXT),
            (&new.digest as _, Type::TEXT),
            (&new.entry as _, Type::TEXT),
        ];
        Ok(!self.query(REPLACE, &params).await?.is_empty())
    }

    /// Deletes a key, if its secret still is `digest`.
    pub async fn delete_key(&self, name: &str, digest: &str) -> Result<bool, DatabaseError> {
        let params = [(&name as _, Type::TEXT), (&digest as _, Type::TEXT)];
        Ok(!self.query(DELETE, &params).await?.is_empty())
    }

    /// Notes the last use of keys, by their hash. The later time of each key stays.
    pub async fn note_key_use(&self, uses: &[(String, Timestamp)]) -> Result<(), DatabaseError> {
        let (digests, times): (Vec<&str>, Vec<i64>) =
            uses.iter().map(|(digest, at)| (digest.as_str(), at.as_microsecond())).unzip();
        let params = [(&digests as _, Type::TEXT_ARRAY), (&times as _, Type::INT8_ARRAY)];
        self.query(NOTE_USE, &params).await.map(drop)
    }
}

/// `None` for the row that has the counter alone.
fn key(row: &Row) -> Option<KeyRow> {
    let name: Option<String> = row.get(1);
    let last_used: Option<i64> = row.get(3);
    let last_used = last_used.and_then(|at| Timestamp::from_microsecond(at).ok());
    Some(KeyRow { name: name?, entry: row.get(2), last_used })
}
