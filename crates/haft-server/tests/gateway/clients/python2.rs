//! The official Python SDK, release 2, in both eras.

use serde_json::json;
use testkit::peers::{CommandLine, Era, python_program};

use super::toolbox::program;
use super::{report, visit};

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the legacy era over HTTP.
#[test]
fn python_2_legacy_over_http() {
    let report = visit::over_http(&client(), "legacy");
    report::assert_complete(&report, Some("2025-11-25"));
    assert_eq!(report["ended"], json!([404]), "the SDK ends its session");
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the modern era over HTTP.
#[test]
fn python_2_modern_over_http() {
    let report = visit::over_http(&client(), "modern");
    report::assert_complete(&report, Some("2026-07-28"));
    assert_eq!(report["ended"], json!([]), "this era has no sessions");
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the modern era over stdio.
#[test]
fn python_2_modern_over_stdio() {
    report::assert_complete(&visit::over_stdio(&client(), "modern"), Some("2026-07-28"));
}

fn client() -> CommandLine {
    python_program(Era::Modern, &program("python2.py"))
}
