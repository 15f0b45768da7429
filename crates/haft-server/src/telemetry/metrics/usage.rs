//! Calls per tool, and their durations (S0-76).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use haft::Code;
use haft::config::gateway::LOCAL;
use parking_lot::RwLock;

use super::histogram::{nanos, secs};
use super::outcomes::Outcomes;

/// Largest number of tools that are counted separately.
const TOOLS_MAX: usize = 10_000;

/// Time that a removed tool keeps its counters. A server that was briefly away brings its tools back.
pub(super) const GONE_AFTER: Duration = Duration::from_hours(1);

#[derive(Debug, Default)]
pub(super) struct Usage {
    tools: RwLock<HashMap<Box<str>, Tool>>,
}

#[derive(Debug, Default)]
struct Tool {
    count: AtomicU64,
    nanos: AtomicU64,
    /// The server that offers it; `local` for a tool that runs here.
    server: Box<str>,
    outcomes: Outcomes,
    /// First time that the tool was found missing.
    gone_since: Option<Instant>,
}

/// A snapshot of one tool's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Reading {
    pub(super) count: u64,
    pub(super) sum_secs: f64,
}

impl Usage {
    /// Counts a call. Only a tool that there is begins to be counted: a caller can invent names.
    pub(super) fn count(
        &self,
        tool: &str,
        server: Option<&str>,
        is_known: bool,
        duration: Duration,
        code: Option<Code>,
    ) {
        {
            let tools = self.tools.read();
            if let Some(tool) = tools.get(tool) {
                return tool.add(duration, code);
            }
        }
        if is_known {
            let mut tools = self.tools.write();
            if tools.len() < TOOLS_MAX || tools.contains_key(tool) {
                let server = server.unwrap_or(LOCAL).into();
                let new = || Tool { server, ..Tool::default() };
                tools.entry(tool.into()).or_insert_with(new).add(duration, code);
            }
        }
    }

    /// The figures of every tool, also of those that were never called. Forgets those that are gone
    /// for long.
    pub(super) fn read<'a>(
        &self,
        offered: impl Iterator<Item = &'a str>,
        now: Instant,
    ) -> BTreeMap<String, Reading> {
        let offered: HashSet<&str> = offered.collect();
        let mut tools = self.tools.write();
        tools.retain(|name, tool| {
            tool.gone_since = (!offered.contains(&**name)).then(|| tool.gone_since.unwrap_or(now));
            tool.gone_since.is_none_or(|since| now.duration_since(since) < GONE_AFTER)
        });
        let counted = tools.iter().map(|(name, tool)| (name.to_string(), tool.read()));
        let uncalled = offered.iter().filter(|name| !tools.contains_key(**name));
        uncalled.map(|name| ((*name).to_owned(), Reading::default())).chain(counted).collect()
    }

    /// The outcomes of each tool that was called, in the order of names.
    pub(super) fn outcomes(&self) -> Vec<ToolOutcome> {
        let tools = self.tools.read();
        let mut all: Vec<ToolOutcome> = Vec::new();
        for (name, tool) in tools.iter() {
            let happened = tool.outcomes.each().filter(|(_, count)| *count > 0);
            all.extend(happened.map(|(outcome, count)| ToolOutcome {
                tool: name.to_string(),
                server: tool.server.to_string(),
                outcome,
                count,
            }));
        }
        all.sort_by(|a, b| (&a.tool, a.outcome).cmp(&(&b.tool, b.outcome)));
        all
    }
}

/// The number of calls of one tool that ended in one way.
pub(super) struct ToolOutcome {
    pub(super) tool: String,
    pub(super) server: String,
    pub(super) outcome: &'static str,
    pub(super) count: u64,
}

impl Tool {
    fn add(&self, duration: Duration, code: Option<Code>) {
        self.outcomes.count(code);
        self.count.fetch_add(1, Relaxed);
        self.nanos.fetch_add(nanos(duration), Relaxed);
    }

    fn read(&self) -> Reading {
        Reading { count: self.count.load(Relaxed), sum_secs: secs(self.nanos.load(Relaxed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn names(readings: &BTreeMap<String, Reading>) -> Vec<&str> {
        readings.keys().map(String::as_str).collect()
    }

    /// S0-76: one more per call, and its seconds.
    #[test]
    fn a_call_adds_one_and_its_duration() {
        let usage = Usage::default();
        usage.count("x", None, true, SECOND, None);
        usage.count("x", None, true, 2 * SECOND, None);
        let readings = usage.read(["x", "y"].into_iter(), Instant::now());
        assert_eq!(readings["x"], Reading { count: 2, sum_secs: 3.0 });
        assert_eq!(readings["y"], Reading::default());
    }

    #[test]
    fn an_invented_name_takes_no_room() {
        let usage = Usage::default();
        usage.count("invented", None, false, SECOND, None);
        assert_eq!(names(&usage.read(["x"].into_iter(), Instant::now())), ["x"]);
    }

    #[test]
    fn the_number_of_tools_has_a_limit() {
        let usage = Usage::default();
        for at in 0..=TOOLS_MAX {
            usage.count(&at.to_string(), None, true, SECOND, None);
        }
        assert_eq!(usage.read([].into_iter(), Instant::now()).len(), TOOLS_MAX);
    }

    #[test]
    fn a_tool_that_is_gone_is_forgotten_after_a_while_and_not_at_once() {
        let usage = Usage::default();
        usage.count("x", None, true, SECOND, None);
        let began = Instant::now();
        let read = |offered: &[&str], after: Duration| {
            let readings = usage.read(offered.iter().copied(), began + after);
            readings.get("x").map(|reading| reading.count)
        };
        assert_eq!(read(&[], Duration::ZERO), Some(1));
        assert_eq!(read(&[], GONE_AFTER / 2), Some(1));
        // It came back, so it has all the time again.
        assert_eq!(read(&["x"], GONE_AFTER), Some(1));
        assert_eq!(read(&[], 2 * GONE_AFTER), Some(1));
        assert_eq!(read(&[], 3 * GONE_AFTER), None);
    }
}
