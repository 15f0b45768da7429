//! The time until an edit and a revocation hold at every replica.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use serde_json::json;
use testkit::Random;
use testkit::times::Times;
use tokio::time::sleep;

use super::Effort;
use super::http::Connection;
use super::service::{Replicas, Service, Sharing};
use super::table::{Table, millis};
use crate::Failure;
use crate::proxy::Fault;

/// Pause between two looks at a replica.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Longest time that is waited for.
const SPREAD_MAX: Duration = Duration::from_secs(30);
/// Longest pause before a change, so that changes come at any time between two polls.
const PAUSE_MAX_MS: u64 = 600;

pub(super) async fn measure(effort: &Effort, table: &mut Table) -> Result<(), Failure> {
    let replicas = Replicas::start(3, Sharing::All).await?;
    let mut random = Random::new(1);
    for (fault, how, goal) in [
        (Fault::None, "", "p99 < 250 ms"),
        (Fault::LoseNotifications, ", notifications lost", "p99 < 1 s"),
    ] {
        replicas.proxies.iter().for_each(|proxy| proxy.set(fault));
        let (mut edits, mut revocations) = (Vec::new(), Vec::new());
        for sample in 0..effort.samples {
            let mut pause =
                async || sleep(Duration::from_millis(random.within(0..PAUSE_MAX_MS))).await;
            pause().await;
            edits.push(edit(&replicas.services, sample).await?);
            pause().await;
            revocations.push(revocation(&replicas.services, sample).await?);
        }
        for (what, times) in [("edit", edits), ("revocation", revocations)] {
            let times = Times::new(times);
            let value = format!("{} / {}", millis(times.median()), millis(times.percentile(99)));
            table.add(format!("{what} to the last of three replicas{how}: p50 / p99"), value, goal);
        }
    }
    Ok(())
}

/// Changes a server at one replica. Returns the time until all use that revision.
async fn edit(services: &[Service], sample: usize) -> Result<Duration, Failure> {
    let server = json!({"url": format!("http://127.0.0.1:9/{sample}"), "start": "lazy"});
    let start = Instant::now();
    let edited = services[sample % services.len()].connect().await?;
    let edited = { edited }.send("PUT", "/api/v1/servers/unused", &server.to_string()).await?;
    let revision = edited.checked()?.revision;
    everywhere(services, start, async |connection| {
        let answer = connection.send("GET", "/api/v1/calls", "").await?.checked()?;
        Ok(answer.revision == revision)
    })
    .await
}

/// Creates a key, uses it everywhere and revokes it at one replica. Returns the time until all refuse it.
async fn revocation(services: &[Service], sample: usize) -> Result<Duration, Failure> {
    let name = format!("k{sample}");
    let body = json!({"name": name, "scope": "call"}).to_string();
    let mut admin = services[sample % services.len()].connect().await?;
    let created = admin.send("POST", "/api/v1/keys", &body).await?.checked()?.json()?;
    let key = created["key"].as_str().ok_or("no key")?;
    for service in services {
        // After many wrong keys, a replica refuses one that it does not know yet until the next poll.
        let works = async || {
            let mut connection = Connection::open(service.port, key).await.ok()?;
            connection.call().await.ok().map(drop)
        };
        service.until("the key works", works).await?;
    }
    let start = Instant::now();
    admin.send("DELETE", &format!("/api/v1/keys/{name}"), "").await?.checked()?;
    let waits = services.iter().map(|service| async {
        loop {
            // A refused request ends its connection. After many of them an unknown key is refused with 429.
            let mut connection = Connection::open(service.port, key).await?;
            let answer = connection.send("GET", "/api/v1/calls", "").await?;
            if [401, 429].contains(&answer.status) {
                return Ok::<Duration, Failure>(start.elapsed());
            }
            pause(start).await?;
        }
    });
    Ok(try_join_all(waits).await?.into_iter().max().unwrap_or_default())
}

/// The time until a condition holds at every replica.
async fn everywhere(
    services: &[Service],
    start: Instant,
    holds: impl AsyncFn(&mut Connection) -> Result<bool, Failure>,
) -> Result<Duration, Failure> {
    let waits = services.iter().map(|service| async {
        let mut connection = service.connect().await?;
        while !holds(&mut connection).await? {
            pause(start).await?;
        }
        Ok::<Duration, Failure>(start.elapsed())
    });
    Ok(try_join_all(waits).await?.into_iter().max().unwrap_or_default())
}

async fn pause(start: Instant) -> Result<(), Failure> {
    if start.elapsed() > SPREAD_MAX {
        return Err("a change did not reach every replica".into());
    }
    sleep(LOOK_EVERY).await;
    Ok(())
}
