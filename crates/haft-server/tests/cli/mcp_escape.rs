//! A process that gets away from its server.

use serde_json::json;
use testkit::Workspace;
use testkit::fixture::Fixture;

use crate::run;

/// It may survive without any link to it, but Haft does not wait for it.
#[test]
fn a_process_that_got_away_does_not_keep_haft_from_ending() {
    let workspace = Workspace::new();
    let scenario = json!({"tools": [{"name": "here", "behaves": "text"}]});
    let args: Vec<String> =
        Fixture::stdio_args(&scenario).iter().map(|arg| format!("'{arg}'")).collect();
    // It leaves its group, clears its environment, loses its parent, and keeps standard error.
    let script = format!(
        "(setsid env -i /bin/sh -c 'echo $$ > away.pid; exec /bin/sleep 300' </dev/null >/dev/null &)\n\
         exec '{}' {}\n",
        Fixture::path().display(),
        args.join(" ")
    );
    workspace.write("server.sh", script);
    workspace.write("haft.yaml", "servers: {one: {command: sh, args: [server.sh]}}\n");
    let finished = run(&workspace, &["call", "here"]);
    let pid = std::fs::read_to_string(workspace.path().join("away.pid")).unwrap();
    let _ = std::process::Command::new("kill").arg(pid.trim()).status();
    assert_eq!(finished.code, 0, "{finished:?}");
}
