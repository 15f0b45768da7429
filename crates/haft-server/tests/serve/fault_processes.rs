//! Processes and output that local tools leave to `haft serve`.

use serde_json::{Value, json};
use testkit::{Workspace, is_running};

use crate::faults::{all_gone, call, memory};
use crate::served::Served;

/// Starts three processes, of which one ignores SIGTERM, and returns.
const FORKS_PY: &str = r#"
import subprocess
STUBBORN = ["sh", "-c", "trap '' TERM; while :; do sleep 300; done"]
def run(args):
    commands = [["sleep", "300"], ["setsid", "sleep", "300"], STUBBORN]
    return [subprocess.Popen(command).pid for command in commands]
"#;

const FORKS_SH: &str = "#!/bin/sh
sleep 300 >/dev/null 2>&1 & one=$!
setsid sleep 300 >/dev/null 2>&1 & two=$!
sh -c \"trap '' TERM; while :; do sleep 300; done\" >/dev/null 2>&1 & three=$!
echo \"[$one,$two,$three]\"
";

/// One line without an end, of bytes that take six in JSON.
const FLOOD_SH: &str = "#!/bin/sh\nexec cat /dev/zero\n";

/// Prints without an end to both streams, then raises.
const FLOOD_PY: &str = r#"
import os, sys
def run(args):
    for _ in range(64):
        os.write(1, b"\0" * 1048576)
        os.write(2, b"\0" * 1048576)
    raise ValueError("\0" * 1048576)
"#;

fn workspace(background: Option<&str>) -> Workspace {
    use std::os::unix::fs::PermissionsExt;
    let entry = |name: &str, script: &str| {
        let mut entry = json!({
            "name": name, "type": "local", "input_schema": {"type": "object"}, "description": "A tool of a test.",
            "config": {"script_path": script},
        });
        if let Some(background) = background {
            entry["background"] = json!(background);
        }
        entry
    };
    let tools = json!({"tools": [
        entry("forks_py", "forks.py"), entry("forks_sh", "forks.sh"),
        entry("flood_py", "flood.py"), entry("flood_sh", "flood.sh"),
    ]});
    let workspace = Workspace::with(&[
        ("haft.yaml", "registry: {dir: tools}\n"),
        ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
        ("tools/tools.json", &tools.to_string()),
        ("tools/forks.py", FORKS_PY),
        ("tools/flood.py", FLOOD_PY),
    ]);
    for (script, text) in [("tools/forks.sh", FORKS_SH), ("tools/flood.sh", FLOOD_SH)] {
        let path = workspace.write(script, text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    workspace
}

async fn forked(served: &Served, tool: &str) -> Vec<u32> {
    let answer = call(served, tool, &json!({})).await.json();
    serde_json::from_value(answer["data"].clone()).unwrap_or_else(|_| panic!("{answer}"))
}

#[tokio::test]
async fn processes_that_a_call_started_end_with_it() {
    let served = Served::open(workspace(None));
    for tool in ["forks_py", "forks_sh", "forks_py"] {
        let pids = forked(&served, tool).await;
        assert_eq!(pids.len(), 3);
        all_gone(&pids);
    }
}

#[tokio::test]
async fn processes_continue_where_the_entry_allows_it() {
    let served = Served::open(workspace(Some("allow")));
    let mut pids = forked(&served, "forks_py").await;
    pids.extend(forked(&served, "forks_sh").await);
    pids.extend(forked(&served, "forks_py").await);
    assert_eq!(pids.len(), 9);
    assert!(pids.iter().all(|pid| is_running(*pid)), "{pids:?}");
    assert_eq!(served.end().code, 0);
    all_gone(&pids);
}

#[tokio::test]
async fn a_background_that_is_unknown_is_refused() {
    let workspace = workspace(Some("sometimes"));
    let finished = crate::served::haft(&workspace, &["check"]).run();
    assert_eq!(finished.code, 2, "{}", finished.stderr);
    assert!(finished.stderr.contains("`end`") && finished.stderr.contains("`allow`"));
}

/// A stream without an end costs the buffer of its cap, whatever its bytes are.
#[tokio::test]
async fn a_flood_in_one_line_keeps_memory_flat() {
    let served = Served::open(workspace(None));
    let (before, _) = memory(served.pid);
    for (tool, code) in [("flood_sh", Value::Null), ("flood_py", json!("ToolExecutionError"))] {
        let answer = call(&served, tool, &json!({})).await.json();
        assert_eq!(answer["error"]["code"], code, "{tool}");
    }
    let (_, peak) = memory(served.pid);
    let grown = (peak - before) >> 20;
    assert!(grown < 80, "the floods took {grown} MiB");
    assert_eq!(served.log().len(), 2);
}
