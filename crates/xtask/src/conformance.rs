//! The official conformance suite against Haft's client, with a verdict of our own.
//!
//! The suite alone is too kind: a scenario in which nothing was checked passes, and so does one whose
//! client crashed or hung. Here a scenario passes if some check succeeded, none failed, and the client
//! ended as it should.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::peers;
use crate::run::{cargo, root, shown_path, step, target};

/// The revisions, and how many client scenarios each requires: a shorter list is a mistake.
const REVISIONS: [(&str, usize); 2] = [("2025-11-25", 18), ("2026-07-28", 32)];

/// The longest one scenario may take.
const SCENARIO_TIMEOUT_MS: &str = "60000";

/// What the suite runs, in a shell: `exec`, so that the signal after a timeout arrives.
const COMMAND: &str = "exec sh crates/xtask/conformance/client.sh";

/// Scenarios in which a client rightly gives up, and may say so by its exit code. The suite itself
/// marks these, and none other that is scored.
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

/// The length of what the suite appends to a scenario's folder: `-2026-07-28T00-00-00-000Z`.
const FOLDER_TIME_LEN: usize = 25;

/// Whether there is a client to test.
pub(crate) fn has_client() -> bool {
    root().join("crates/haft/examples/conformance_client.rs").is_file()
}

/// Builds Haft's client and tests it.
pub(crate) fn run() -> Result<()> {
    step(&mut cargo(&["build", "--package", "haft", "--example", "conformance_client"]))?;
    run_client(&target().join("debug/examples/conformance_client"))
}

/// Tests a client program, which gets the server's URL as its last argument.
pub(crate) fn run_client(client: &Path) -> Result<()> {
    peers::install()?;
    let client =
        client.canonicalize().with_context(|| format!("{} is missing", client.display()))?;
    let mut failed = Vec::new();
    for (revision, required_count) in REVISIONS {
        let required = required(revision)?;
        let listed = required.len();
        ensure!(
            listed == required_count,
            "the suite lists {listed} required client scenarios for {revision}, not {required_count}"
        );
        let results = results(revision, &client)?;
        let passed = show(revision, &required, &results);
        if passed != required_count {
            failed.push(format!("{passed} of {required_count} for {revision}"));
        }
    }
    if !failed.is_empty() {
        let failed = failed.join(", ");
        bail!("the client passed {failed}: what it did is in {}", shown_path(&folder()));
    }
    Ok(())
}

/// What became of one scenario.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    successes: usize,
    /// Why it failed; nothing if it passed.
    faults: Vec<String>,
    warnings: Vec<String>,
}

impl Outcome {
    /// Judges a scenario by its checks and by how the client ended.
    fn of(scenario: &str, checks: &[Value], ending: &str) -> Self {
        let mut outcome = Self::default();
        for check in checks {
            match check["status"].as_str() {
                Some("SUCCESS") => outcome.successes += 1,
                Some("WARNING") => outcome.warnings.push(shown_check(check)),
                Some("SKIPPED" | "INFO") => {}
                // A status nobody knows is not a success.
                Some(_) | None => outcome.faults.push(shown_check(check)),
            }
        }
        if outcome.successes == 0 {
            outcome.faults.push("nothing was checked with success".to_owned());
        }
        match ending {
            "0" => {}
            "timeout" => outcome.faults.push("the client did not end in time".to_owned()),
            "" => outcome.faults.push("how the client ended is not known".to_owned()),
            _ if MAY_FAIL.contains(&scenario) => {}
            code => outcome.faults.push(format!("the client ended with code {code}")),
        }
        outcome
    }

    fn passed(&self) -> bool {
        self.faults.is_empty()
    }
}

/// A check's name and what it says went wrong.
fn shown_check(check: &Value) -> String {
    let text = |key: &str| check[key].as_str().filter(|text| !text.is_empty());
    let name = text("name").or(text("id")).unwrap_or("a check without a name");
    let why = text("errorMessage").or(check["details"]["message"].as_str()).or(text("description"));
    format!("{name}: {}", why.unwrap_or("no reason given"))
}

fn folder() -> PathBuf {
    target().join("conformance")
}

fn suite() -> Result<Command> {
    let mut command = Command::new(peers::node()?);
    command.arg(peers::npm_modules().join("@modelcontextprotocol/conformance/dist/index.js"));
    command.current_dir(root());
    Ok(command)
}

/// The client scenarios a revision requires, as the suite lists them.
fn required(revision: &str) -> Result<Vec<String>> {
    let output = suite()?.args(["list", "--client", "--requirements", revision]).output();
    let output = output.context("the conformance suite could not be started")?;
    let listing = String::from_utf8_lossy(&output.stdout);
    Ok(client_scenarios(&listing).map(str::to_owned).collect())
}

/// The section of the client scenarios; server scenarios come before, unscored ones after.
fn client_scenarios(listing: &str) -> impl Iterator<Item = &str> {
    let section = listing.lines().skip_while(|line| !line.starts_with("Client scenarios"));
    section.skip(1).map_while(|line| line.strip_prefix("  - "))
}

