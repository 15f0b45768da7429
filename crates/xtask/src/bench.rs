//! Benchmarks: each prints ratios measured in one run.

use anyhow::Result;

use crate::run::{cargo, step};
use crate::tools::require_program;

pub(crate) fn call_path() -> Result<()> {
    step(&mut cargo(&["build", "--release", "--package", "haft-server"]))?;
    step(&mut cargo(&["bench", "--package", "haft-server", "--bench", "call_path"]))
}

pub(crate) fn select() -> Result<()> {
    step(&mut cargo(&["bench", "--package", "haft", "--bench", "select"]))
}

pub(crate) fn serve() -> Result<()> {
    require_program("wrk", "wrk")?;
    step(&mut cargo(&["bench", "--package", "haft-server", "--bench", "serve"]))
}

pub(crate) fn mcp() -> Result<()> {
    step(&mut cargo(&["bench", "--package", "haft", "--bench", "mcp"]))
}
