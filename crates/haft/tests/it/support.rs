//! Helpers for the tests of the call path.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft::record::{Filter, LoggedCall, read};
use haft::{Config, FunctionTool, Runtime, Tool, ToolCall, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// A folder with a log in it, gone at the end of the test.
pub struct Bench {
    pub dir: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn logs(&self) -> PathBuf {
        self.path().join("logs")
    }

    /// A configuration with its log in the folder.
    pub fn config(&self, yaml: &str) -> Config {
        let logs = self.logs();
        let state = self.path().join("state");
        Config::from_yaml(&format!(
            "log: {{dir: '{}'}}\nstate_dir: '{}'\n{yaml}",
            logs.display(),
            state.display()
        ))
        .unwrap()
    }

    /// A registry in the folder `tools`, with the given entries and scripts.
    pub fn registry(&self, tools: &Value, scripts: &[(&str, &str)]) -> Config {
        let folder = self.path().join("tools");
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in scripts {
            std::fs::write(folder.join(name), text).unwrap();
        }
        std::fs::write(folder.join("tools.json"), json!({ "tools": tools }).to_string()).unwrap();
        std::fs::write(folder.join("mcp.json"), r#"{"mcp_servers": {}}"#).unwrap();
        self.config(&format!("registry: {{dir: '{}'}}", folder.display()))
    }

    /// Every entry of the log.
    pub fn logged(&self) -> Vec<LoggedCall> {
        read(&self.logs(), &Filter::default()).unwrap().map(Result::unwrap).collect()
    }
}

/// A tool that counts its concurrent calls, each until it is released.
#[derive(Clone)]
pub struct Held {
    pub running: Arc<AtomicUsize>,
    pub most: Arc<AtomicUsize>,
    pub total: Arc<AtomicUsize>,
    pub release: Arc<Semaphore>,
}

impl Held {
    pub fn new() -> Self {
        Self {
            running: Arc::default(),
            most: Arc::default(),
            total: Arc::default(),
            release: Arc::new(Semaphore::new(0)),
        }
    }

    pub fn tool(&self, name: &str) -> impl Tool + use<> {
        let held = self.clone();
        FunctionTool::new(name, "Waits.", json!({"type": "object"}), move |_, _| {
            let held = held.clone();
            async move {
                let _count = Count::start(&held);
                held.release.acquire().await.unwrap().forget();
                Ok(ToolOutput::from_text("done"))
            }
        })
    }

    pub fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    /// Waits until `count` calls run.
    pub async fn until_running(&self, count: usize) {
        until(|| self.running.load(Ordering::SeqCst) == count).await;
    }
}

struct Count<'a>(&'a Held);

impl<'a> Count<'a> {
    fn start(held: &'a Held) -> Self {
        let now = held.running.fetch_add(1, Ordering::SeqCst) + 1;
        held.most.fetch_max(now, Ordering::SeqCst);
        held.total.fetch_add(1, Ordering::SeqCst);
        Self(held)
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits for a condition; a test that waits in vain fails.
pub async fn until(mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "waited in vain");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Like `until`, for an asynchronous condition.
pub async fn until_async(mut holds: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while !holds().await {
        assert!(tokio::time::Instant::now() < deadline, "waited in vain");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Starts calls without waiting for them.
pub fn spawn(
    runtime: &Runtime,
    calls: impl IntoIterator<Item = ToolCall>,
) -> tokio::task::JoinSet<haft::Envelope> {
    let mut running = tokio::task::JoinSet::new();
    for call in calls {
        let runtime = runtime.clone();
        running.spawn(async move { runtime.call(call).await });
    }
    running
}

pub fn empty(tool: &str) -> ToolCall {
    ToolCall::new(tool, &json!({}))
}
