//! Replicas on a real PostgreSQL: under faults, measured, and to look at.

use anyhow::Result;

use crate::bench;
use crate::run::{cargo, step};
use crate::tools::require_answer;

/// Debug builds: the checks are about promises, not speed.
const DEBUG: &str = "--profile=dev";

/// Debian keeps the program outside the search path.
const INITDB: &str = "command -v initdb || ls /usr/lib/postgresql/*/bin/initdb";

/// Debian puts it where only administrators search.
const PGBOUNCER: &str = "test -x /usr/sbin/pgbouncer";

/// Installs PostgreSQL if it is missing.
pub(crate) fn require_postgres() -> Result<()> {
    require_answer("sh", &["-c", INITDB], "postgresql")
}

/// Installs PgBouncer if it is missing: the tests run a service behind it.
pub(crate) fn require_pgbouncer() -> Result<()> {
    require_answer("sh", &["-c", PGBOUNCER], "pgbouncer")
}

/// Checks three replicas under faults. `options` are the program's own.
pub(crate) fn chaos(options: &[&str]) -> Result<()> {
    run(DEBUG, "chaos", options)
}

/// Starts three replicas until Ctrl-C.
pub(crate) fn demo() -> Result<()> {
    run(DEBUG, "demo", &[])
}

/// Measures replicas. `options` are the program's own, or `--debug`: a debug build, to try it out.
pub(crate) fn bench(options: &[&str]) -> Result<()> {
    let is_debug = options.contains(&"--debug");
    let options: Vec<_> = options.iter().copied().filter(|option| *option != "--debug").collect();
    run(if is_debug { DEBUG } else { bench::PROFILE }, "figures", &options)
}

fn run(profile: &str, mode: &str, options: &[&str]) -> Result<()> {
    require_postgres()?;
    let args = ["bench", profile, "--package", "haft-server", "--bench", "replicas", "--", mode];
    step(cargo(&args).args(options))
}
