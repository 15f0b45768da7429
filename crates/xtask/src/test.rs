//! The steps of CI, in the order in which a mistake shows soonest.

use anyhow::Result;

use crate::conformance::gateway::Front;
use crate::run::{cargo, step};
use crate::tools::{DENY, NEXTEST, TARPAULIN, require};
use crate::{
    advisories, api, conformance, console, dist, docs, fuzz, instructions, modules, peers,
    replicas, words,
};

/// Folders whose coverage is promised.
const COVERED: [&str; 3] =
    ["crates/haft-config/src/config/*", "crates/haft/src/registry/*", "crates/haft/src/policy/*"];

pub(crate) fn run() -> Result<()> {
    require("python3", "python3")?;
    require("node", "nodejs")?;
    require("curl", "curl")?;
    require("bwrap", "bubblewrap")?;
    require("dpkg-deb", "dpkg")?;
    require_for_faults()?;
    replicas::require_postgres()?;
    replicas::require_pgbouncer()?;
    step(&mut cargo(&["fmt", "--all", "--check"]))?;
    modules::check()?;
    api::check()?;
    docs::check()?;
    words::check()?;
    step(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))?;
    peers::install()?;
    let mut tests = NEXTEST.command()?;
    tests.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
    step(tests.env("HAFT_TEST_POSTGRES", "required"))?;
    step(&mut cargo(&["test", "--doc", "--workspace", "--quiet"]))?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    step(doc.env("RUSTDOCFLAGS", "--deny warnings"))?;
    // The tests have built the binaries that these need, with the features of the whole workspace: for one package
    // alone, everything below it would be built a second time.
    console::check_built()?;
    conformance::client::run_built()?;
    conformance::gateway::run_built(Front::OneProcess)?;
    conformance::gateway::run_built(Front::Replicas)?;
    instructions::check_built()?;
    dist::check_built()?;
    step(DENY.command()?.args(["check", "licenses", "bans", "sources"]))?;
    advisories::check()?;
    fuzz::run(fuzz::SECONDS, &[])?;
    eprintln!("\nall steps passed");
    Ok(())
}

/// Number of times that a service is killed while it writes; the usual run does it less often.
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
    step(&mut cargo(&["build", "--profile=dist", "--package", "testkit", "--bin", "mcp-fixture"]))?;
    let args = ["bench", "--profile=dist", "--package", "haft-server", "--bench", "hostile", "--"];
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
    command.args([
        "tarpaulin",
        "--engine",
        "ptrace",
        "--package",
        "haft",
        "--package",
        "haft-config",
        "--skip-clean",
    ]);
    command.args(["--out", "Stdout", "--fail-under", "90.1", "--target-dir", "target/coverage"]);
    for folder in COVERED {
        command.args(["--include-files", folder]);
    }
    // Child processes behave differently under ptrace, and these tests cover other folders.
    command.args(["--", "--skip", "backend::", "--skip", "call_local"]);
    step(&mut command)
}
