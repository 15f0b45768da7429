//! Benchmarks: each prints ratios measured in one run.

use anyhow::Result;

use crate::gateways;
use crate::run::{cargo, step};
use crate::tools::require_program;

/// Benchmarks measure what is shipped.
pub(crate) const PROFILE: &str = "--profile=dist";

pub(crate) fn call_path() -> Result<()> {
    step(&mut cargo(&["build", PROFILE, "--package", "haft-server"]))?;
    step(&mut cargo(&["bench", PROFILE, "--package", "haft-server", "--bench", "call_path"]))
}

pub(crate) fn select() -> Result<()> {
    step(&mut cargo(&["bench", PROFILE, "--package", "haft-select", "--bench", "select"]))
}

/// Measures all parts, or those that are named.
pub(crate) fn serve(parts: &[&str]) -> Result<()> {
    if parts.is_empty() || parts.contains(&"calls") {
        require_program("wrk", "wrk")?;
    }
    let args = ["bench", PROFILE, "--package", "haft-server", "--bench", "serve", "--"];
    step(cargo(&args).args(parts))
}

pub(crate) fn mcp() -> Result<()> {
    step(&mut cargo(&["bench", PROFILE, "--package", "haft", "--bench", "mcp"]))
}

/// Installs the gateways that are measured beside Haft. `options` are the benchmark's own, or `--prepare`: install and
/// build now, so that a later run only measures.
pub(crate) fn gateway(options: &[&str]) -> Result<()> {
    let peers = gateways::install();
    let args = ["bench", PROFILE, "--package", "haft-server", "--bench", "gateway"];
    if options == ["--prepare"] {
        return step(cargo(&args).arg("--no-run"));
    }
    step(cargo(&args).arg("--").args(options).env("HAFT_BENCH_PEERS", peers.to_string()))
}
