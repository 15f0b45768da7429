//! Files of other tools, with real servers behind them.

use serde_json::{Value, json};
use testkit::fixture::{Fixture, events, messages};
use testkit::{Program, Workspace};

use super::e2e_support::{mcp, serve, stdio};
use crate::{haft, run};

/// The source of each tool of a list.
fn sources(json: &str) -> Vec<String> {
    let tools: Vec<Value> = serde_json::from_str(json).unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or("local").to_owned();
    tools.iter().map(|it| format!("{} {}", word(&it["name"]), word(&it["mcp_name"]))).collect()
}

/// Proves X-12, S0-62, S2-US4-1, S2-KE-03: a file of each format at once; all tools in one list.
#[test]
fn files_of_several_formats_serve_together() {
    let workspace = crate::toolbox();
    let remote = serve(&workspace, "remote", json!({"tools": ["stats"]}));
    let own = |name: &str, tool: &str| {
        let tools = json!([{"name": tool, "inputSchema": {"type": "object"}}]);
        stdio(&workspace, name, json!({ "tools": tools }))
    };
    workspace.write(
        "tools/mcp.json",
        json!({"mcp_servers": {"registered": own("registered", "reg")}}).to_string(),
    );
    let mut agent = own("agent", "from_agent");
    agent["name"] = json!("agent");
    agent["type"] = json!("mcp");
    let agent = json!({"name": "a", "tools": [agent]});
    workspace.write("agent.yaml", agent.to_string());
    workspace.write(
        ".vscode/mcp.json",
        json!({"servers": {"code": own("code", "from_code")}}).to_string(),
    );
    workspace.write(
        "claude.json",
        json!({"mcpServers": {"claude": own("claude", "from_claude")}}).to_string(),
    );
    let toolbox =
        json!({"myai": {"toolbox": {"tools": [], "mcps": [mcp("box", &remote.url, "dynamic")]}}});
    workspace.write("toolbox.yaml", toolbox.to_string());
    let files = ["haft.yaml", "agent.yaml", ".vscode/mcp.json", "claude.json", "toolbox.yaml"];
    let files: Vec<&str> = files.iter().flat_map(|file| ["-c", file]).collect();
    for tool in ["from_agent", "from_code", "from_claude", "reg"] {
        let called =
            run(&workspace, &[&files[..], &["call", tool, "n=1", "--log-level", "error"]].concat());
        assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{tool}");
        assert!(called.stdout.contains("\"n\": 1"), "{tool}: {}", called.stdout);
    }
    // Servers of agent.yaml start at their first call, and are known from then on.
    let finished = run(&workspace, &[&files[..], &["tools", "list", "--json"]].concat());
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let mut listed = sources(&finished.stdout);
    listed.sort();
    let expected = [
        "echo local",
        "fail local",
        "from_agent agent",
        "from_claude claude",
        "from_code code",
        "greet local",
        "reg registered",
        "stats box",
        "wait local",
    ];
    assert_eq!(listed, expected);
}

/// Proves X-12: the same name in two files: the later one runs, with a WARNING that names both.
#[test]
fn the_later_file_wins() {
    let workspace = Workspace::new();
    let entry = |name: &str| json!({"mcpServers": {"same": stdio(&workspace, name, json!({"tools": ["echo"]}))}});
    workspace.write("first.json", entry("first").to_string());
    workspace.write("second.json", entry("second").to_string());
    let finished = run(&workspace, &["-c", "first.json", "-c", "second.json", "call", "echo"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let starts =
        |name: &str| events(&workspace.path().join(format!("{name}.facts")), "start").len();
    assert_eq!((starts("first"), starts("second")), (0, 1));
    let warning = finished.stderr.lines().find(|line| line.starts_with("WARNING: ")).unwrap();
    for part in ["same", "first.json", "second.json"] {
        assert!(warning.contains(part), "{warning}");
    }
}

/// A stand-in for `npx`, which notes how it was called and serves.
fn fake_npx(workspace: &Workspace) -> String {
    let scenario = json!({"facts": workspace.path().join("npx.facts"), "tools": ["echo"]});
    workspace.write("scenario.json", scenario.to_string());
    let folder = workspace.path().display().to_string();
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{folder}/argv'\nexec '{}' stdio --script '{folder}/scenario.json'\n",
        Fixture::path().display()
    );
    let npx = workspace.write("bin/npx", script);
    let chmod = Program::new("chmod", workspace).args(&["+x", npx.to_str().unwrap()]).run();
    assert_eq!(chmod.code, 0);
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{folder}/bin:{path}")
}

/// Proves S3-US1-1, S3-US1-2, S3-US1-T, S3-FR-001: `server` is short for `npx -y PACKAGE`, `command` is used
/// unmodified, and the call reaches the server.
#[test]
fn a_package_runs_with_npx() {
    let package = "@modelcontextprotocol/server-filesystem";
    let ways = [
        (format!("server: '{package}'"), format!("-y\n{package}\n")),
        (
            format!("command: npx\n    args: ['-y', '{package}', '.']"),
            format!("-y\n{package}\n.\n"),
        ),
    ];
    for (lines, argv) in ways {
        let workspace = Workspace::new();
        let path = fake_npx(&workspace);
        let file = format!(
            "name: a\ntools:\n  - name: files\n    type: mcp\n    description: d\n    {lines}\n"
        );
        workspace.write("agent.yaml", file);
        let call = ["-c", "agent.yaml", "call", "echo", "path=/x", "--log-level", "error"];
        let finished = haft(&workspace, &call).env("PATH", &path).run();
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
        assert_eq!(workspace.read("argv"), Some(argv));
        let called = messages(&workspace.path().join("npx.facts"), "tools/call").remove(0);
        assert_eq!(called["params"]["arguments"], json!({"path": "/x"}));
    }
}
