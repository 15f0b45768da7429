//! `cargo xtask bench start`: how soon a client sees every tool, and how long `haft call` takes beside a service.
//!
//! Five real servers from npm, started with `npx`. Every figure is the time from the start of a process to its answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::run::{cargo, step, target};
use crate::tools::require_program;

/// The servers, by name in the configuration.
const SERVERS: [(&str, &[&str]); 5] = [
    ("everything", &["@modelcontextprotocol/server-everything@2026.8.31"]),
    ("files", &["@modelcontextprotocol/server-filesystem@2026.8.31", "."]),
    ("memory", &["@modelcontextprotocol/server-memory@2026.8.31"]),
    ("notes", &["@modelcontextprotocol/server-memory@2026.8.31"]),
    ("thinking", &["@modelcontextprotocol/server-sequential-thinking@2026.8.31"]),
];
/// Repetitions of each measurement.
const RUNS: usize = 10;
/// The goals.
const LIST_GOAL: Duration = Duration::from_millis(100);
const CALL_GOAL: Duration = Duration::from_millis(50);
/// The call that is measured.
const CALL: [&str; 4] = ["call", "get-sum", "a=1", "b=2"];

pub(crate) fn run(options: &[&str]) -> Result<()> {
    require_program("npm", "npm")?;
    let haft = match options {
        [] => {
            step(&mut cargo(&[
                "build",
                "--profile=dist",
                "--package",
                "haft-server",
                "--bin",
                "haft",
            ]))?;
            target().join("dist/haft")
        }
        ["--binary", path] => PathBuf::from(path).canonicalize().context(format!("no `{path}`"))?,
        _ => bail!("the options are: [--binary PATH]"),
    };
    let folder = target().join("bench-start");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let haft = Haft { program: haft, folder };
    haft.configure()?;
    let (first, tools) = haft.list()?;
    println!("{:<44} {:>9}", "first start of `haft mcp`, tools/list", shown(first));
    println!("{:<44} {tools:>9}", "tools");
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let (time, count) = haft.list()?;
        if count != tools {
            bail!("a later start lists {count} tools, the first one {tools}");
        }
        times.push(time);
    }
    report("later starts, complete tools/list", times, LIST_GOAL);
    let _service = haft.serve()?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        times.push(haft.call()?);
    }
    report("`haft call` beside a running service", times, CALL_GOAL);
    Ok(())
}

/// Median and largest value against the goal.
fn report(what: &str, mut times: Vec<Duration>, goal: Duration) {
    times.sort_unstable();
    let (median, max) = (times[times.len() / 2], times[times.len() - 1]);
    let verdict = if median <= goal { "met" } else { "missed" };
    println!(
        "{what:<44} {:>9} median, {} max; goal {} {verdict}",
        shown(median),
        shown(max),
        shown(goal)
    );
}

fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// The program and the folder it runs in.
struct Haft {
    program: PathBuf,
    folder: PathBuf,
}

/// A process that ends with the measurement.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(None)) {
            return;
        }
        // SIGTERM, so that its servers end too.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

impl Haft {
    fn configure(&self) -> Result<()> {
        let servers: serde_json::Map<String, Value> = SERVERS
            .iter()
            .map(|(name, words)| {
                let args: Vec<&str> = [&["-y"][..], *words].concat();
                (
                    (*name).to_owned(),
                    json!({"command": "npx", "args": args, "connect_timeout": "5m"}),
                )
            })
            .collect();
        let config = json!({"servers": servers, "gateway": {"first_list_timeout": "5m"}});
        Ok(std::fs::write(self.folder.join("haft.json"), config.to_string())?)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).arg("-c").arg(Path::new("haft.json")).current_dir(&self.folder);
        command.env("HAFT_TRUST", "1").stderr(Stdio::null());
        command
    }

    /// Starts `haft mcp` and lists its tools. Returns the time, and the number of tools.
    fn list(&self) -> Result<(Duration, usize)> {
        let began = Instant::now();
        let mut command = self.command(&["mcp"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut input = child.stdin.take().context("no pipe")?;
        let mut lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
        let mut running = Running(child);
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        let messages = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}),
        ];
        let mut answer = |id: u64| -> Result<Value> {
            loop {
                let line = lines.next().context("`haft mcp` ended")??;
                let message: Value = serde_json::from_str(&line)?;
                if message["id"] == id {
                    return Ok(message);
                }
            }
        };
        writeln!(input, "{}", messages[0])?;
        answer(1)?;
        writeln!(input, "{}\n{}", messages[1], messages[2])?;
        let listed = answer(2)?;
        let took = began.elapsed();
        let tools = listed["result"]["tools"].as_array().context("no list of tools")?.len();
        drop(input);
        running.0.wait()?;
        Ok((took, tools))
    }

    /// Starts the service and waits until every server was tried.
    fn serve(&self) -> Result<Running> {
        let mut command = self.command(&["--json", "serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = BufReader::new(child.stdout.take().context("no pipe")?);
        let running = Running(child);
        let mut greeting = serde_json::Deserializer::from_reader(output).into_iter::<Value>();
        let greeting = greeting.next().context("the service did not start")??;
        let address = greeting["address"].as_str().context("no address")?.to_owned();
        let deadline = Instant::now() + Duration::from_mins(5);
        while !is_ready(&address)? {
            if Instant::now() > deadline {
                bail!("the service is not ready after five minutes");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(running)
    }

    fn call(&self) -> Result<Duration> {
        let began = Instant::now();
        let status = self.command(&CALL).stdout(Stdio::null()).status()?;
        if !status.success() {
            bail!("`haft call` failed ({status})");
        }
        Ok(began.elapsed())
    }
}

/// True if `/readyz` answers with success.
fn is_ready(address: &str) -> Result<bool> {
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut status = String::new();
    BufReader::new(stream).read_line(&mut status)?;
    Ok(status.contains(" 200 "))
}
