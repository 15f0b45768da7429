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
use crate::client::{Request, Target, status_of};
use crate::report::Report;

/// Tasks that call.
const CALLERS: u64 = 4;
/// Pause of a caller between two calls.
const PAUSE: Duration = Duration::from_millis(40);

/// The script of the tool: appends the nonce to a file that all replicas share.
pub(crate) fn script(record: &Path) -> String {
    format!(
        "def record(args):\n    with open({:?}, 'a') as file:\n        file.write(args['nonce'] + '\\n')\n    return args\n",
        record.display().to_string()
    )
}

/// The calls of a run, of all workloads.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    /// Nonces of all attempts.
    attempts: BTreeSet<String>,
    /// The calls that were answered with success, by nonce, with their execution ids if the answer names them.
    answered: BTreeMap<String, Option<String>>,
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
pub(crate) async fn run(
    target: Target,
    attempts: Arc<Attempts>,
    is_over: Arc<AtomicBool>,
) -> Arc<Report> {
    let report = Arc::<Report>::default();
    let mut tasks = JoinSet::new();
    for caller in 0..CALLERS {
        let (target, attempts) = (target.clone(), Arc::clone(&attempts));
        let (report, is_over) = (Arc::clone(&report), Arc::clone(&is_over));
        tasks.spawn(async move {
            for number in 0_u64.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                call(&target, &attempts, &report, &format!("n-{caller}-{number}")).await;
                sleep(PAUSE).await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    report
}

async fn call(target: &Target, attempts: &Attempts, report: &Report, nonce: &str) {
    attempts.begin(nonce);
    let body = json!({"arguments": {"nonce": nonce}});
    let answer = target.post("/tools/record/call", &body).await;
    report.count(format!("call: {}", status_of(&answer)));
    if let Ok(answer) = answer
        && answer.body.get("status").and_then(Value::as_str) == Some("success")
        && let Some(id) = answer.body.get("execution_id").and_then(Value::as_str)
    {
        attempts.0.lock().answered.insert(nonce.to_owned(), Some(id.to_owned()));
    }
}

impl Attempts {
    /// Notes a call before it is sent.
    pub(crate) fn begin(&self, nonce: &str) {
        self.0.lock().attempts.insert(nonce.to_owned());
    }

    /// Notes a call that was answered with success.
    pub(crate) fn succeed(&self, nonce: &str) {
        self.0.lock().answered.insert(nonce.to_owned(), None);
    }

    /// Everything in which the rows of the log differ from the calls.
    pub(crate) fn problems(&self, rows: &[Row], recorded: &BTreeSet<String>) -> Vec<String> {
        self.0.lock().problems(rows, recorded)
    }

    /// Number of calls that were sent, and of those that were answered with success.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let calls = self.0.lock();
        (calls.attempts.len(), calls.answered.len())
    }
}

impl Calls {
    /// Everything in which the rows of the log differ from the calls.
    fn problems(&self, rows: &[Row], recorded: &BTreeSet<String>) -> Vec<String> {
        let mut problems = Vec::new();
        if self.answered.is_empty() {
            problems.push("no call succeeded".to_owned());
        }
        let mut by_nonce: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            by_nonce.entry(&row.nonce).or_default().push(row);
        }
        for (nonce, id) in &self.answered {
            let found = by_nonce.get(nonce.as_str()).map(Vec::as_slice);
            match found {
                Some([row]) if id.as_ref().is_none_or(|id| row.execution_id == *id) => {}
                Some(rows) => problems.push(format!("{nonce} ({id:?}) has the rows {rows:?}")),
                None => problems.push(format!("{nonce} ({id:?}) has no row")),
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
}
