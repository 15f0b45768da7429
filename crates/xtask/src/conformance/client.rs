//! The suite against Haft's client, which also has to end as it should.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::judge::{self, Outcome, Outcomes};
use super::suite::{self, Half, REVISIONS, SCENARIO_TIMEOUT_MS};
use crate::peers;
use crate::run::{cargo, step, target};

/// The command that the suite runs in a shell: `exec`, so that the signal after a timeout arrives.
const COMMAND: &str = "exec sh crates/xtask/conformance/client.sh";

/// Scenarios in which a client rightly gives up, and may report it by its exit code. The suite itself marks these,
/// and none other that is scored.
const MAY_FAIL: [&str; 8] = [
    "auth/iss-normalized",
    "auth/iss-supported-missing",
    "auth/iss-unexpected",
    "auth/iss-wrong-issuer",
    "auth/metadata-issuer-mismatch",
    "auth/resource-mismatch",
    "auth/scope-retry-limit",
    "http-invalid-tool-headers",
];

/// Extensions that Haft has. The suite runs every extension and scores none.
const EXTENSIONS: [&str; 1] = ["auth/client-credentials-basic"];

/// Builds Haft's client and tests it.
pub(crate) fn run() -> Result<()> {
    step(&mut cargo(&["build", "--package", "haft", "--example", "conformance_client"]))?;
    run_built()
}

/// Tests Haft's client as the tests built it.
pub(crate) fn run_built() -> Result<()> {
    run_program(&target().join("debug/examples/conformance_client"))
}

/// Tests a client program, which gets the server's URL as its last argument.
pub(crate) fn run_program(client: &Path) -> Result<()> {
    peers::install()?;
    let client =
        client.canonicalize().with_context(|| format!("{} is missing", client.display()))?;
    super::score(Half::Client, &REVISIONS, &[], |revision| results(revision, &client))
}

/// Runs all scenarios of a revision.
fn results(revision: &str, client: &Path) -> Result<Outcomes> {
    let out = suite::folder().join(revision);
    let endings = suite::folder().join(format!("{revision}-endings"));
    suite::clear(&endings)?;
    let mut command = suite::command()?;
    command.args(["client", "--requirements", revision, "--timeout", SCENARIO_TIMEOUT_MS]);
    command.args(["--command", COMMAND]);
    command.env("HAFT_CONFORMANCE_CLIENT", client).env("HAFT_CONFORMANCE_ENDINGS", &endings);
    eprintln!("\n==> conformance client --requirements {revision}");
    suite::run(&mut command, &out)?;
    let outcomes = judge::read(&out, "", |scenario, checks| {
        let ending = fs::read_to_string(endings.join(scenario)).unwrap_or_default();
        outcome(scenario, checks, ending.trim())
    })?;
    let fails = |it: &&&str| !outcomes.get(**it).is_some_and(Outcome::passed);
    let failed: Vec<_> = EXTENSIONS.iter().filter(fails).collect();
    ensure!(failed.is_empty(), "extensions that Haft has failed for {revision}: {failed:?}");
    Ok(outcomes)
}

/// Judges a scenario by its checks and by how the client ended.
fn outcome(scenario: &str, checks: &[Value], ending: &str) -> Outcome {
    let mut outcome = Outcome::of(checks);
    match ending {
        "0" => {}
        "timeout" => outcome.faults.push("the client did not end in time".to_owned()),
        "" => outcome.faults.push("how the client ended is not known".to_owned()),
        _ if MAY_FAIL.contains(&scenario) => {}
        code => outcome.faults.push(format!("the client ended with code {code}")),
    }
    outcome
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_that_crashes_or_hangs_fails_unless_it_may_give_up() {
        let checks = [json!({"name": "A", "status": "SUCCESS"})];
        let faults = |scenario: &str, ending: &str| outcome(scenario, &checks, ending).faults;
        assert_eq!(faults("tools_call", "0"), [""; 0]);
        assert_eq!(faults("tools_call", "101"), ["the client ended with code 101"]);
        assert_eq!(faults("tools_call", ""), ["how the client ended is not known"]);
        assert_eq!(faults("auth/resource-mismatch", "1"), [""; 0]);
        let late = ["the client did not end in time"];
        assert_eq!(faults("auth/resource-mismatch", "timeout"), late);
    }
}
