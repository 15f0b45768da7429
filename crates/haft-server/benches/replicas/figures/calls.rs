//! Calls of one replica against file mode, in turns, so that all see the same machine.

use std::time::Duration;

use testkit::times::Times;

use super::http::{flood, one_at_a_time};
use super::service::{Replicas, Service, Sharing};
use super::table::{Table, millis};
use super::{Effort, IN_FLIGHT};
use crate::Failure;

/// The measurements of one contender.
#[derive(Default)]
struct Rounds {
    p50: Vec<Duration>,
    per_second: Vec<f64>,
}

impl Rounds {
    async fn measure(&mut self, service: &Service, effort: &Effort) -> Result<(), Failure> {
        one_at_a_time(service.port, &service.key, effort.one_at_a_time / 5).await?;
        let times = one_at_a_time(service.port, &service.key, effort.one_at_a_time).await?;
        self.p50.push(Times::new(times).median());
        let time = Duration::from_secs(effort.flood_secs);
        self.per_second.push(flood(service.port, &service.key, time).await?);
        Ok(())
    }

    fn p50(&self) -> Duration {
        Times::new(self.p50.clone()).median()
    }

    fn per_second(&self) -> f64 {
        let mut sorted = self.per_second.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

pub(super) async fn measure(effort: &Effort, table: &mut Table) -> Result<(), Failure> {
    let files = Service::of_files().await?;
    let unshipped = Replicas::start(1, Sharing::NoLog).await?;
    let shared = Replicas::start(1, Sharing::All).await?;
    let mut rounds: [Rounds; 3] = Default::default();
    for _ in 0..effort.rounds {
        rounds[0].measure(&files, effort).await?;
        rounds[1].measure(&unshipped.services[0], effort).await?;
        rounds[2].measure(&shared.services[0], effort).await?;
        // What is shipped later must not slow the next one down.
        shared.shipped().await?;
    }
    let [files, others @ ..] = &rounds;
    let of_files = format!("{:.0} calls/s; {}", files.per_second(), millis(files.p50()));
    table.add(format!("file mode: {IN_FLIGHT} calls in flight; one call, p50"), of_files, "");
    for (what, rounds) in
        ["one replica, log in files", "one replica, log shipped"].iter().zip(others)
    {
        let faster = rounds.per_second() / files.per_second();
        let slower = testkit::times::ratio(rounds.p50(), files.p50());
        let value = format!("{:.0} calls/s, {faster:.2}x", rounds.per_second());
        table.add(
            format!("{what}: {IN_FLIGHT} calls in flight, against file mode"),
            value,
            ">= 0.95x",
        );
        let value = format!("{}, {slower:.2}x", millis(rounds.p50()));
        table.add(format!("{what}: one call, p50, against file mode"), value, "<= 1.05x");
    }
    Ok(())
}
