//! A scenario passes if some check of its own succeeded and none failed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::shown_path;

/// The outcome of each scenario.
pub(super) type Outcomes = BTreeMap<String, Outcome>;

/// The length of what the suite appends to a scenario's folder: `-2026-07-28T00-00-00-000Z`.
const FOLDER_TIME_LEN: usize = 25;

/// Largest part of a failed check's reason that is shown; its file has the rest.
const REASON_CHARS_MAX: usize = 300;

/// A check that the suite adds to every scenario: the shape of the sent messages. It succeeds for a refusal as well,
/// so it does not prove the scenario.
const SHAPE_CHECK: &str = "wire-schema-valid";

/// The outcome of one scenario.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    successes: usize,
    /// Why it failed; nothing if it passed.
    pub(super) faults: Vec<String>,
    warnings: Vec<String>,
}

impl Outcome {
    /// Judges a scenario by its checks.
    pub(super) fn of(checks: &[Value]) -> Self {
        let mut outcome = Self::default();
        for check in checks {
            match check["status"].as_str() {
                Some("SUCCESS") => outcome.successes += usize::from(check["id"] != SHAPE_CHECK),
                Some("WARNING") => outcome.warnings.push(shown_check(check)),
                Some("SKIPPED" | "INFO") => {}
                // An unknown status is not a success.
                Some(_) | None => outcome.faults.push(shown_check(check)),
            }
        }
        if outcome.successes == 0 {
            outcome.faults.push("nothing was checked with success".to_owned());
        }
        outcome
    }

    pub(super) fn passed(&self) -> bool {
        self.faults.is_empty()
    }
}

/// A check's name and its error.
pub(super) fn shown_check(check: &Value) -> String {
    let text = |key: &str| check[key].as_str().filter(|text| !text.is_empty());
    let name = text("name").or(text("id")).unwrap_or("a check without a name");
    let why = text("errorMessage").or(check["details"]["message"].as_str()).or(text("description"));
    let why = why.and_then(|why| why.lines().next()).unwrap_or("no reason given");
    format!("{name}: {}", why.chars().take(REASON_CHARS_MAX).collect::<String>())
}

/// Judges every scenario that left its checks below a folder.
pub(super) fn read(
    out: &Path,
    folder_prefix: &str,
    judge: impl Fn(&str, &[Value]) -> Outcome,
) -> Result<Outcomes> {
    let mut outcomes = Outcomes::new();
    for file in checks_files(out)? {
        let place = file.parent().and_then(|place| place.strip_prefix(out).ok());
        let place = place.map(|place| place.to_string_lossy().into_owned()).unwrap_or_default();
        let name = place.split_at_checked(place.len().saturating_sub(FOLDER_TIME_LEN));
        let Some(scenario) = name.and_then(|(name, _)| name.strip_prefix(folder_prefix)) else {
            continue;
        };
        let text = fs::read_to_string(&file)?;
        let checks: Vec<Value> = serde_json::from_str(&text)
            .with_context(|| format!("{} is not a list of checks", shown_path(&file)))?;
        outcomes.insert(scenario.to_owned(), judge(scenario, &checks));
    }
    Ok(outcomes)
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
pub(super) fn show(revision: &str, required: &[String], outcomes: &Outcomes) -> usize {
    let mut passed = 0;
    for scenario in required {
        let missing = Outcome { faults: vec!["it did not run".to_owned()], ..Outcome::default() };
        let outcome = outcomes.get(scenario).unwrap_or(&missing);
        passed += usize::from(outcome.passed());
        show_line(scenario, outcome, "");
    }
    for (scenario, outcome) in outcomes.iter().filter(|(name, _)| !required.contains(name)) {
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

    fn faults(checks: &Value) -> Vec<String> {
        Outcome::of(checks.as_array().unwrap()).faults
    }

    #[test]
    fn a_scenario_in_which_nothing_succeeded_has_failed() {
        let nothing = ["nothing was checked with success"];
        assert_eq!(faults(&json!([])), nothing);
        assert_eq!(faults(&json!([{"name": "A", "status": "SKIPPED"}])), nothing);
        let shape = json!({"id": SHAPE_CHECK, "status": "SUCCESS"});
        assert_eq!(faults(&json!([{"name": "A", "status": "WARNING"}, shape])), nothing);
    }

    #[test]
    fn a_failed_check_and_an_unknown_status_fail_the_scenario() {
        let checks = json!([
            {"name": "A", "status": "SUCCESS"},
            {"name": "B", "status": "FAILURE", "details": {"message": "not called"}},
            {"name": "C", "status": "MAYBE", "description": "who knows"},
            {"name": "D", "status": "WARNING", "errorMessage": "should"},
        ]);
        assert_eq!(faults(&checks), ["B: not called", "C: who knows"]);
    }
}
