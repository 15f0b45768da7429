//! The `commit-msg` hook of `.githooks` accepts and rejects subjects.
#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]

use std::path::Path;
use std::process::Command;

/// Runs the hook on a message and returns its complaint, empty if it accepts.
fn complaint(message: &str) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), message).unwrap();
    let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.githooks/commit-msg");
    let output = Command::new(hook).arg(file.path()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.success(), stderr.is_empty(), "{stderr}");
    stderr
}

#[test]
fn subjects_with_an_area_and_an_imperative_are_accepted() {
    for subject in [
        "agent: share the placeholder for omitted images",
        "serve: ignore notifications dropped during shutdown\n\nThe reason.\n",
        "# A comment of git.\n\nmcp/http: drop `Inbox`\n",
        "merge: main into words-bin",
        "Merge branch 'main' into words-bin",
        "Revert \"serve: ignore notifications\"",
        &format!("docs: {}", "a".repeat(66)),
    ] {
        assert_eq!(complaint(subject), "", "{subject}");
    }
}

#[test]
fn other_subjects_are_rejected() {
    for subject in [
        "",
        "Fix clippy",
        "serve:ignore notifications",
        "serve: Ignore notifications",
        "serve: ignore notifications.",
        "serve: ignored notifications",
        "serve: ignoring notifications",
        "# Only a comment.",
    ] {
        assert_ne!(complaint(subject), "", "{subject}");
    }
    let long = format!("docs: {}", "a".repeat(67));
    assert!(complaint(&long).contains("has 73 characters, at most 72"), "{}", complaint(&long));
}
