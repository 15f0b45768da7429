//! The page at `/metrics`.

use std::time::Instant;

use haft::live::Live;
use haft::memory::MemoryStats;
use haft::record::LogHealth;
use haft::{LoadStats, Runtime, ServerInfo, ServerState, ToolLoadStats};
use haft_postgres::DatabaseHealth;
use jiff::Timestamp;

use super::Metrics;
use super::histogram::{BOUNDS_SECS, Histogram};
use super::page::{Kind, Page};
use super::usage::ToolOutcome;

impl Metrics {
    /// Counters and the current state of the toolbox, for Prometheus.
    pub(in crate::telemetry) fn report(
        &self,
        live: &Live,
        traces: Option<SpanCounts>,
        shared: Option<&DatabaseHealth>,
    ) -> String {
        let (runtime, mut page) = (live.runtime(), Page::default());
        let load_stats = runtime.load_stats();
        self.calls(&load_stats, &mut page);
        busy(&load_stats, &mut page);
        memory(runtime.memory().stats(), &mut page);
        servers(runtime, &mut page);
        if let Some(log) = runtime.log_health() {
            log_state(&log, &mut page);
        }
        let has_problem = live.status().problem.is_some();
        let help = "1 if the files as they are now cannot be used and the state before is in use.";
        page.one("haft_reload_problem", Kind::Gauge, help, u8::from(has_problem));
        if let Some(counts) = traces {
            spans(counts, &mut page);
        }
        if let Some(health) = shared {
            database(health, &mut page);
        }
        page.family("haft_build_info", Kind::Gauge, "The running version.");
        page.sample("haft_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        let since = self.since.as_duration().as_secs_f64();
        page.one(
            "process_start_time_seconds",
            Kind::Gauge,
            "Start time of the process, in Unix time.",
            since,
        );
        page.into_text()
    }

    fn calls(&self, load_stats: &LoadStats, page: &mut Page) {
        let tools = load_stats.tools.iter().map(|tool| &*tool.tool);
        page.family(
            "tool_usage",
            Kind::Summary,
            "Calls of each tool and the seconds they took, without the wait for their turn.",
        );
        for (tool, usage) in self.usage.read(tools, Instant::now()) {
            let labels = [("tool_name", &*tool)];
            page.sample("tool_usage_sum", &labels, usage.sum_secs);
            page.sample("tool_usage_count", &labels, usage.count);
        }
        let name = "haft_calls_total";
        page.family(name, Kind::Counter, "Calls that are over, by how they ended.");
        for (outcome, count) in self.outcomes.each() {
            page.sample(name, &[("outcome", outcome)], count);
        }
        let name = "haft_tool_calls_total";
        page.family(
            name,
            Kind::Counter,
            "Calls of each tool that are over, by server and outcome.",
        );
        for ToolOutcome { tool, server, outcome, count } in self.usage.outcomes() {
            let labels = [("tool_name", &*tool), ("server", &*server), ("outcome", outcome)];
            page.sample(name, &labels, count);
        }
        let help = "Execution time of calls, without the wait for a slot.";
        histogram("haft_call_duration_seconds", help, &self.durations, page);
        let help = "Wait of calls for a slot.";
        histogram("haft_queue_wait_seconds", help, &self.waits, page);
        self.breakdown.report(page);
    }
}

/// Counters of the trace export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::telemetry) struct SpanCounts {
    /// Spans that the collector accepted.
    pub(in crate::telemetry) exported: u64,
    /// Spans that were lost.
    pub(in crate::telemetry) dropped: u64,
}

fn spans(SpanCounts { exported, dropped }: SpanCounts, page: &mut Page) {
    let help = "Spans that the collector took.";
    page.one("haft_spans_exported_total", Kind::Counter, help, exported);
    let help = "Spans that were lost: the collector was away or refused them.";
    page.one("haft_spans_dropped_total", Kind::Counter, help, dropped);
}

fn histogram(name: &str, help: &str, times: &Histogram, page: &mut Page) {
    let reading = times.read();
    page.family(name, Kind::Histogram, help);
    let bounds = BOUNDS_SECS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(reading.up_to) {
        page.sample(&format!("{name}_bucket"), &[("le", &bound)], count);
    }
    page.sample(&format!("{name}_sum"), &[], reading.sum_secs);
    page.sample(&format!("{name}_count"), &[], reading.up_to[BOUNDS_SECS.len()]);
}

/// One of a tool's figures.
type Figure = fn(&ToolLoadStats) -> u32;