/// Runs all scenarios of a revision.
fn results(revision: &str, client: &Path) -> Result<BTreeMap<String, Outcome>> {
    let out = folder().join(revision);
    let endings = folder().join(format!("{revision}-endings"));
    for old in [&out, &endings] {
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    let mut command = suite()?;
    command.args(["client", "--requirements", revision, "--timeout", SCENARIO_TIMEOUT_MS]);
    command.args(["--command", COMMAND, "--output-dir"]).arg(&out);
    command.env("HAFT_CONFORMANCE_CLIENT", client).env("HAFT_CONFORMANCE_ENDINGS", &endings);
    eprintln!("\n==> conformance client --requirements {revision}");
    // Its own verdict is not ours, and its log is long: the files have everything.
    let output = command.output().context("the conformance suite could not be started")?;
    fs::create_dir_all(&out)?;
    fs::write(out.join("suite.txt"), [output.stdout, output.stderr].concat())?;

    let mut results = BTreeMap::new();
    for checks in checks_files(&out)? {
        let place = checks.parent().and_then(|place| place.strip_prefix(&out).ok());
        let place = place.map(|place| place.to_string_lossy().into_owned()).unwrap_or_default();
        let Some((scenario, _)) =
            place.split_at_checked(place.len().saturating_sub(FOLDER_TIME_LEN))
        else {
            continue;
        };
        let text = fs::read_to_string(&checks)?;
        let list: Vec<Value> = serde_json::from_str(&text)
            .with_context(|| format!("{} is not a list of checks", shown_path(&checks)))?;
        let ending = fs::read_to_string(endings.join(scenario)).unwrap_or_default();
        results.insert(scenario.to_owned(), Outcome::of(scenario, &list, ending.trim()));
    }
    Ok(results)
}

/// Every `checks.json` below a folder.
fn checks_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(checks_files(&path)?);
        } else if path.ends_with("checks.json") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Prints the table and gives how many of the required scenarios passed.
fn show(revision: &str, required: &[String], results: &BTreeMap<String, Outcome>) -> usize {
    let mut passed = 0;
    for scenario in required {
        let missing = Outcome { faults: vec!["it did not run".to_owned()], ..Outcome::default() };
        let outcome = results.get(scenario).unwrap_or(&missing);
        passed += usize::from(outcome.passed());
        show_line(scenario, outcome, "");
    }
    for (scenario, outcome) in results.iter().filter(|(name, _)| !required.contains(name)) {
        show_line(scenario, outcome, " (not scored)");
    }
    eprintln!("    {revision}: {passed} of {} required scenarios passed", required.len());
    passed
}

fn show_line(scenario: &str, outcome: &Outcome, note: &str) {
    let verdict = if outcome.passed() { "passed" } else { "FAILED" };
    eprintln!("    {verdict}  {scenario}{note}: {} checks succeeded", outcome.successes);
    for fault in &outcome.faults {
        eprintln!("              - {fault}");
    }
    for warning in &outcome.warnings {
        eprintln!("              - warning: {warning}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(scenario: &str, checks: &Value, ending: &str) -> Vec<String> {
        let checks = checks.as_array().cloned().unwrap_or_default();
        Outcome::of(scenario, &checks, ending).faults
    }

    #[test]
    fn a_scenario_in_which_nothing_succeeded_has_failed() {
        let nothing = ["nothing was checked with success"];
        assert_eq!(faults("initialize", &json!([]), "0"), nothing);
        assert_eq!(
            faults("initialize", &json!([{"name": "A", "status": "SKIPPED"}]), "0"),
            nothing
        );
    }

    #[test]
    fn a_failed_check_and_an_unknown_status_fail_the_scenario() {
        let checks = json!([
            {"name": "A", "status": "SUCCESS"},
            {"name": "B", "status": "FAILURE", "details": {"message": "not called"}},
            {"name": "C", "status": "MAYBE", "description": "who knows"},
            {"name": "D", "status": "WARNING", "errorMessage": "should"},
        ]);
        assert_eq!(faults("tools_call", &checks, "0"), ["B: not called", "C: who knows"]);
    }

    #[test]
    fn a_client_that_crashes_or_hangs_fails_unless_it_may_give_up() {
        let checks = json!([{"name": "A", "status": "SUCCESS"}]);
        assert_eq!(faults("tools_call", &checks, "101"), ["the client ended with code 101"]);
        assert_eq!(faults("tools_call", &checks, ""), ["how the client ended is not known"]);
        assert_eq!(faults("auth/resource-mismatch", &checks, "1"), [""; 0]);
        let late = ["the client did not end in time"];
        assert_eq!(faults("auth/resource-mismatch", &checks, "timeout"), late);
    }

    #[test]
    fn only_the_required_client_scenarios_are_read_from_the_listing() {
        let listing = "Required for 2025-11-25:\n\nServer scenarios (test against a server):\n  - ping\n\n\
                       Client scenarios (test against a client):\n  - initialize\n  - auth/one\n\n\
                       Run and reported, but never scored:\n  extension (1):\n    - auth/two [client]\n";
        let found: Vec<&str> = client_scenarios(listing).collect();
        assert_eq!(found, ["initialize", "auth/one"]);
    }
}
