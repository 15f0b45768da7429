//! The result: a table for people, and the promises that were broken.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Options;
use super::honest::Honest;
use super::service::Ended;
use super::tally::Tally;

const MIB: u64 = 1 << 20;

/// Limits that the run has to keep.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The latency that 99 of 100 honest calls stay below, if it is judged: it means little on a busy machine or for
    /// a build without optimization.
    pub p99: Option<Duration>,
    /// The most memory of the service, in bytes.
    pub memory: u64,
}

/// The findings of the load test.
#[derive(Debug)]
pub struct Report {
    pub(super) options: Options,
    pub(super) honest: Honest,
    pub(super) tallies: Vec<Arc<Tally>>,
    pub(super) memory_peak: u64,
    pub(super) ended: Ended,
    pub(super) stopped_early: Option<String>,
}

impl Report {
    /// The broken promises; none for a good run.
    pub fn problems(&self, limits: &Limits) -> Vec<String> {
        let mut problems: Vec<String> = self.stopped_early.iter().cloned().collect();
        let failures: u64 = self.honest.failures.values().sum();
        if failures > 0 {
            problems.push(format!("{failures} of {} honest calls failed", self.honest.calls));
        }
        if self.honest.calls == 0 {
            problems.push("no honest call was made".to_owned());
        }
        let p99 = percentile(&self.latencies(), 99);
        if let Some(limit) = limits.p99.filter(|limit| p99 > *limit) {
            problems.push(format!(
                "p99 is {} ms, the limit {} ms",
                p99.as_millis(),
                limit.as_millis()
            ));
        }
        if self.memory_peak > limits.memory {
            let (peak, limit) = (self.memory_peak / MIB, limits.memory / MIB);
            problems.push(format!("memory peaked at {peak} MB, the limit is {limit} MB"));
        }
        let (missing, repeated) = self.log_gaps();
        if missing > 0 || repeated > 0 {
            problems.push(format!("{missing} honest calls have no log entry, {repeated} several"));
        }
        if self.ended.code != 0 {
            let (code, took) = (self.ended.code, self.ended.took.as_secs());
            problems.push(format!("the service ended with code {code}, {took} s after SIGTERM"));
        }
        problems
    }

    /// Honest calls without a log entry, and with more than one.
    fn log_gaps(&self) -> (u64, usize) {
        let markers = &self.ended.log.markers;
        let logged = u64::try_from(markers.len()).unwrap_or(u64::MAX);
        let repeated = markers.values().filter(|count| **count > 1).count();
        (self.honest.calls.saturating_sub(logged), repeated)
    }

    /// The latencies of all successful honest calls, sorted.
    fn latencies(&self) -> Vec<Duration> {
        let mut all: Vec<Duration> = self.honest.latencies.values().flatten().copied().collect();
        all.sort_unstable();
        all
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { duration, clients, calls_per_second, seed, only } = &self.options;
        writeln!(
            f,
            "{} s, {clients} hostile clients, {calls_per_second} honest calls/s, seed {seed}{}",
            duration.as_secs(),
            if only.is_empty() { String::new() } else { format!(", only {}", only.join(", ")) }
        )?;
        writeln!(
            f,
            "\n| honest calls | succeeded | p50 ms | p99 ms | max ms |\n|---|---|---|---|---|"
        )?;
        let all = self.latencies();
        let lanes = self.honest.latencies.iter().map(|(name, latencies)| (*name, latencies));
        for (name, latencies) in lanes.chain([("all", &all)]) {
            let [p50, p99, max] =
                [50, 99, 100].map(|part| percentile(latencies, part).as_secs_f64() * 1e3);
            writeln!(f, "| {name} | {} | {p50:.1} | {p99:.1} | {max:.1} |", latencies.len())?;
        }
        for (reason, count) in &self.honest.failures {
            writeln!(f, "failed {count} times: {reason}")?;
        }
        writeln!(
            f,
            "\n| hostile kind | clients | attacks | accepted | refused | cut off |\n|---|---|---|---|---|---|"
        )?;
        for tally in &self.tallies {
            let counts = tally.counts();
            writeln!(
                f,
                "| {} | {} | {} | {} | {} | {} |",
                tally.name,
                tally.clients(),
                counts.attacks,
                counts.accepted,
                counts.refused,
                counts.cut_off
            )?;
        }
        let (missing, repeated) = self.log_gaps();
        writeln!(
            f,
            "\nmemory peak: {} MB\nlog: {} entries, {} MB; honest calls without an entry: {missing}, with \
             several: {repeated}\nend: code {} after {:.1} s",
            self.memory_peak / MIB,
            self.ended.log.count,
            self.ended.log.bytes / MIB,
            self.ended.code,
            self.ended.took.as_secs_f64(),
        )
    }
}

/// The value that `part` of 100 stay at or below.
fn percentile(sorted: &[Duration], part: usize) -> Duration {
    let at = (sorted.len() * part).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}
