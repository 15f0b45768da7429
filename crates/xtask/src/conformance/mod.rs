//! The official conformance suite, with a verdict of our own.
//!
//! The suite alone is too kind: a scenario in which nothing was checked passes, and so does one whose
//! client crashed, or whose server does not have the tool that is called. What passes here is in
//! [`judge`], for both halves; each half adds what only it can know.

pub(crate) mod client;
pub(crate) mod gateway;
mod judge;
pub(crate) mod server;
mod suite;

use anyhow::{Result, bail, ensure};

use crate::run::shown_path;
use judge::Outcomes;
use suite::Half;

/// Scores one half: all scenarios that each revision requires have to pass, and those that are judged beside them.
fn score(
    half: Half,
    revisions: &[&'static str],
    judged: &[&str],
    mut results: impl FnMut(&'static str) -> Result<Outcomes>,
) -> Result<()> {
    let mut failed = Vec::new();
    for revision in revisions {
        let required = suite::required(half, revision)?;
        let (listed, expected) = (required.len(), half.required_count(revision));
        // A shorter list is a mistake.
        ensure!(
            expected == Some(listed),
            "the suite lists {listed} required {half} scenarios for {revision}, not {expected:?}"
        );
        let mut required = required;
        required.extend(judged.iter().map(|scenario| (*scenario).to_owned()));
        let (passed, all) = (judge::show(revision, &required, &results(revision)?), required.len());
        if passed != all {
            failed.push(format!("{passed} of {all} for {revision}"));
        }
    }
    if !failed.is_empty() {
        let failed = failed.join(", ");
        bail!("the {half} passed {failed}: what it did is in {}", shown_path(&suite::folder()));
    }
    Ok(())
}
