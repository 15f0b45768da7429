//! Benchmarks: each prints ratios measured in one run.

use anyhow::Result;

use crate::run::{cargo, step};

pub(crate) fn call_path() -> Result<()> {
    step(&mut cargo(&["build", "--release", "--package", "haft-server"]))?;
    step(&mut cargo(&["bench", "--package", "haft-server", "--bench", "call_path"]))
}

pub(crate) fn select() -> Result<()> {
    step(&mut cargo(&["bench", "--package", "haft", "--bench", "select"]))
}

pub(crate) fn mcp() -> Result<()> {
    step(&mut cargo(&["bench", "--package", "haft", "--bench", "mcp"]))
}
