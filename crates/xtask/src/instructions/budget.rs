//! The budget of each path. It is a file in the tree, so that a change of it is seen in review.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Figures, IN_FLIGHT_MAX};
use crate::run::{root, shown_path};

/// The share of its budget that a path may take.
const TOLERANCE: f64 = 1.05;

/// The build that is measured.
#[derive(Debug, Clone, Copy)]
pub(super) enum Budget {
    Optimised,
    Debug,
}

impl Budget {
    /// The folder of the build below the target directory.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Optimised => "instructions",
            Self::Debug => "debug",
        }
    }

    /// Calls in flight. A debug build is about ten times as slow, and a call that takes a second becomes a stream.
    pub(super) fn in_flight(self) -> usize {
        match self {
            Self::Optimised => IN_FLIGHT_MAX,
            Self::Debug => IN_FLIGHT_MAX / 4,
        }
    }

    /// Compares the figures with the budget.
    pub(super) fn check(self, all: &[Figures]) -> Result<()> {
        let file = file();
        let text = fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", shown_path(&file)))?;
        let budgets: Value = serde_json::from_str(&text)?;
        let budget = &budgets[self.folder()];
        let mut over = Vec::new();
        for figures in all {
            let name = figures.path.name();
            for (kind, found) in
                [("instructions", figures.instructions), ("allocations", figures.allocations)]
            {
                let budget = budget[name][kind]
                    .as_f64()
                    .with_context(|| format!("no budget of {kind} for `{name}`"))?;
                if is_over(found, budget) {
                    over.push(format!("{name}: {found:.0} {kind} per call, budget {budget:.0}"));
                }
            }
        }
        if over.is_empty() {
            println!("every path is within its budget ({})", shown_path(&file));
            return Ok(());
        }
        bail!(
            "more than 5 % over the budget in {}:\n  {}\nfind the cause with `cargo xtask bench \
             instructions --by-function`, or raise the budget with the reason",
            shown_path(&file),
            over.join("\n  ")
        )
    }
}

fn is_over(found: f64, budget: f64) -> bool {
    found > budget * TOLERANCE
}

fn file() -> PathBuf {
    root().join("crates/xtask/instructions.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_percent_are_tolerated() {
        assert!(!is_over(104.9, 100.0));
        assert!(is_over(105.1, 100.0));
    }
}
