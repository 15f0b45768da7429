//! Shared parts of the tests of faults.

use reqwest::Method;
use serde_json::Value;
use testkit::eventually;

use crate::served::{Answer, Served, answer};

/// Calls a tool.
pub(crate) async fn call(served: &Served, tool: &str, arguments: &Value) -> Answer {
    let body = serde_json::json!({ "arguments": arguments }).to_string();
    served.post(&format!("/api/v1/tools/{tool}/call"), &body).await
}

/// The code of the error that a call ended in; `null` where it worked.
pub(crate) fn error_code(answer: &Answer) -> Value {
    answer.json()["error"]["code"].clone()
}

/// The failing parts, with reasons.
pub(crate) async fn reasons(served: &Served) -> Vec<(String, String)> {
    let ready = answer(served.request(Method::GET, "/readyz")).await.json();
    let reasons = ready["reasons"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    reasons.map(|reason| (text(&reason["what"]), text(&reason["why"]))).collect()
}

/// Asks again and again until the answer is the wanted one; gives what was asked last.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + testkit::DEADLINE;
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "never happened: {what}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// Memory of a process in bytes: now, and its peak.
pub(crate) fn memory(pid: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// The processes that a process has started and that still run.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed = tasks.map(|task| std::fs::read_to_string(task.path().join("children")));
    let listed: String = listed.map(Result::unwrap_or_default).collect();
    listed.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Waits until none of these processes runs.
pub(crate) fn all_gone(pids: &[u32]) {
    for pid in pids {
        eventually("a child ends", || (!testkit::is_running(*pid)).then_some(()));
    }
}
