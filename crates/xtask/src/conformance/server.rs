//! The suite against a server, which also has to have what the suite calls.
//!
//! Some scenarios pass if a tool is missing, because its absence is an error, too, or text. So the lists have to name
//! everything that is called, two answers have to be the right ones, and no result but one may be an error.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::judge::{self, Outcome, Outcomes};
use super::suite::{self, Half, LEGACY, MODERN, REVISIONS, SCENARIO_TIMEOUT_MS};
use crate::peers;

/// The tools that the suite calls in both eras.
const TOOLS: [&str; 7] = [
    "test_audio_content",
    "test_embedded_resource",
    "test_error_handling",
    "test_image_content",
    "test_multiple_content_types",
    "test_simple_text",
    "test_tool_with_progress",
];
const LEGACY_TOOLS: [&str; 5] = [
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_sampling",
    "test_tool_with_logging",
];
const MODERN_TOOLS: [&str; 13] = [
    "test_input_required_result_capabilities",
    "test_input_required_result_elicitation",
    "test_input_required_result_list_roots",
    "test_input_required_result_multi_round",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_request_state",
    "test_input_required_result_sampling",
    "test_input_required_result_tampered_state",
    "test_logging_tool",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_trigger_prompt_change",
    "test_trigger_tool_change",
];
const PROMPTS: [&str; 4] = [
    "test_prompt_with_arguments",
    "test_prompt_with_embedded_resource",
    "test_prompt_with_image",
    "test_simple_prompt",
];
const MODERN_PROMPTS: [&str; 1] = ["test_input_required_result_prompt"];
const RESOURCES: [&str; 2] = ["test://static-binary", "test://static-text"];
const LEGACY_RESOURCES: [&str; 1] = ["test://watched-resource"];

/// The one scenario whose result has to be an error.
const ERROR: &str = "tools-call-error";

/// Answers that have to be just these.
const TEXTS: [(&str, &str); 2] = [
    ("tools-call-simple-text", "This is a simple text response for testing."),
    (ERROR, "This tool intentionally returns an error for testing"),
];

/// Tests the server that the words of a command line name: `--url URL`, and `--revision` or `--scenario`
/// for less than everything.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let options = Options::read(words)?;
    peers::install()?;
    match options.scenario {
        Some(scenario) => run_scenario(options.url, scenario, options.revision),
        None => run_all(options.url, options.revision, &[]),
    }
}

/// Tests a server in one revision, or in all. `judged` are scenarios that have to pass beside the required ones.
pub(super) fn run_all(url: &str, revision: Option<&'static str>, judged: &[&str]) -> Result<()> {
    let one = revision.map(|revision| [revision]);
    let revisions = one.as_ref().map_or(&REVISIONS[..], |one| &one[..]);
    super::score(Half::Server, revisions, judged, |revision| {
        results(url, revision, &["--requirements", revision])
    })
}

/// Runs one scenario, also one that is not scored.
fn run_scenario(url: &str, scenario: &str, revision: Option<&'static str>) -> Result<()> {
    let mut revisions = Vec::from_iter(revision);
    if revision.is_none() {
        for revision in REVISIONS {
            if suite::required(Half::Server, revision)?.iter().any(|name| name == scenario) {
                revisions.push(revision);
            }
        }
        ensure!(!revisions.is_empty(), "no revision requires `{scenario}`: pass --revision");
    }
    let required = [scenario.to_owned()];
    let mut passed = 0;
    for revision in &revisions {
        let options = ["--scenario", scenario, "--spec-version", revision];
        passed += judge::show(revision, &required, &results(url, revision, &options)?);
    }
    ensure!(passed == revisions.len(), "`{scenario}` failed");
    Ok(())
}

struct Options<'a> {
    url: &'a str,
    revision: Option<&'static str>,
    scenario: Option<&'a str>,
}

