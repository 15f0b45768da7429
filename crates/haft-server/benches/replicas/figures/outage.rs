//! Calls while the database is gone: none may fail, and each must have one entry afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::{interval, sleep};

use super::http::{CALL, CALL_BODY};
use super::service::{Replicas, Service, Sharing};
use super::table::Table;
use super::{Effort, IN_FLIGHT};
use crate::Failure;

/// The calls of one caller.
#[derive(Default)]
struct Calls {
    ids: Vec<String>,
    /// Failures by their text, with their number.
    failures: BTreeMap<String, usize>,
}

pub(super) async fn measure(effort: &Effort, table: &mut Table) -> Result<(), Failure> {
    let replicas = Replicas::start(3, Sharing::All).await?;
    let time = Duration::from_secs(effort.outage_secs);
    let callers = IN_FLIGHT.min(effort.calls);
    let share = effort.calls.div_ceil(callers);
    let pause = time / u32::try_from(share)?;
    let calling =
        join_all((0..callers).map(|caller| {
            call(&replicas.services[caller % replicas.services.len()], share, pause)
        }));
    // Gone for the middle half of the time.
    let outage = async {
        sleep(time / 4).await;
        let start = Instant::now();
        replicas.database.stop();
        sleep((time / 2).saturating_sub(start.elapsed())).await;
        replicas.database.start();
        start.elapsed()
    };
    let (calls, gone) = tokio::join!(calling, outage);
    let (mut ids, mut failures, mut attempts) = (Vec::new(), BTreeMap::new(), 0);
    for calls in calls {
        attempts += share;
        ids.extend(calls.ids);
        for (what, count) in calls.failures {
            *failures.entry(what).or_insert(0) += count;
        }
    }
    for (what, count) in &failures {
        eprintln!("  {count:>6} {what}");
    }
    let failed: usize = failures.values().sum();
    replicas.shipped().await?;
    let rows = replicas.database.sql("select execution_id from haft.call");
    let mut rows_of: BTreeMap<&str, usize> = BTreeMap::new();
    for id in rows.lines() {
        *rows_of.entry(id).or_default() += 1;
    }
    let distinct: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let once = distinct.iter().filter(|id| rows_of.get(**id) == Some(&1)).count();
    let what = format!("failed of {attempts} calls, database gone for {} s", gone.as_secs());
    table.add(what, failed.to_string(), "0");
    let value = format!("{} of {}", once, ids.len());
    table.add("calls with exactly one entry afterwards", value, "all");
    Ok(())
}

/// Calls at a steady rate. A failure is counted, and the connection made again.
async fn call(service: &Service, count: usize, pause: Duration) -> Calls {
    let mut calls = Calls::default();
    let mut next = interval(pause);
    let mut connection = None;
    for _ in 0..count {
        next.tick().await;
        match try_call(service, &mut connection).await {
            Ok(id) => calls.ids.push(id),
            Err(error) => {
                connection = None;
                *calls.failures.entry(error.to_string()).or_default() += 1;
            }
        }
    }
    calls
}

async fn try_call(
    service: &Service,
    connection: &mut Option<super::http::Connection>,
) -> Result<String, Failure> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(service.connect().await?),
    };
    let answer = connection.send("POST", CALL, CALL_BODY).await?.checked()?.json()?;
    let id = answer["execution_id"].as_str().filter(|_| answer["status"] == "success");
    Ok(id.ok_or_else(|| answer.to_string())?.to_owned())
}
