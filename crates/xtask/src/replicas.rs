//! Replicas on a real PostgreSQL: under faults, and to look at.

use anyhow::Result;

use crate::run::{cargo, step};
use crate::tools::require_answer;

/// Debug builds: the checks are about promises, not speed.
const ARGS: [&str; 6] =
    ["bench", "--profile=dev", "--package", "haft-server", "--bench", "replicas"];

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
    run("chaos", options)
}

/// Starts three replicas until Ctrl-C.
pub(crate) fn demo() -> Result<()> {
    run("demo", &[])
}

fn run(mode: &str, options: &[&str]) -> Result<()> {
    require_postgres()?;
    step(cargo(&ARGS).args(["--", mode]).args(options))
}