impl<'a> Options<'a> {
    fn read(words: &[&'a str]) -> Result<Self> {
        let (mut url, mut revision, mut scenario) = (None, None, None);
        let (pairs, rest) = words.as_chunks::<2>();
        for &[option, value] in pairs {
            match option {
                "--url" => url = Some(value),
                "--scenario" => scenario = Some(value),
                "--revision" => {
                    let known = REVISIONS.into_iter().find(|known| *known == value);
                    let all = REVISIONS.join(", ");
                    revision = Some(known.with_context(|| format!("{value} is none of {all}"))?);
                }
                option => bail!("`{option}` is none of --url, --revision, --scenario"),
            }
        }
        if let [option, ..] = rest {
            bail!("`{option}` has no value");
        }
        let url = url.context("which server? pass --url URL")?;
        Ok(Self { url, revision, scenario })
    }
}

/// Runs what the options choose.
fn results(url: &str, revision: &str, options: &[&str]) -> Result<Outcomes> {
    let out = suite::folder().join(format!("server-{revision}"));
    let mut command = suite::command()?;
    command.args(["server", "--url", url, "--timeout", SCENARIO_TIMEOUT_MS]).args(options);
    eprintln!("\n==> conformance server --url {url} {}", options.join(" "));
    suite::run(&mut command, &out)?;
    judge::read(&out, "server-", |scenario, checks| outcome(revision, scenario, checks))
}

/// Judges a scenario by its checks, and by what they show of the server's answers.
fn outcome(revision: &str, scenario: &str, checks: &[Value]) -> Outcome {
    let mut outcome = Outcome::of(checks);
    for check in checks {
        if check["details"]["result"]["isError"] == true && scenario != ERROR {
            let result = &check["details"]["result"];
            outcome.faults.push(format!("{}: {result}", judge::shown_check(check)));
        }
    }
    for (_, text) in TEXTS.iter().filter(|(name, _)| *name == scenario) {
        if !checks.iter().any(|check| says(check, text)) {
            outcome.faults.push(format!("the answer is not `{text}`"));
        }
    }
    let (list, names) = listed(revision, scenario);
    for name in names {
        if !checks.iter().any(|check| lists(check, list, name)) {
            outcome.faults.push(format!("`{name}` is not listed"));
        }
    }
    outcome
}

/// The names that a scenario's list must have, and where its checks keep that list.
fn listed(revision: &str, scenario: &str) -> (&'static str, Vec<&'static str>) {
    let chosen: (&str, [&[&str]; 2]) = match (scenario, revision) {
        ("tools-list", LEGACY) => ("tools", [&TOOLS, &LEGACY_TOOLS]),
        ("tools-list", MODERN) => ("tools", [&TOOLS, &MODERN_TOOLS]),
        ("prompts-list", MODERN) => ("prompts", [&PROMPTS, &MODERN_PROMPTS]),
        ("prompts-list", _) => ("prompts", [&PROMPTS, &[]]),
        ("resources-list", LEGACY) => ("resources", [&RESOURCES, &LEGACY_RESOURCES]),
        ("resources-list", _) => ("resources", [&RESOURCES, &[]]),
        _ => ("", [&[], &[]]),
    };
    (chosen.0, chosen.1.concat())
}

fn lists(check: &Value, list: &str, name: &str) -> bool {
    check["details"][list].as_array().is_some_and(|names| names.iter().any(|it| it == name))
}

fn says(check: &Value, text: &str) -> bool {
    let content = check["details"]["result"]["content"].as_array();
    content.is_some_and(|blocks| blocks.iter().any(|block| block["text"] == text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(scenario: &str, details: &Value) -> Vec<String> {
        let check =
            json!({"name": "A", "description": "B", "status": "SUCCESS", "details": details});
        outcome(LEGACY, scenario, &[check]).faults
    }

    fn result(text: &str, is_error: bool) -> Value {
        json!({"result": {"content": [{"type": "text", "text": text}], "isError": is_error}})
    }

    #[test]
    fn a_tool_that_is_not_there_does_not_pass_for_one_that_answers() {
        let (simple, _) = TEXTS[0];
        let nothing = result("no tool test_simple_text", true);
        let shown = &nothing["result"];
        assert_eq!(
            faults(simple, &nothing),
            [format!("A: B: {shown}"), format!("the answer is not `{}`", TEXTS[0].1)]
        );
        assert_eq!(faults(simple, &result(TEXTS[0].1, false)), [""; 0]);
    }

    #[test]
    fn a_tool_that_is_not_there_does_not_pass_for_one_that_fails() {
        let wrong = [format!("the answer is not `{}`", TEXTS[1].1)];
        assert_eq!(faults(ERROR, &result("no tool test_error_handling", true)), wrong);
        assert_eq!(faults(ERROR, &result(TEXTS[1].1, true)), [""; 0]);
    }

    #[test]
    fn a_list_has_to_name_everything_that_is_called() {
        let names = ["test://static-text", "test://watched-resource"];
        let missing = ["`test://static-binary` is not listed"];
        assert_eq!(faults("resources-list", &json!({"resources": names})), missing);
        assert_eq!(faults("resources-list", &json!({})).len(), 3);
    }

    #[test]
    fn the_options_name_a_server_and_a_known_revision() {
        let read = |words: &[&str]| Options::read(words).map_err(|error| error.to_string()).err();
        assert_eq!(read(&["--url", "http://x/mcp", "--revision", MODERN]), None);
        assert_eq!(read(&[]).as_deref(), Some("which server? pass --url URL"));
        assert_eq!(read(&["--url"]).as_deref(), Some("`--url` has no value"));
        assert_eq!(
            read(&["--url", "u", "--revision", "1"]).as_deref(),
            Some("1 is none of 2025-11-25, 2026-07-28")
        );
    }
}
