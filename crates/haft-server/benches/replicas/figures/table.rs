//! The table of results, in the form of docs/benchmarks.md.

use std::fmt;
use std::time::Duration;

/// Rows in the order in which they were measured.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<[String; 3]>,
}

impl Table {
    /// Adds what was measured, its value and its goal.
    pub(super) fn add(&mut self, what: impl Into<String>, value: impl Into<String>, goal: &str) {
        self.rows.push([what.into(), value.into(), goal.to_owned()]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n| | Measured | Goal |\n|---|---|---|")?;
        self.rows
            .iter()
            .try_for_each(|[what, value, goal]| writeln!(f, "| {what} | {value} | {goal} |"))
    }
}

/// A time in milliseconds.
pub(super) fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
