//! The table of replicas: numbers, addresses, heartbeats.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::connection::Link;
use crate::error::DatabaseError;
use crate::settings::ReplicaSettings;

/// Difference between the clocks of a replica and the database that is reported.
const SKEW_MAX: f64 = 5.0;
/// Attempts at a number that no live replica has.
const NUMBERS_TRIED_MAX: usize = 100;

/// The replicas that are alive.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplicaTable {
    /// The number of this replica; 0 if this process is none.
    pub own: u16,
    /// The live replicas with this one, in the order of their numbers.
    pub replicas: Vec<Replica>,
}

impl ReplicaTable {
    /// The live replica with a number.
    pub fn get(&self, number: u16) -> Option<&Replica> {
        self.replicas.iter().find(|replica| replica.number == number)
    }
}

/// One replica, as it last reported itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Replica {
    /// Its number, which ids of its state carry.
    pub number: u16,
    /// Its identity, another one after each start.
    pub id: Uuid,
    /// The address at which other replicas reach it.
    pub address: String,
    /// Its version of Haft.
    pub version: String,
    /// The revision of the registry that it uses.
    pub revision: Option<String>,
    /// The digest of its configuration.
    pub config: String,
    /// Its problem, in one line.
    pub problem: Option<String>,
    /// The time since its last heartbeat, by the clock of the database.
    pub age: Duration,
}

/// The part of a replica's row that changes while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnReplica {
    /// The revision of the registry in use.
    pub revision: Option<String>,
    /// The digest of the configuration in use.
    pub config: String,
    /// The problem, in one line.
    pub problem: Option<String>,
}

/// This process in the table.
#[derive(Debug, Clone)]
pub(crate) struct Registered {
    pub(crate) number: u16,
    pub(crate) id: Uuid,
    settings: ReplicaSettings,
}

const REGISTER: &str = "
    insert into haft.replica (number, id, address, version, config)
    values (coalesce($1, nextval('haft.replica_number')::int4), $2, $3, $4, $5)
    on conflict (number) do update
        set id = excluded.id, address = excluded.address, version = excluded.version,
            config = excluded.config, revision = null, problem = null, started = now(), seen = now()
        where replica.seen < now() - interval '10 seconds' or replica.id = excluded.id
    returning number";

const BEAT: &str = "
    with beat as (
        update haft.replica set seen = now(), revision = $3, config = $4, problem = $5
        where number = $1 and id = $2 returning number
    )
    select r.number, r.id, r.address, r.version, r.revision, r.config, r.problem,
        greatest(extract(epoch from now() - r.seen), 0)::float8,
        extract(epoch from clock_timestamp())::float8,
        exists (select from beat)
    from haft.replica r
    where r.seen > now() - interval '10 seconds' or (r.number = $1 and r.id = $2)
    order by r.number";

const ALL: &str = "
    select number, id, address, version, revision, config, problem,
        greatest(extract(epoch from now() - seen), 0)::float8
    from haft.replica order by number";

/// The result of a heartbeat.
pub(crate) struct Beat {
    pub(crate) table: ReplicaTable,
    /// The database's clock, in seconds since 1970.
    clock: Option<f64>,
    /// False if the row of this replica is gone or belongs to another.
    pub(crate) is_registered: bool,
}

impl Registered {
    /// Takes a number that no live replica has.
    pub(crate) async fn register(
        link: &Link,
        settings: ReplicaSettings,
    ) -> Result<Self, DatabaseError> {
        let mut registered = Self { number: 0, id: Uuid::now_v7(), settings };
        registered.take_number(link, None).await?;
        Ok(registered)
    }

    /// Takes the number back after the row was deleted, or another number if a live replica has it.
    pub(crate) async fn register_again(&mut self, link: &Link) -> Result<(), DatabaseError> {
        self.take_number(link, Some(i32::from(self.number))).await
    }

