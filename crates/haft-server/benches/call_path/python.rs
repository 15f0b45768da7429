//! A Python tool: a warm worker against a process per call, and how soon the script starts.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use haft::{Config, Runtime, ToolCall};
use serde_json::json;
use testkit::times::{Times, ratio};

use super::stats::{ms, us};

const WARM_CALLS: usize = 3_000;
const SPAWNS: usize = 40;
const OVERHEAD_CALLS: usize = 100;

const SCRIPT: &str = "
import sys, json, time

def run(args):
    return {'echo': args['text'], 'started_ns': time.time_ns()}

if __name__ == '__main__':
    print(json.dumps(run(json.load(sys.stdin))))
";

const TOOLS: &str = r#"{"tools": [
    {"name": "echo", "description": "Echo.", "type": "local", "input_schema": {"type": "object"}, "config": {"script_path": "echo.py"}},
    {"name": "again", "description": "Echo.", "type": "local", "input_schema": {"type": "object"}, "config": {"script_path": "echo.py"}}
]}"#;

/// By then a process waits for the next tool again.
const REFILLED_AFTER: Duration = Duration::from_secs(3);

type Failure = Box<dyn std::error::Error>;

pub(crate) async fn measure(folder: &Path) -> Result<(), Failure> {
    println!("\n# A Python tool");
    let tools = folder.join("tools");
    std::fs::create_dir_all(&tools)?;
    std::fs::write(tools.join("echo.py"), SCRIPT)?;
    std::fs::write(tools.join("tools.json"), TOOLS)?;
    std::fs::write(tools.join("mcp.json"), r#"{"mcp_servers": {}}"#)?;
    let logs = folder.join("logs-python");
    let config = Config::from_yaml(&format!(
        "{{registry: {{dir: '{}'}}, log: {{dir: '{}'}}}}",
        tools.display(),
        logs.display()
    ))?;
    let runtime = Runtime::start(config).await?;

    let first = overhead(&runtime, "echo").await?;
    tokio::time::sleep(REFILLED_AFTER).await;
    let mut overheads = Vec::new();
    for _ in 0..OVERHEAD_CALLS {
        overheads.push(overhead(&runtime, "again").await?);
    }
    println!(
        "request to start of the script's function, the first call of a tool: {}; in the moment after \
         the start of Haft itself, when Python is only starting: {}",
        ms(overheads[0]),
        ms(first)
    );
    let overheads = Times::new(overheads);
    println!(
        "the same over {OVERHEAD_CALLS} calls of a tool, its first included: p50 {}, p99 {} \
         (required: p99 below 200 ms)",
        us(overheads.percentile(50)),
        ms(overheads.percentile(99))
    );

    // Warm calls and spawns alternate, so that both see the same machine.
    let (mut warm, mut spawned) = (Vec::new(), Vec::new());
    for _ in 0..SPAWNS {
        for _ in 0..WARM_CALLS / SPAWNS {
            let call = ToolCall::new("echo", &json!({"text": "hi"}));
            let started = Instant::now();
            runtime.call(call).await;
            warm.push(started.elapsed());
        }
        spawned.push(spawn(&tools.join("echo.py"))?);
    }
    let (warm, spawned) = (Times::new(warm), Times::new(spawned));
    println!(
        "warm call: p50 {}, p99 {}; `python3 script.py`: p50 {}; a warm call is {:.0}x faster (target: 200x)",
        us(warm.percentile(50)),
        us(warm.percentile(99)),
        ms(spawned.percentile(50)),
        ratio(spawned.percentile(50), warm.percentile(50))
    );
    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

/// The time from the request to the first line of the script's function.
async fn overhead(runtime: &Runtime, tool: &str) -> Result<Duration, Failure> {
    let asked = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let answer = runtime.call(ToolCall::new(tool, &json!({"text": "hi"}))).await;
    let data = answer.data.ok_or_else(|| format!("{:?}", answer.error))?;
    let value: serde_json::Value = serde_json::from_str(data.get())?;
    let started = Duration::from_nanos(value["started_ns"].as_u64().unwrap_or(0));
    Ok(started.saturating_sub(asked))
}

/// The same work in a process of its own.
fn spawn(script: &Path) -> Result<Duration, Failure> {
    use std::io::Write;
    let started = Instant::now();
    let mut child =
        Command::new("python3").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().ok_or("no stdin")?.write_all(br#"{"text": "hi"}"#)?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err("the script failed".into());
    }
    Ok(started.elapsed())
}
