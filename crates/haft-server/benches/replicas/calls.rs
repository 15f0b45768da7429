//! Calls through the balancer. Each has a nonce that the tool records too, and the log must hold each exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Failure;
use crate::client::{Request, Target};

/// Tasks that call.
const CALLERS: u64 = 4;
/// Pause of a caller between two calls.
const PAUSE: Duration = Duration::from_millis(40);

/// The script of the tool: appends the nonce to a file that all replicas share.
pub(crate) fn script(record: &Path) -> String {
    format!(
        "def record(nonce: str) -> str:\n    with open({:?}, 'a') as file:\n        file.write(nonce + '\\n')\n    return nonce\n",
        record.display().to_string()
    )
}

/// The calls of a run.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Nonces of all attempts.
    attempts: BTreeSet<String>,
    /// The execution ids of the calls that were answered with success, by nonce.
    pub(crate) answered: BTreeMap<String, String>,
    /// Answers by status or error, for the report.
    pub(crate) counts: BTreeMap<String, u64>,
}

/// One row of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) execution_id: String,
    pub(crate) nonce: String,
}

/// Registers the tool.
pub(crate) async fn register(replica: &Target) -> Result<(), Failure> {
    let tool = json!({
        "name": "record",
        "description": "Records a nonce.",
        "type": "local",
        "config": {"script_path": "record.py", "entrypoint": "record"},
        "input_schema": {"type": "object", "properties": {"nonce": {"type": "string"}}, "required": ["nonce"]},
    });
    let request = Request { path: "/tools/record", body: Some(&tool), ..Request::default() };
    let answer = replica.send(Method::PUT, request).await?;
    if !answer.status.is_success() {
        return Err(format!("`record` cannot be registered: {}", answer.body).into());
    }
    Ok(())
}

/// Calls the tool until the run is over.
pub(crate) async fn run(target: Target, is_over: Arc<AtomicBool>) -> Calls {
    let calls = Arc::new(Mutex::new(Calls::default()));
    let mut tasks = JoinSet::new();
    for caller in 0..CALLERS {
        let (target, calls, is_over) = (target.clone(), Arc::clone(&calls), Arc::clone(&is_over));
        tasks.spawn(async move {
            for number in 0_u64.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                call(&target, &calls, format!("n-{caller}-{number}")).await;
                sleep(PAUSE).await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    std::mem::take(&mut *calls.lock())
}

async fn call(target: &Target, calls: &Mutex<Calls>, nonce: String) {
    calls.lock().attempts.insert(nonce.clone());
    let body = json!({"arguments": {"nonce": nonce}});
    let answer = target.post("/tools/record/call", &body).await;
    let mut calls = calls.lock();
    let word = match &answer {
        Ok(answer) => format!("call: {}", answer.status.as_u16()),
        Err(_) => "call: no answer".to_owned(),
    };
    *calls.counts.entry(word).or_default() += 1;
    if let Ok(answer) = answer
        && answer.body.get("status").and_then(Value::as_str) == Some("success")
        && let Some(id) = answer.body.get("execution_id").and_then(Value::as_str)
    {
        calls.answered.insert(nonce, id.to_owned());
    }
}

impl Calls {
    /// Everything in which the rows of the log differ from the calls.
    pub(crate) fn problems(&self, rows: &[Row], recorded: &BTreeSet<String>) -> Vec<String> {
        let mut problems = Vec::new();
        let mut by_nonce: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            by_nonce.entry(&row.nonce).or_default().push(row);
        }
        for (nonce, id) in &self.answered {
            let found = by_nonce.get(nonce.as_str()).map(Vec::as_slice);
            match found {
                Some([row]) if row.execution_id == *id => {}
                Some(rows) => problems.push(format!("{nonce} ({id}) has the rows {rows:?}")),
                None => problems.push(format!("{nonce} ({id}) has no row")),
            }
            if !recorded.contains(nonce) {
                problems.push(format!("{nonce} was answered, and its tool did not run"));
            }
        }
        for (nonce, rows) in by_nonce {
            if !self.attempts.contains(nonce) {
                problems.push(format!("{rows:?} belong to no call"));
            } else if rows.len() > 1 && !self.answered.contains_key(nonce) {
                problems.push(format!("{nonce} has {} rows", rows.len()));
            }
        }
        problems
    }

    pub(crate) fn attempts(&self) -> usize {
        self.attempts.len()
    }
}
