//! The delay and the processor time of shipping the log.

use std::time::{Duration, Instant};

use haft::record::Filter;
use haft_postgres::{Database, PostgresLog, Settings};
use haft_text::Secret;
use testkit::times::Times;
use tokio::time::sleep;

use super::Effort;
use super::http::{Connection, steady};
use super::service::{Replicas, Sharing};
use super::table::{Table, millis};
use crate::Failure;
use crate::proxy::Fault;

/// Pause between two looks for an entry.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Longest wait for an entry.
const ENTRY_MAX: Duration = Duration::from_secs(30);

pub(super) async fn measure(effort: &Effort, table: &mut Table) -> Result<(), Failure> {
    let replicas = Replicas::start(1, Sharing::All).await?;
    let service = &replicas.services[0];
    let settings = Settings { url: Secret::new(&replicas.database.url), ca: None, migrates: false };
    let log = PostgresLog::new(Database::open(settings).await?);
    // Beside other calls, at a rate that leaves the machine time.
    let per_second = effort.calls_per_second / 5;
    let beside = steady(service.port, &service.key, effort.calls / 5, per_second);
    let sampled = async {
        let (mut connection, mut times) = (service.connect().await?, Vec::new());
        for _ in 0..effort.samples {
            times.push(lag(&mut connection, &log).await?);
        }
        Ok::<_, Failure>(Times::new(times))
    };
    let (beside, sampled) = tokio::join!(beside, sampled);
    beside?;
    let sampled = sampled?;
    let value = format!("{} / {}", millis(sampled.median()), millis(sampled.percentile(99)));
    table.add("response of a call to its row in the database: p50 / p99", value, "p99 < 1 s");
    shipping_cpu(&replicas, effort, table).await
}

/// The time from the response of a call to its row.
async fn lag(connection: &mut Connection, log: &PostgresLog) -> Result<Duration, Failure> {
    let answer = connection.call().await?.json()?;
    let answered = Instant::now();
    let execution_id = answer["execution_id"].as_str().map(str::to_owned);
    let filter = Filter { execution_id, limit: Some(1), ..Filter::default() };
    while log.find(&filter).await?.is_empty() {
        if answered.elapsed() > ENTRY_MAX {
            return Err("an entry was not shipped".into());
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(answered.elapsed())
}

/// The processor time of the replica while it ships what has waited, less that of an idle one.
async fn shipping_cpu(
    replicas: &Replicas,
    effort: &Effort,
    table: &mut Table,
) -> Result<(), Failure> {
    let service = &replicas.services[0];
    replicas.shipped().await?;
    let (start, before) = (Instant::now(), service.cpu()?);
    sleep(Duration::from_secs(effort.flood_secs * 2)).await;
    let idle = (service.cpu()?.saturating_sub(before)).div_f64(start.elapsed().as_secs_f64());
    replicas.proxies[0].set(Fault::Cut);
    let stored = replicas.rows()?;
    steady(service.port, &service.key, effort.calls, effort.calls_per_second).await?;
    let (start, before) = (Instant::now(), service.cpu()?);
    replicas.proxies[0].set(Fault::None);
    let lines = replicas.shipped().await? - stored;
    let idle = idle.mul_f64(start.elapsed().as_secs_f64());
    let used = service.cpu()?.saturating_sub(before).saturating_sub(idle);
    #[allow(clippy::cast_precision_loss, reason = "a small number")]
    let micros = used.as_secs_f64() * 1e6 / lines as f64;
    let what = format!("processor time to ship a line, {lines} that waited");
    table.add(what, format!("{micros:.1} us"), "<= 5 us");
    Ok(())
}