    async fn take_number(
        &mut self,
        link: &Link,
        mut wanted: Option<i32>,
    ) -> Result<(), DatabaseError> {
        for _ in 0..NUMBERS_TRIED_MAX {
            let ReplicaSettings { address, version, config, retain_days: _ } = &self.settings;
            let rows = link
                .query(
                    REGISTER,
                    &[
                        (&wanted, Type::INT4),
                        (&self.id, Type::UUID),
                        (address, Type::TEXT),
                        (version, Type::TEXT),
                        (config, Type::TEXT),
                    ],
                )
                .await?;
            if let Some(row) = rows.first() {
                self.number = number(row)?;
                return Ok(());
            }
            wanted = None;
        }
        Err(DatabaseError::Other { cause: "no number of a replica is free".to_owned() })
    }

    /// Renews the row and reads the table.
    pub(crate) async fn beat(&self, link: &Link, own: &OwnReplica) -> Result<Beat, DatabaseError> {
        let OwnReplica { revision, config, problem } = own;
        let rows = link
            .query(
                BEAT,
                &[
                    (&i32::from(self.number), Type::INT4),
                    (&self.id, Type::UUID),
                    (revision, Type::TEXT),
                    (config, Type::TEXT),
                    (problem, Type::TEXT),
                ],
            )
            .await?;
        let replicas = rows.iter().map(replica).collect::<Result<Vec<_>, _>>()?;
        let table = ReplicaTable { own: self.number, replicas };
        let clock = rows.first().map(|row| row.get(8));
        Ok(Beat { table, clock, is_registered: rows.first().is_some_and(|row| row.get(9)) })
    }

    /// Deletes the row, so that other replicas do not wait for this one.
    pub(crate) async fn leave(&self, link: &Link) -> Result<(), DatabaseError> {
        let sql = "delete from haft.replica where number = $1 and id = $2";
        let number = i32::from(self.number);
        link.query(sql, &[(&number, Type::INT4), (&self.id, Type::UUID)]).await.map(drop)
    }
}

impl Beat {
    /// Problems that the table shows: clocks that differ, and an address that two replicas have.
    pub(crate) fn problem(&self, now: f64) -> Option<String> {
        let skew = self.clock.map(|clock| now - clock).filter(|skew| skew.abs() > SKEW_MAX);
        if let Some(skew) = skew {
            let (seconds, word) = (skew.abs(), if skew > 0.0 { "ahead of" } else { "behind" });
            return Some(format!(
                "its clock is {seconds:.0} s {word} the database's: synchronize both, for example with NTP"
            ));
        }
        let own = self.table.get(self.table.own)?;
        let mut others = self.table.replicas.iter().filter(|other| other.number != own.number);
        let same = others.find(|other| other.address == own.address)?;
        let Replica { number, address, .. } = same;
        Some(format!("replica {number} has the same address {address}: set `shared.advertise`"))
    }
}

/// Every row of the table, also those of dead replicas.
pub(crate) async fn all(link: &Link) -> Result<Vec<Replica>, DatabaseError> {
    link.read(ALL, &[]).await?.iter().map(replica).collect()
}

fn number(row: &Row) -> Result<u16, DatabaseError> {
    u16::try_from(row.get::<_, i32>(0))
        .map_err(|_| DatabaseError::Other { cause: "a replica's number is too large".to_owned() })
}

fn replica(row: &Row) -> Result<Replica, DatabaseError> {
    Ok(Replica {
        number: number(row)?,
        id: row.get(1),
        address: row.get(2),
        version: row.get(3),
        revision: row.get(4),
        config: row.get(5),
        problem: row.get(6),
        age: Duration::from_secs_f64(row.get::<_, f64>(7).clamp(0.0, 1e9)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(clock: f64) -> Beat {
        Beat { table: ReplicaTable::default(), clock: Some(clock), is_registered: true }
    }

    #[test]
    fn clocks_that_differ_by_more_than_five_seconds_are_a_problem() {
        assert_eq!(beat(100.0).problem(104.0), None);
        let ahead = beat(100.0).problem(107.0).unwrap();
        assert_eq!(
            ahead,
            "its clock is 7 s ahead of the database's: synchronize both, for example with NTP"
        );
        let behind = beat(100.0).problem(90.0).unwrap();
        assert_eq!(
            behind,
            "its clock is 10 s behind the database's: synchronize both, for example with NTP"
        );
    }
}
