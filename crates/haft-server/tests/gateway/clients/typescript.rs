//! The official TypeScript SDK: release 1, which knows the legacy era only, and release 2 in both.

use testkit::peers::{CommandLine, node_program};

use super::toolbox::program;
use super::{report, visit};

/// Proves S1-1, S0-22, S3-SC-006, S1-5 over HTTP. A broken stream is resumed with `Last-Event-ID`.
#[test]
fn typescript_1_over_http() {
    let report = visit::over_http(&client("1"), "legacy");
    report::assert_complete(&report, Some("2025-11-25"));
    report::assert_resumed(&report);
    assert_eq!(report["ended"], 404);
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 over stdio.
#[test]
fn typescript_1_over_stdio() {
    report::assert_complete(&visit::over_stdio(&client("1"), "legacy"), None);
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the legacy era over HTTP.
#[test]
fn typescript_2_legacy_over_http() {
    let report = visit::over_http(&client("2"), "legacy");
    report::assert_complete(&report, Some("2025-11-25"));
    report::assert_resumed(&report);
    assert_eq!(report["ended"], 404);
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the modern era over HTTP.
#[test]
fn typescript_2_modern_over_http() {
    report::assert_complete(&visit::over_http(&client("2"), "modern"), Some("2026-07-28"));
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the modern era over stdio.
#[test]
fn typescript_2_modern_over_stdio() {
    report::assert_complete(&visit::over_stdio(&client("2"), "modern"), Some("2026-07-28"));
}

fn client(release: &str) -> CommandLine {
    node_program(&program("typescript.mjs")).arg(release)
}
