//! Statements that calls cause at the database.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::Effort;
use super::http::steady;
use super::service::{Replicas, Sharing};
use super::table::Table;
use crate::Failure;

/// The beginning of the statement that stores a batch of the log.
const BATCH: &str = "with moved as (";
/// Beginnings of statements that are sent at fixed intervals, with or without calls: polls, heartbeats, upkeep, reads of
/// the keys, and their last use.
const PERIODIC: [&str; 5] = [
    "select name, seq from haft.topic",
    "with beat as (",
    "select haft.tidy(",
    "select t.seq, k.name, k.entry",
    "with noted as (",
];

pub(super) async fn measure(effort: &Effort, table: &mut Table) -> Result<(), Failure> {
    let replicas = Replicas::start(1, Sharing::All).await?;
    let service = &replicas.services[0];
    let counts = || replicas.proxies[0].statements();
    // The first call of a tool may prepare something.
    steady(service.port, &service.key, effort.calls / 20, effort.calls_per_second).await?;
    replicas.shipped().await?;
    let seconds = effort.calls / effort.calls_per_second;
    let idle = counts();
    sleep(Duration::from_secs(u64::try_from(seconds)?)).await;
    let before = counts();
    let started = Instant::now();
    steady(service.port, &service.key, effort.calls, effort.calls_per_second).await?;
    replicas.shipped().await?;
    let took = started.elapsed().as_secs_f64();
    let (idle, busy) = (since(&before, &idle), since(&counts(), &before));
    let (mut batches, mut periodic, mut others) = (0, 0, 0);
    for (statement, count) in &busy {
        if statement.starts_with(BATCH) {
            batches += count;
        } else if PERIODIC.iter().any(|it| statement.starts_with(it)) {
            periodic += count;
        } else {
            others += count;
        }
        let without = idle.get(statement).copied().unwrap_or_default();
        eprintln!("  {count:>6} with calls, {without:>6} without: {statement}");
    }
    let what = format!("statements for {} calls, besides log batches", effort.calls);
    table.add(what, others.to_string(), "0");
    let what = format!("log batches at {} calls/s", effort.calls_per_second);
    #[allow(clippy::cast_precision_loss, reason = "a small number")]
    table.add(what, format!("{:.1}/s", batches as f64 / took), "<= 5/s");
    #[allow(clippy::cast_precision_loss, reason = "a small number")]
    table.add("statements at fixed intervals", format!("{:.1}/s", periodic as f64 / took), "");
    Ok(())
}

fn since(now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let more = |(statement, count): (&String, &u64)| {
        let more = count - before.get(statement).copied().unwrap_or_default();
        (more > 0).then(|| (statement.clone(), more))
    };
    now.iter().filter_map(more).collect()
}
