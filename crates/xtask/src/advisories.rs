//! Known vulnerabilities of the dependencies.

use std::process::Command;

use anyhow::Result;

use crate::run::{cargo, step};
use crate::tools::DENY;

/// The longest that fetching the advisory database may take. A host that drops packets would otherwise hold up
/// the run for minutes.
const FETCH_SECONDS_MAX: &str = "120";

/// Fails if an advisory applies. A database that cannot be fetched is reported and does not fail the run:
/// the machine may have no way to the host that keeps it.
pub(crate) fn check() -> Result<()> {
    let deny = DENY.command()?;
    let mut fetch = Command::new("timeout");
    fetch.arg(FETCH_SECONDS_MAX).arg(deny.get_program()).args(["fetch", "db"]);
    if let Err(error) = step(&mut fetch) {
        eprintln!(
            "\nADVISORIES NOT CHECKED: the RustSec advisory database cannot be fetched ({error}). Run \
             `cargo xtask advisories` on a machine that reaches it."
        );
        return Ok(());
    }
    // Offline from here on, so that only an advisory can fail the check.
    step(&mut cargo(&["fetch", "--locked"]))?;
    step(DENY.command()?.args(["--offline", "check", "advisories"]))
}
