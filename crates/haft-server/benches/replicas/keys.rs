//! Keys that are created and revoked all the time. A revoked key must not authenticate at a replica that reaches the
//! database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::Random;
use tokio::time::sleep;

use crate::client::{Request, Target, status_of};
use crate::health::Health;

/// Time after which a revoked key must be refused everywhere.
const REVOKED_MAX: Duration = Duration::from_secs(1);
/// Pause between two keys.
const PAUSE: Duration = Duration::from_millis(300);

/// The keys of a run.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) problems: Vec<String>,
}

/// Creates, tries and revokes keys until the run is over.
pub(crate) async fn run(
    replicas: Vec<Target>,
    health: Arc<Health>,
    mut random: Random,
    is_over: Arc<AtomicBool>,
) -> Keys {
    let mut keys = Keys::default();
    let mut number = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        number += 1;
        keys.step(&replicas, &health, &mut random, &format!("k{number}")).await;
        sleep(PAUSE).await;
    }
    keys
}

impl Keys {
    async fn step(
        &mut self,
        replicas: &[Target],
        health: &Health,
        random: &mut Random,
        name: &str,
    ) {
        let body = json!({"name": name, "scope": "call"});
        let created = random.choose(replicas).post("/keys", &body).await;
        let key = match &created {
            Ok(answer) if answer.status == StatusCode::CREATED => {
                answer.body.get("key").and_then(Value::as_str).map(str::to_owned)
            }
            Ok(_) | Err(_) => None,
        };
        self.count(&format!("creation: {}", status_of(&created)));
        let Some(key) = key else { return };
        let path = format!("/keys/{name}");
        let request = Request { path: &path, ..Request::default() };
        let revoked = random.choose(replicas).send(Method::DELETE, request).await;
        self.count(&format!("revocation: {}", status_of(&revoked)));
        let is_revoked = revoked.is_ok_and(|answer| answer.status.is_success());
        if !is_revoked {
            return;
        }
        sleep(REVOKED_MAX).await;
        for (index, replica) in replicas.iter().enumerate() {
            // Before and after: a fault that begins meanwhile excuses the replica.
            let was_connected = health.is_connected_for(index, REVOKED_MAX * 2);
            let answer = replica.with_key(&key).get("/tools").await;
            let is_connected = was_connected && health.is_connected_for(index, REVOKED_MAX * 2);
            if let Ok(answer) = answer
                && is_connected
            {
                self.count(&format!("use after 1 s: {}", answer.status.as_u16()));
                if answer.status.is_success() {
                    self.problems.push(format!("replica {index} accepts `{name}` after 1 s"));
                }
            }
        }
    }

    fn count(&mut self, word: &str) {
        *self.counts.entry(format!("key: {word}")).or_default() += 1;
    }
}
