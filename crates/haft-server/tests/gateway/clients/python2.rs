//! The official Python SDK, release 2, in both eras.

use serde_json::{Value, json};
use testkit::peers::{Era, python_program};

use super::report;
use super::toolbox::{Served, Toolbox, program};

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the legacy era over HTTP.
#[test]
fn python_2_legacy_over_http() {
    let report = over_http("legacy");
    report::assert_complete(&report, Some("2025-11-25"));
    assert_eq!(report["ended"], json!([404]), "the SDK ends its session");
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the modern era over HTTP.
#[test]
fn python_2_modern_over_http() {
    let report = over_http("modern");
    report::assert_complete(&report, Some("2026-07-28"));
    assert_eq!(report["ended"], json!([]), "this era has no sessions");
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the legacy era over stdio.
#[test]
fn python_2_legacy_over_stdio() {
    report::assert_complete(&over_stdio("legacy"), Some("2025-11-25"));
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the modern era over stdio.
#[test]
fn python_2_modern_over_stdio() {
    report::assert_complete(&over_stdio("modern"), Some("2026-07-28"));
}

fn over_http(era: &str) -> Value {
    let toolbox = Toolbox::new();
    let served = Served::start(&toolbox.workspace);
    let report = run(toolbox.over_http(&served), era);
    toolbox.assert_cancelled();
    served.end();
    toolbox.assert_nothing_is_left();
    report
}

fn over_stdio(era: &str) -> Value {
    let toolbox = Toolbox::new();
    let report = run(toolbox.over_stdio(), era);
    toolbox.assert_cancelled();
    toolbox.assert_nothing_is_left();
    report
}

fn run(mut request: Value, era: &str) -> Value {
    request["era"] = json!(era);
    let client = python_program(Era::Modern, &program("python2.py"));
    report::read(&client.run(&request.to_string()))
}
