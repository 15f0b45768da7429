//! The agent with a real model: the same tasks as the tests have, answered by whatever model there is.
//!
//! Not part of `cargo xtask test`: a model may answer one way today and another tomorrow. It reports what happened.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::run::{cargo, root, step, target};

/// Longest time that llama.cpp's server may take to load its model.
const LOADING_MAX: Duration = Duration::from_mins(5);

const HOW: &str = "\
no model to ask. Give one of these:
  HAFT_MODEL_URL=http://localhost:8080/v1   any service that speaks OpenAI's format (HAFT_MODEL names the model,
                                            HAFT_MODEL_KEY its key, where it wants them)
  HAFT_MODEL_FILE=model.gguf                a model for llama.cpp's `llama-server`, which must be on the PATH";

/// A task, the tool it takes (none for one that takes none), and what the answer has to contain.
struct Task {
    name: &'static str,
    prompt: &'static str,
    tool: Option<&'static str>,
    contains: &'static str,
}

const TASKS: [Task; 5] = [
    Task {
        name: "weather",
        prompt: "What is the weather in Seoul right now?",
        tool: Some("web_search"),
        contains: "21",
    },
    Task {
        name: "capital",
        prompt: "What is the capital of France?",
        tool: None,
        contains: "Paris",
    },
    Task {
        name: "csv",
        prompt: "Use Python to add up the column `amount` of this CSV file and tell me the sum:\n\
                 item,amount\nbread,417\nmilk,289\ncheese,1531\n",
        tool: Some("code_execution"),
        contains: "2237",
    },
    Task {
        name: "sequence",
        prompt: "Compute the 60th Fibonacci number (F(1)=F(2)=1) with a Python script.",
        tool: Some("code_execution"),
        contains: "1548008755920",
    },
    Task {
        name: "missing",
        prompt: "Book a table for me tonight. Ask me for whatever you need to know.",
        tool: Some("request_human_input"),
        contains: "",
    },
];

/// A search tool that answers what the tests' search service answers, so that nothing leaves this machine.
const TOOLS: &str = r#"{"tools": [{
  "name": "web_search", "type": "local", "config": {"script_path": "search.py"},
  "description": "Searches the web. Use it for what is recent or changes, such as prices or weather. Not for general knowledge.",
  "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
}]}"#;
const SEARCH: &str = "def run(args):\n    return '1. Weather in Seoul - https://weather.example/seoul\\n   Seoul now: 21 degrees Celsius, sunny.'\n";

pub(crate) fn run() -> Result<()> {
    let model = Model::find()?;
    // As the tests build it: the model takes the time, and nothing is compiled twice.
    step(&mut cargo(&["build", "--workspace", "--bin", "haft"]))?;
    let folder = target().join("model-test");
    prepare(&folder, &model)?;
    println!("\n{:<10} {:<8} {:>7}  {:<34} ANSWER", "TASK", "RESULT", "SECONDS", "CALLED");
    let mut right = 0;
    for task in &TASKS {
        let started = Instant::now();
        let (verdict, called, answer) = attempt(&folder, &model, task)?;
        right += usize::from(verdict == "right");
        let line: String =
            answer.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
        let seconds = started.elapsed().as_secs_f64();
        println!("{:<10} {verdict:<8} {seconds:>7.1}  {called:<34} {line}", task.name);
    }
    println!("\n{right} of {} as hoped, by {} at {}", TASKS.len(), model.name, model.url);
    Ok(())
}

/// A service that answers, and the process behind it where we started one.
struct Model {
    url: String,
    name: String,
    key: Option<String>,
    _server: Option<Server>,
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Model {
    fn find() -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let name = variable("HAFT_MODEL").unwrap_or_else(|| "local".to_owned());
        let key = variable("HAFT_MODEL_KEY");
        if let Some(url) = variable("HAFT_MODEL_URL") {
            return Ok(Self { url, name, key, _server: None });
        }
        let Some(file) = variable("HAFT_MODEL_FILE") else { bail!("{HOW}") };
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("llama-server");
        command.args([
            "--jinja",
            "--host",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--model",
            &file,
        ]);
        fs::create_dir_all(target())?;
        let log = target().join("llama-server.log");
        let said = fs::File::create(&log)?;
        let child = command.stdout(Stdio::null()).stderr(said).spawn();
        let mut server = Server(child.context("`llama-server` cannot be started")?);
        let url = format!("http://127.0.0.1:{port}");
        wait_for(&url, &mut server.0).with_context(|| format!("see `{}`", log.display()))?;
        Ok(Self { url: format!("{url}/v1"), name, key, _server: Some(server) })
    }
}

/// Waits until `/health` of llama.cpp's server reports a loaded model.
fn wait_for(url: &str, server: &mut Child) -> Result<()> {
    let started = Instant::now();
    while started.elapsed() < LOADING_MAX {
        let asked = Command::new("curl").args(["-fs", &format!("{url}/health")]).output();
        if asked.context("`curl` is needed to see when the model is loaded")?.status.success() {
            return Ok(());
        }
        if let Some(status) = server.try_wait()? {
            bail!("`llama-server` ended ({status}) before its model was loaded");
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    bail!("`llama-server` did not load its model within {} s", LOADING_MAX.as_secs())
}

fn prepare(folder: &Path, model: &Model) -> Result<()> {
    drop(fs::remove_dir_all(folder));
    fs::create_dir_all(folder.join("tools"))?;
    let mut config = json!({
        "registry": {"dir": "tools"},
        "agent": {"model": format!("openai::{}", model.name), "base_url": model.url},
    });
    if model.key.is_some() {
        config["agent"]["api_key_env"] = json!("HAFT_MODEL_KEY");
    }
    fs::write(folder.join("haft.yaml"), config.to_string())?;
    fs::write(folder.join("tools/tools.json"), TOOLS)?;
    fs::write(folder.join("tools/mcp.json"), r#"{"mcp_servers": {}}"#)?;
    fs::write(folder.join("tools/search.py"), SEARCH)?;
    Ok(())
}

/// Runs one task: whether it went as hoped, the tools that were called, and the answer.
fn attempt(folder: &Path, model: &Model, task: &Task) -> Result<(&'static str, String, String)> {
    let haft: PathBuf = target().join("debug/haft");
    let mut command = Command::new(root().join(haft));
    command.args(["run", "--output-format", "json", "--no-session", "--yes", task.prompt]);
    command.current_dir(folder).stdin(Stdio::null()).stderr(Stdio::null());
    if let Some(key) = &model.key {
        command.env("HAFT_MODEL_KEY", key);
    }
    let output = command.output().context("`haft run` cannot be started")?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    if let Some(error) = answer["error"]["message"].as_str() {
        return Ok(("failed", String::new(), error.to_owned()));
    }
    let calls = answer["tool_calls"].as_array().cloned().unwrap_or_default();
    let called: Vec<&str> = calls.iter().filter_map(|call| call["tool"].as_str()).collect();
    let text = answer["text"].as_str().unwrap_or_default().to_owned();
    let is_called = match task.tool {
        Some(tool) => called.contains(&tool),
        None => called.is_empty(),
    };
    // Numbers may be written with separators.
    let plain = text.replace([',', '\u{202f}', '\'', ' '], "");
    let is_right = is_called && plain.contains(task.contains);
    Ok((if is_right { "right" } else { "WRONG" }, called.join(","), text))
}