fn database(health: &DatabaseHealth, page: &mut Page) {
    let help = "1 if the shared database responds.";
    page.one("haft_shared_up", Kind::Gauge, help, u8::from(health.problem.is_none()));
    let help = "Seconds since the shared database last confirmed its state.";
    page.one("haft_shared_age_seconds", Kind::Gauge, help, health.age.as_secs_f64());
    let help = "1 if the shared database lost commits within the last hour.";
    page.one("haft_shared_lost_commits", Kind::Gauge, help, u8::from(health.lost_commits));
}

/// The current load.
fn busy(load_stats: &LoadStats, page: &mut Page) {
    page.one("haft_calls_in_flight", Kind::Gauge, "Calls that run.", load_stats.in_flight);
    page.one("haft_calls_waiting", Kind::Gauge, "Calls that wait.", load_stats.waiting);
    let help = "Maximum number of calls that run at once.";
    page.one("haft_calls_max_concurrent", Kind::Gauge, help, load_stats.max_concurrent);
    let families: [(&str, &str, Figure); 3] = [
        ("haft_tool_in_flight", "Slots of each tool that are taken.", |tool| tool.in_flight),
        ("haft_tool_waiting", "Calls that wait for a slot of the tool.", |tool| tool.waiting),
        ("haft_tool_max_instances", "Slots of each tool.", |tool| tool.max_instances),
    ];
    for (name, help, of) in families {
        page.family(name, Kind::Gauge, help);
        for tool in &load_stats.tools {
            page.sample(name, &[("tool_name", &tool.tool)], of(tool));
        }
    }
}

fn memory(MemoryStats { in_flight, max, refused }: MemoryStats, page: &mut Page) {
    let help = "Memory that requests, arguments, answers and the log's queue take.";
    page.one("haft_in_flight_bytes", Kind::Gauge, help, in_flight);
    let help = "Maximum of this memory.";
    page.one("haft_in_flight_bytes_max", Kind::Gauge, help, max);
    let help = "Requests, calls and answers that there was no memory for.";
    page.one("haft_in_flight_refused_total", Kind::Counter, help, refused);
}

fn servers(runtime: &Runtime, page: &mut Page) {
    let servers: Vec<(String, &str, bool)> = runtime.servers().into_iter().map(state_of).collect();
    page.family("haft_server_up", Kind::Gauge, "1 if the MCP server is connected.");
    for (server, _, is_up) in &servers {
        page.sample("haft_server_up", &[("server", server.as_str())], u8::from(*is_up));
    }
    // Every state of every server, so that no series comes and goes.
    page.family("haft_server_state", Kind::Gauge, "1 for the state that each MCP server is in.");
    for (server, state, _) in &servers {
        for known in STATES {
            let labels = [("server", server.as_str()), ("state", known)];
            page.sample("haft_server_state", &labels, u8::from(known == *state));
        }
    }
}

/// Every state of a server.
const STATES: [&str; 8] = [
    "misconfigured",
    "disabled",
    "configured",
    "connecting",
    "ready",
    "degraded",
    "unavailable",
    "stopped",
];

/// The name of a server, its state, and whether it answers.
fn state_of(server: ServerInfo) -> (String, &'static str, bool) {
    let (state, is_up) = match server.state {
        ServerState::Misconfigured => ("misconfigured", false),
        ServerState::Disabled => ("disabled", false),
        ServerState::Configured => ("configured", false),
        ServerState::Connecting => ("connecting", false),
        ServerState::Ready => ("ready", true),
        ServerState::Degraded => ("degraded", true),
        ServerState::Unavailable => ("unavailable", false),
        ServerState::Stopped => ("stopped", false),
    };
    (server.name, state, is_up)
}

fn log_state(log: &LogHealth, page: &mut Page) {
    let (is_working, lag_secs, kept, lost) = match log {
        LogHealth::Working { entries_lost, .. } => (true, 0.0, 0, *entries_lost),
        LogHealth::Failing { since, entries_kept, entries_lost, .. } => {
            let lag = Timestamp::now().duration_since(*since).as_secs_f64().max(0.0);
            (false, lag, *entries_kept, *entries_lost)
        }
    };
    let help = "1 if the execution log can be written.";
    page.one("haft_log_up", Kind::Gauge, help, u8::from(is_working));
    let is_low = matches!(log, LogHealth::Working { low_space: Some(_), .. });
    let help = "1 if the disk of the execution log is nearly full.";
    page.one("haft_log_disk_low", Kind::Gauge, help, u8::from(is_low));
    let help = "For how long the execution log could not be written.";
    page.one("haft_log_lag_seconds", Kind::Gauge, help, lag_secs);
    let help = "Log entries that are kept in memory until they can be written.";
    page.one("haft_log_entries_kept", Kind::Gauge, help, kept);
    let help = "Log entries that were lost since the log was opened.";
    page.one("haft_log_entries_lost_total", Kind::Counter, help, lost);
}
