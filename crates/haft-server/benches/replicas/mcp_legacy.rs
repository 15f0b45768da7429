//! Clients with sessions, each request over a connection of its own through the balancer. A session id works at every
//! replica; a question inside a call is answered, and its stream resumed, wherever the request arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::Random;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::calls::Attempts;
use crate::client::Target;
use crate::health::{Health, Owner};
use crate::mcp::{self, Messages, Reply, StreamError};
use crate::report::Report;

const CLIENTS: usize = 3;
const PAUSE: Duration = Duration::from_millis(60);
/// Longest wait for a message of a stream. Longer than any fault.
const MESSAGE_MAX: Duration = Duration::from_secs(40);

pub(crate) struct Client {
    pub(crate) name: usize,
    pub(crate) target: Target,
    pub(crate) health: Arc<Health>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) report: Arc<Report>,
}

/// Opens sessions and uses them until the run is over.
pub(crate) async fn run(
    target: Target,
    health: Arc<Health>,
    attempts: Arc<Attempts>,
    mut random: Random,
    is_over: Arc<AtomicBool>,
) -> Arc<Report> {
    let report = Arc::<Report>::default();
    let mut tasks = JoinSet::new();
    for name in 0..CLIENTS {
        let (health, attempts) = (Arc::clone(&health), Arc::clone(&attempts));
        let (target, report) = (target.clone(), Arc::clone(&report));
        let mut client = Client { name, target, health, attempts, report };
        let (mut random, is_over) = (random.fork(), Arc::clone(&is_over));
        tasks.spawn(async move {
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                client.session(&mut number, &mut random).await;
                sleep(PAUSE).await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    report
}

impl Client {
    async fn session(&mut self, number: &mut u64, random: &mut Random) {
        let opened = mcp::open(&self.target).await;
        let Some(opened) = self.replied("initialize", opened, 200) else { return };
        let Some(session) = opened.session else {
            self.report.problem(format!("`initialize` opens no session: {}", opened.text));
            return;
        };
        for _ in 0..random.within(3..12) {
            *number += 1;
            match random.within(0..4) {
                0 => self.list(&session).await,
                1 | 2 => self.call(&session, *number).await,
                _ => self.question(&session, *number, random.within(0..2) == 0).await,
            }
            sleep(PAUSE).await;
        }
        let ended = mcp::end(&self.target, &session).await;
        self.replied("end", ended, 204);
    }

    /// The reply, if it has the status. Without a fault of the replica that received the request there is one.
    fn replied(&self, word: &str, reply: Result<Reply, String>, status: u16) -> Option<Reply> {
        match reply {
            Ok(reply) if reply.status == status => {
                self.report.count(format!("mcp: {word} {status}"));
                Some(reply)
            }
            Ok(reply) => {
                self.report.count(format!("mcp: {word} {}", reply.status));
                let text = format!("mcp: {word} is answered with {}: {}", reply.status, reply.text);
                self.report.problem(text);
                None
            }
            Err(_) => {
                self.report.count(format!("mcp: {word} no answer"));
                None
            }
        }
    }

    async fn list(&self, session: &str) {
        let message = mcp::request("tools/list", &json!({}));
        let listed = mcp::send(mcp::legacy(&self.target, session, &message)).await;
        if let Some(listed) = self.replied("list", listed, 200)
            && !listed.message()["result"]["tools"].is_array()
        {
            self.report.problem(format!("mcp: a list has no tools: {}", listed.text));
        }
    }

    async fn call(&self, session: &str, number: u64) {
        let nonce = format!("m-{}-{number}", self.name);
        self.attempts.begin(&nonce);
        let message = mcp::call("record", &json!({"nonce": nonce}));
        let called = mcp::send(mcp::legacy(&self.target, session, &message)).await;
        if let Some(called) = self.replied("call", called, 200) {
            if called.text.contains(&nonce) {
                self.attempts.succeed(&nonce);
            } else {
                self.report.problem(format!("mcp: call {nonce} fails: {}", called.text));
            }
        }
    }

    /// A call that asks. Half of the streams break off after the question and are resumed.
    async fn question(&self, session: &str, number: u64, breaks: bool) {
        let name = format!("e-{}-{number}", self.name);
        let message = mcp::call("request_human_input", &json!({"question": name}));
        let Some(mut messages) =
            self.opened("question", mcp::legacy(&self.target, session, &message)).await
        else {
            return;
        };
        let Some((last, asked)) = self.next(&mut messages).await else {
            self.report.count("mcp: question lost");
            return;
        };
        let owner = match mcp::replica_of_event(&last) {
            Some(number) => self.health.owner_soon(number).await,
            None => None,
        };
        let (Some(owner), true) = (owner, asked["method"] == "elicitation/create") else {
            // A question needs a stream, and its event names a known replica.
            self.report.problem(format!("mcp: question {name} begins with `{last}` {asked}"));
            return;
        };
        let began = self.health.now();
        let mut messages = Some(messages);
        if breaks {
            drop(messages.take());
            let resumed = Messages::of(mcp::resume(&self.target, session, &last)).await;
            messages = self.resumed(&name, owner, began, resumed);
            if messages.is_none() {
                return;
            }
        }
        let content = json!({"action": "accept", "content": {"answer": name}});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": content});
        let answered = mcp::send(mcp::legacy(&self.target, session, &answer)).await;
        let was_answered = self.replied("answer", answered, 202).is_some();
        let Some(mut messages) = messages else { return };
        self.result(&name, owner, began, was_answered, &mut messages).await;
    }

    /// The stream of a request, which the replica that receives it must open.
    async fn opened(&self, word: &str, request: reqwest::RequestBuilder) -> Option<Messages> {
        match Messages::of(request).await {
            Ok(messages) => Some(messages),
            Err(StreamError::Broken) => {
                self.report.count(format!("mcp: {word} no answer"));
                None
            }
            Err(StreamError::Refused(status, text)) => {
                self.report.problem(format!("mcp: {word} is refused with {status}: {text}"));
                None
            }
        }
    }

    fn resumed(
        &self,
        name: &str,
        owner: Owner,
        began: Duration,
        resumed: Result<Messages, StreamError>,
    ) -> Option<Messages> {
        match resumed {
            Ok(messages) => {
                self.report.count("mcp: stream resumed");
                Some(messages)
            }
            Err(StreamError::Broken) => {
                self.report.count("mcp: resume no answer");
                None
            }
            Err(StreamError::Refused(400, text)) if text.contains("Last-Event-ID") => {
                self.report.count("mcp: stream not resumed");
                if self.health.explains(owner, began).is_none() {
                    self.report
                        .problem(format!("mcp: {name} of {owner:?} cannot be resumed: {text}"));
                }
                None
            }
            Err(StreamError::Refused(status, text)) => {
                self.report.problem(format!("mcp: resume is refused with {status}: {text}"));
                None
            }
        }
    }

    async fn next(&self, messages: &mut Messages) -> Option<(String, Value)> {
        let next = timeout(MESSAGE_MAX, messages.next()).await;
        next.ok().and_then(Result::ok)
    }

    /// The end of a call that asked.
    async fn result(
        &self,
        name: &str,
        owner: Owner,
        began: Duration,
        was_answered: bool,
        messages: &mut Messages,
    ) {
        // An answer whose request broke may have arrived or not, and the call may wait for it for ever.
        let ended = if was_answered { self.next(messages).await } else { None };
        match ended {
            Some((_, ended)) => {
                self.report.count("mcp: question answered");
                if ended["result"]["content"][0]["text"] != *name {
                    self.report.problem(format!("mcp: question {name} ends with {ended}"));
                }
            }
            None if !was_answered => {}
            None => {
                self.report.count("mcp: question not answered");
                let broke = self.health.explains(owner, began).is_some()
                    || self.health.was_any_killed(began);
                if !broke {
                    self.report.problem(format!("mcp: question {name} of {owner:?} has no end"));
                }
            }
        }
    }
}
