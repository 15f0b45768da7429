//! The official Python SDK, release 1, which knows the legacy era only.

use testkit::peers::{CommandLine, Era, python_program};

use super::toolbox::program;
use super::{report, visit};

/// Proves S1-1, S0-22, S3-SC-006, S1-5 over HTTP.
#[test]
fn python_1_over_http() {
    let report = visit::over_http(&client(), "legacy");
    report::assert_complete(&report, Some("2025-11-25"));
    assert_eq!(report["ended"], 404, "the SDK ends its session");
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 over stdio.
#[test]
fn python_1_over_stdio() {
    report::assert_complete(&visit::over_stdio(&client(), "legacy"), Some("2025-11-25"));
}

fn client() -> CommandLine {
    python_program(Era::Legacy, &program("python1.py"))
}
