//! `rmcp`, the official Rust SDK, in both eras. Its program is built with the test kit.

use testkit::peers::rmcp_client;

use super::{report, visit};

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the legacy era over HTTP.
#[test]
fn rmcp_legacy_over_http() {
    report::assert_complete(&visit::over_http(&rmcp_client(), "legacy"), Some("2025-11-25"));
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the modern era over HTTP.
#[test]
fn rmcp_modern_over_http() {
    report::assert_complete(&visit::over_http(&rmcp_client(), "modern"), Some("2026-07-28"));
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the legacy era over stdio.
#[test]
fn rmcp_legacy_over_stdio() {
    report::assert_complete(&visit::over_stdio(&rmcp_client(), "legacy"), Some("2025-11-25"));
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5 in the modern era over stdio.
#[test]
fn rmcp_modern_over_stdio() {
    report::assert_complete(&visit::over_stdio(&rmcp_client(), "modern"), Some("2026-07-28"));
}
