//! Runs the suite and reads its list of required scenarios.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::peers;
use crate::run::{root, target};

/// The revisions that are tested.
pub(super) const REVISIONS: [&str; 2] = [LEGACY, MODERN];

/// The newest revision with sessions.
pub(super) const LEGACY: &str = "2025-11-25";

/// The first one without.
pub(super) const MODERN: &str = "2026-07-28";

/// The longest one scenario may take.
pub(super) const SCENARIO_TIMEOUT_MS: &str = "60000";

/// The tested side: a client, or a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Client,
    Server,
}

impl Half {
    /// Number of scenarios that a revision requires.
    pub(super) fn required_count(self, revision: &str) -> Option<usize> {
        match (self, revision) {
            (Self::Client, LEGACY) => Some(18),
            (Self::Client, MODERN) => Some(32),
            (Self::Server, LEGACY) => Some(30),
            (Self::Server, MODERN) => Some(37),
            (Self::Client | Self::Server, _) => None,
        }
    }

    /// The heading of its section in the listing.
    fn heading(self) -> &'static str {
        match self {
            Self::Client => "Client scenarios",
            Self::Server => "Server scenarios",
        }
    }
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// Where everything that was done is kept.
pub(super) fn folder() -> PathBuf {
    target().join("conformance")
}

/// The suite's program.
pub(super) fn command() -> Result<Command> {
    let mut command = Command::new(peers::node()?);
    command.arg(peers::npm_modules().join("@modelcontextprotocol/conformance/dist/index.js"));
    command.current_dir(root());
    Ok(command)
}

/// Runs the suite, which leaves its results in a folder.
pub(super) fn run(command: &mut Command, out: &Path) -> Result<()> {
    clear(out)?;
    let output = command.arg("--output-dir").arg(out).output();
    // Its own verdict is not ours, and its log is long: the files have everything.
    let output = output.context("the conformance suite could not be started")?;
    fs::create_dir_all(out)?;
    fs::write(out.join("suite.txt"), [output.stdout, output.stderr].concat())?;
    Ok(())
}

/// Removes what an earlier run has left.
pub(super) fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}

/// The scenarios a revision requires, as the suite lists them.
pub(super) fn required(half: Half, revision: &str) -> Result<Vec<String>> {
    let output = command()?.args(["list", "--requirements", revision]).output();
    let output = output.context("the conformance suite could not be started")?;
    let listing = String::from_utf8_lossy(&output.stdout);
    Ok(section(half, &listing).map(str::to_owned).collect())
}

/// The section of one half; the other comes before or after, unscored scenarios at the end.
fn section(half: Half, listing: &str) -> impl Iterator<Item = &str> {
    let section = listing.lines().skip_while(move |line| !line.starts_with(half.heading()));
    section.skip(1).map_while(|line| line.strip_prefix("  - "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_required_scenarios_of_one_half_are_read_from_the_listing() {
        let listing = "Required for 2025-11-25:\n\nServer scenarios (test against a server):\n  - ping\n\n\
                       Client scenarios (test against a client):\n  - initialize\n  - auth/one\n\n\
                       Run and reported, but never scored:\n  extension (1):\n    - auth/two [client]\n";
        let found = |half| section(half, listing).collect::<Vec<&str>>();
        assert_eq!(found(Half::Client), ["initialize", "auth/one"]);
        assert_eq!(found(Half::Server), ["ping"]);
    }
}
