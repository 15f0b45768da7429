//! Calls by tool, server and key: outcomes, durations, waits, refusals by a rate or quota.

use std::collections::HashMap;
use std::sync::Arc;

use haft::{CallSummary, Code};
use parking_lot::RwLock;

use super::histogram::{BOUNDS_SECS, Histogram};
use super::outcomes::Outcomes;
use super::page::{Kind, Page};

/// Largest number of label values in one family. Later ones share [`OTHER`].
const SERIES_MAX: usize = 1000;
/// The label value of all that have no series of their own.
const OTHER: &str = "other";

/// Calls by tool, server and key.
#[derive(Debug, Default)]
pub(super) struct Breakdown {
    tools: Family,
    servers: Family,
    keys: Family,
}

/// The calls of one kind of label.
#[derive(Debug, Default)]
struct Family(RwLock<HashMap<Box<str>, Arc<Series>>>);

#[derive(Debug, Default)]
struct Series {
    outcomes: Outcomes,
    durations: Histogram,
    waits: Histogram,
}

/// One of a series' histograms.
type Times = fn(&Series) -> &Histogram;

impl Breakdown {
    /// Counts a call. Names that a caller invents are not counted.
    pub(super) fn count(&self, call: &CallSummary<'_>) {
        if call.is_known {
            self.tools.count(call.tool, call);
        }
        if let Some(server) = call.server {
            self.servers.count(server, call);
        }
        if let Some(key) = call.caller.and_then(|caller| caller.strip_prefix("key:")) {
            self.keys.count(key, call);
        }
    }

    pub(super) fn report(&self, page: &mut Page) {
        // The outcomes of tools are in `haft_tool_calls_total`, with their servers.
        self.tools.times("tool", "tool_name", page);
        self.servers.outcomes("server", page);
        self.servers.times("server", "server", page);
        self.keys.outcomes("key", page);
        self.keys.times("key", "key", page);
    }
}

impl Family {
    fn count(&self, name: &str, call: &CallSummary<'_>) {
        let series = self.series(name);
        series.outcomes.count(call.code);
        series.durations.count(call.duration);
        series.waits.count(call.queued);
    }

    fn series(&self, name: &str) -> Arc<Series> {
        if let Some(series) = self.0.read().get(name) {
            return Arc::clone(series);
        }
        let mut all = self.0.write();
        let is_full = all.len() >= SERIES_MAX - 1 && !all.contains_key(name);
        Arc::clone(all.entry(if is_full { OTHER } else { name }.into()).or_default())
    }

    /// Every series, in the order of names.
    fn sorted(&self) -> Vec<(Box<str>, Arc<Series>)> {
        let all = self.0.read();
        let mut all: Vec<_> =
            all.iter().map(|(name, series)| (name.clone(), Arc::clone(series))).collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    fn outcomes(&self, what: &str, page: &mut Page) {
        let name = format!("haft_{what}_calls_total");
        let help = format!("Calls that are over, by {what} and outcome.");
        page.family(&name, Kind::Counter, &help);
        for (label, series) in self.sorted() {
            for (outcome, count) in series.outcomes.each().filter(|(_, count)| *count > 0) {
                page.sample(&name, &[(what, &label), ("outcome", outcome)], count);
            }
        }
    }

    fn times(&self, what: &str, label: &str, page: &mut Page) {
        let all = self.sorted();
        let name = format!("haft_{what}_rate_limited_total");
        let help = format!("Calls that a rate or a quota refused, by {what}.");
        page.family(&name, Kind::Counter, &help);
        for (value, series) in &all {
            page.sample(&name, &[(label, value)], series.outcomes.of(Code::RateLimited));
        }
        let families: [(&str, &str, Times); 2] = [
            ("call_duration", "How long calls took, without the wait for their turn", |it| {
                &it.durations
            }),
            ("queue_wait", "How long calls waited for their turn", |it| &it.waits),
        ];
        for (family, help, times) in families {
            let name = format!("haft_{what}_{family}_seconds");
            page.family(&name, Kind::Histogram, &format!("{help}, by {what}."));
            for (value, series) in &all {
                histogram(&name, (label, value), times(series), page);
            }
        }
    }
}

fn histogram(name: &str, label: (&str, &str), times: &Histogram, page: &mut Page) {
    let reading = times.read();
    let bounds = BOUNDS_SECS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(reading.up_to) {
        page.sample(&format!("{name}_bucket"), &[label, ("le", &bound)], count);
    }
    page.sample(&format!("{name}_sum"), &[label], reading.sum_secs);
    page.sample(&format!("{name}_count"), &[label], reading.up_to[BOUNDS_SECS.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thousandth_name_and_later_ones_share_a_series() {
        let family = Family::default();
        for number in 0..5000 {
            family.series(&number.to_string()).outcomes.count(Some(Code::RateLimited));
        }
        let all = family.sorted();
        assert_eq!(all.len(), SERIES_MAX);
        let (_, other) = all.iter().find(|(name, _)| **name == *OTHER).unwrap();
        assert_eq!(other.outcomes.of(Code::RateLimited), 5000 - 999);
        let mut page = Page::default();
        family.outcomes("key", &mut page);
        let text = page.into_text();
        assert!(
            text.contains("haft_key_calls_total{key=\"other\",outcome=\"RateLimited\"} 4001\n")
        );
    }
}
