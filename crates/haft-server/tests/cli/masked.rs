//! Servers' descriptions of themselves and their tools are printed without known secrets.

use serde_json::json;
use testkit::Workspace;
use testkit::canary::{assert_masked, servers};

use crate::run;

/// Proves S3-SC-005 for the command line, as text and as JSON.
#[test]
fn no_command_prints_a_known_secret() {
    let workspace = Workspace::new();
    let created =
        run(&workspace, &["--json", "keys", "create", "--scope", "admin", "--name", "me"]);
    let created: serde_json::Value = serde_json::from_str(&created.stdout).unwrap();
    let own_key = created["key"].as_str().unwrap();
    let (entries, _http) = servers(&workspace, own_key);
    workspace.write("haft.yaml", json!({"servers": entries}).to_string());
    for command in [
        &["tools", "list"][..],
        &["tools", "show", "process_tool"],
        &["tools", "show", "remote_tool"],
        &["servers", "list"],
        &["servers", "show", "process"],
        &["servers", "show", "remote"],
        &["prompts", "list"],
        &["resources", "list"],
        &["select", "use it"],
        &["config", "show"],
        &["check"],
        &["call", "process_tool"],
    ] {
        for format in [&["--json"][..], &[]] {
            let finished = run(&workspace, &[format, command].concat());
            let text = format!("{}{}", finished.stdout, finished.stderr);
            assert_masked(&format!("{command:?}"), &text, own_key);
            assert_eq!(finished.code, 0, "{command:?}: {text}");
        }
    }
}
