//! Metrics of a log that is shipped.

use haft::record::ShipStatus;

use super::page::{Kind, Page};

/// The state of shipping, for Prometheus.
pub(crate) fn shipping_report(status: &ShipStatus) -> String {
    let mut page = Page::default();
    let help = "1 if entries of the execution log are shipped to the shared database.";
    page.one("haft_log_ship_up", Kind::Gauge, help, u8::from(status.problem.is_none()));
    let lag = status.problem.as_ref().map_or(0.0, |problem| problem.since.elapsed().as_secs_f64());
    let help = "For how long no entry could be shipped.";
    page.one("haft_log_ship_lag_seconds", Kind::Gauge, help, lag);
    let help = "Bytes of the execution log that wait to be shipped.";
    page.one("haft_log_ship_waiting_bytes", Kind::Gauge, help, status.waiting_bytes);
    let help = "Entries that were shipped since the start.";
    page.one("haft_log_ship_entries_total", Kind::Counter, help, status.entries);
    let help =
        "Lines that were not shipped since the start: not entries, or refused by the database.";
    page.one("haft_log_ship_skipped_total", Kind::Counter, help, status.skipped);
    page.into_text()
}
