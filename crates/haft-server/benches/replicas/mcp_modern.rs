//! Clients without sessions, each request over a connection of its own. A request that needs input is suspended at one
//! replica, and its retry arrives at any.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::Random;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::calls::Attempts;
use crate::client::Target;
use crate::health::Health;
use crate::mcp::{self, Reply};
use crate::report::Report;

const CLIENTS: usize = 3;
const PAUSE: Duration = Duration::from_millis(80);

struct Client {
    name: usize,
    balanced: Target,
    replicas: Vec<Target>,
    health: Arc<Health>,
    attempts: Arc<Attempts>,
    report: Arc<Report>,
}

/// Calls and answers until the run is over.
pub(crate) async fn run(
    balanced: Target,
    replicas: Vec<Target>,
    health: Arc<Health>,
    attempts: Arc<Attempts>,
    mut random: Random,
    is_over: Arc<AtomicBool>,
) -> Arc<Report> {
    let report = Arc::<Report>::default();
    let mut tasks = JoinSet::new();
    for name in 0..CLIENTS {
        let client = Client {
            name,
            balanced: balanced.clone(),
            replicas: replicas.clone(),
            health: Arc::clone(&health),
            attempts: Arc::clone(&attempts),
            report: Arc::clone(&report),
        };
        let (mut random, is_over) = (random.fork(), Arc::clone(&is_over));
        tasks.spawn(async move {
            for number in 0_u64.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                match random.within(0..3) {
                    0 => client.list().await,
                    1 => client.call(number).await,
                    _ => client.question(number, &mut random).await,
                }
                sleep(PAUSE).await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    report
}

impl Client {
    fn replied(&self, word: &str, reply: Result<Reply, String>) -> Option<Reply> {
        let status = reply.as_ref().map_or("no answer".to_owned(), |it| it.status.to_string());
        self.report.count(format!("modern: {word} {status}"));
        reply.ok()
    }

    /// The result of a request that no fault of another replica can spoil.
    fn result(&self, word: &str, reply: Result<Reply, String>) -> Option<Value> {
        let reply = self.replied(word, reply)?;
        let mut message = reply.message();
        if reply.status == 200 && message["result"].is_object() {
            return Some(message["result"].take());
        }
        let text = format!("modern: {word} is answered with {}: {}", reply.status, reply.text);
        self.report.problem(text);
        None
    }

    async fn list(&self) {
        self.result("list", mcp::modern(&self.balanced, "tools/list", json!({})).await);
    }

    async fn call(&self, number: u64) {
        let nonce = format!("w-{}-{number}", self.name);
        self.attempts.begin(&nonce);
        let params = json!({"name": "record", "arguments": {"nonce": nonce}});
        let called = mcp::modern(&self.balanced, "tools/call", params).await;
        if let Some(result) = self.result("call", called) {
            if result.to_string().contains(&nonce) {
                self.attempts.succeed(&nonce);
            } else {
                self.report.problem(format!("modern: call {nonce} fails: {result}"));
            }
        }
    }

    async fn question(&self, number: u64, random: &mut Random) {
        let name = format!("s-{}-{number}", self.name);
        if self.ask(&name, random).await.is_none() {
            self.report.leave(name);
        }
    }

    /// A question from its first request to its end. Returns `None` if the client gives it up.
    async fn ask(&self, name: &str, random: &mut Random) -> Option<()> {
        let index = *random.choose(&[0, 1, 2]);
        let owner = self.health.current(index);
        let mut params = json!({"name": "request_human_input", "arguments": {"question": name}});
        let asked = mcp::modern(&self.replicas[index], "tools/call", params.clone()).await;
        let asked = self.result("question", asked)?;
        let first = asked["inputRequests"].as_object().and_then(|it| it.keys().next());
        let (Some(first), "input_required") =
            (first, asked["resultType"].as_str().unwrap_or_default())
        else {
            self.report.problem(format!("modern: question {name} begins with {asked}"));
            return None;
        };
        params["requestState"] = asked["requestState"].clone();
        let content = json!({"action": "accept", "content": {"answer": name}});
        params["inputResponses"] = json!({first: content});
        let began = self.health.now();
        let ended = mcp::modern(&self.balanced, "tools/call", params).await;
        let ended = self.replied("retry", ended)?;
        let message = ended.message();
        if message["result"]["content"][0]["text"] == *name {
            self.report.count("modern: question answered");
            return Some(());
        }
        let error = message["error"]["message"].as_str().unwrap_or_default();
        let is_documented = error.contains("send the request again without it");
        if is_documented && self.health.explains(owner, began).is_some() {
            self.report.count("modern: suspended request lost with its replica");
            return None;
        }
        let text = format!("modern: question {name} of {owner:?} ends with {}", ended.text);
        self.report.problem(text);
        None
    }
}
