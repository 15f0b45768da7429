//! `haft check` on a large configuration against `haft --version`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::ordinary_tool;
use testkit::times::Times;

use super::stats::ms;

const ROUNDS: usize = 21;
const TOOLS: usize = 500;
const SERVERS: usize = 50;

type Failure = Box<dyn std::error::Error>;

pub(crate) fn measure(folder: &Path) -> Result<(), Failure> {
    println!("\n# `haft check` on {TOOLS} tools and {SERVERS} servers");
    let folder = folder.join("check");
    std::fs::create_dir_all(folder.join("tools"))?;
    write(&folder)?;
    let haft = env!("CARGO_BIN_EXE_haft");
    let config = folder.join("haft.yaml");
    let (mut checks, mut versions) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        versions.push(run(Command::new(haft).arg("--version"))?);
        checks.push(run(Command::new(haft).arg("-c").arg(&config).arg("check"))?);
    }
    let (check, version) = (Times::new(checks).percentile(50), Times::new(versions).percentile(50));
    println!(
        "check {}, --version {}: {} more (target: under 100 ms)",
        ms(check),
        ms(version),
        ms(check.saturating_sub(version))
    );
    Ok(())
}

fn write(folder: &Path) -> Result<(), Failure> {
    let mut yaml = String::from("registry: {dir: tools}\nservers:\n");
    for at in 0..SERVERS {
        writeln!(
            yaml,
            "  server{at}:\n    transport: http\n    url: http://localhost:8{at:03}/mcp\n    mode: dynamic\n    \
             headers: {{Authorization: \"Bearer ${{TOKEN:-none}}\"}}\n    default_tool_config: {{max_instances: 10, timeout: 30s}}"
        )?;
    }
    std::fs::write(folder.join("haft.yaml"), yaml)?;
    let tool = |at| ordinary_tool(&format!("tool_{at}"), "A tool with a schema of ordinary size.");
    let tools: Vec<_> = (0..TOOLS).map(tool).collect();
    std::fs::write(folder.join("tools/tools.json"), json!({ "tools": tools }).to_string())?;
    std::fs::write(folder.join("tools/mcp.json"), r#"{"mcp_servers": {}}"#)?;
    Ok(())
}

fn run(command: &mut Command) -> Result<Duration, Failure> {
    let started = Instant::now();
    let status = command.stdout(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("{command:?} failed").into());
    }
    Ok(started.elapsed())
}
