//! What CI runs, in the order in which a mistake shows soonest.

use anyhow::Result;

use crate::run::{cargo, step};
use crate::tools::{DENY, NEXTEST, TARPAULIN, require};
use crate::{advisories, conformance, fuzz, modules, peers};

/// Folders whose coverage is promised.
const COVERED: [&str; 3] =
    ["crates/haft/src/config/*", "crates/haft/src/registry/*", "crates/haft/src/policy/*"];

pub(crate) fn run() -> Result<()> {
    require("python3", "python3")?;
    require("node", "nodejs")?;
    require("curl", "curl")?;
    require("bwrap", "bubblewrap")?;
    require_for_faults()?;
    step(&mut cargo(&["fmt", "--all", "--check"]))?;
    modules::check()?;
    step(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))?;
    // The core has to build without the MCP feature.
    step(&mut cargo(&["check", "--package", "haft", "--no-default-features"]))?;
    peers::install()?;
    step(NEXTEST.command()?.args(["nextest", "run", "--workspace", "--no-fail-fast"]))?;
    step(&mut cargo(&["test", "--doc", "--workspace", "--quiet"]))?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    step(doc.env("RUSTDOCFLAGS", "--deny warnings"))?;
    // The tests have built what these need, with the features of the whole workspace: anew and for one
    // package alone, everything below it would be built a second time.
    conformance::client::run_built()?;
    conformance::gateway::run_built()?;
    step(DENY.command()?.args(["check", "licenses", "bans", "sources"]))?;
    advisories::check()?;
    fuzz::run(fuzz::SECONDS, &[])?;
    eprintln!("\nall steps passed");
    Ok(())
}

/// How often a service is killed while it writes; the usual run does it less often.
const KILLS: &str = "300";

/// The tests of faults of the machine at full length.
pub(crate) fn faults() -> Result<()> {
    require_for_faults()?;
    step(&mut cargo(&["build", "--package", "testkit"]))?;
    let mut test = cargo(&["test", "--package", "haft-server", "--test", "serve", "--"]);
    step(test.args(["fault_", "--nocapture"]).env("HAFT_TEST_KILLS", KILLS))?;
    load(&[])
}

/// Hostile clients and servers beside honest calls. `options` are the benchmark's own.
pub(crate) fn load(options: &[&str]) -> Result<()> {
    step(&mut cargo(&["build", "--release", "--package", "testkit", "--bin", "mcp-fixture"]))?;
    let args = ["bench", "--package", "haft-server", "--bench", "hostile", "--"];
    step(cargo(&args).args(options))
}

/// The tests of faults look at system calls and set limits.
fn require_for_faults() -> Result<()> {
    require("strace", "strace")?;
    require("prlimit", "util-linux")
}

/// Line coverage of what decides: configuration, registration, policy. Fails at 90 % or less, as
/// S0-90 asks.
pub(crate) fn coverage() -> Result<()> {
    let mut command = TARPAULIN.command()?;
    command.args(["tarpaulin", "--engine", "ptrace", "--package", "haft", "--skip-clean"]);
    command.args(["--out", "Stdout", "--fail-under", "90.1", "--target-dir", "target/coverage"]);
    for folder in COVERED {
        command.args(["--include-files", folder]);
    }
    // Child processes behave differently under ptrace, and these tests cover other folders.
    command.args(["--", "--skip", "backend::", "--skip", "call_local"]);
    step(&mut command)
}
