//! The official TypeScript SDK: release 1, and release 2 in both eras.

use serde_json::{Value, json};
use testkit::peers::node_program;

use super::report;
use super::toolbox::{Served, Toolbox, program};

/// Proves S1-1, S0-22, S3-SC-006, S1-5 over HTTP. A broken stream is resumed with `Last-Event-ID`.
#[test]
fn typescript_1_over_http() {
    let report = over_http("1", "legacy");
    report::assert_complete(&report, Some("2025-11-25"));
    report::assert_resumed(&report);
    assert_eq!(report["ended"], 404);
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 over stdio.
#[test]
fn typescript_1_over_stdio() {
    report::assert_complete(&over_stdio("1", "legacy"), None);
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the legacy era over HTTP.
#[test]
fn typescript_2_legacy_over_http() {
    let report = over_http("2", "legacy");
    report::assert_complete(&report, Some("2025-11-25"));
    report::assert_resumed(&report);
    assert_eq!(report["ended"], 404);
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the modern era over HTTP.
#[test]
fn typescript_2_modern_over_http() {
    report::assert_complete(&over_http("2", "modern"), Some("2026-07-28"));
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the modern era over stdio.
#[test]
fn typescript_2_modern_over_stdio() {
    report::assert_complete(&over_stdio("2", "modern"), Some("2026-07-28"));
}

fn over_http(release: &str, era: &str) -> Value {
    let toolbox = Toolbox::new();
    let served = Served::start(&toolbox.workspace);
    let report = run(release, toolbox.over_http(&served), era);
    toolbox.assert_cancelled();
    served.end();
    toolbox.assert_nothing_is_left();
    report
}

fn over_stdio(release: &str, era: &str) -> Value {
    let toolbox = Toolbox::new();
    let report = run(release, toolbox.over_stdio(), era);
    toolbox.assert_cancelled();
    toolbox.assert_nothing_is_left();
    report
}

fn run(release: &str, mut request: Value, era: &str) -> Value {
    request["era"] = json!(era);
    let client = node_program(&program("typescript.mjs")).arg(release);
    report::read(&client.run(&request.to_string()))
}
