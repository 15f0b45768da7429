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

use crate::client::{Request, Target};

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

/// Replicas that reach the database, by their index. The faults keep it up to date.
pub(crate) trait Reachable: Send + Sync {
    /// Returns true if the replica has reached the database without a fault for the given time.
    fn is_connected_for(&self, replica: usize, time: Duration) -> bool;
}

/// Creates, tries and revokes keys until the run is over.
pub(crate) async fn run(
    replicas: Vec<Target>,
    reachable: Arc<dyn Reachable>,
    mut random: Random,
    is_over: Arc<AtomicBool>,
) -> Keys {
    let mut keys = Keys::default();
    let mut number = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        number += 1;
        keys.step(&replicas, reachable.as_ref(), &mut random, &format!("k{number}")).await;
        sleep(PAUSE).await;
    }
    keys
}

impl Keys {
    async fn step(
        &mut self,
        replicas: &[Target],
        reachable: &dyn Reachable,
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
        self.count("created", key.is_some());
        let Some(key) = key else { return };
        let path = format!("/keys/{name}");
        let request = Request { path: &path, ..Request::default() };
        let revoked = random.choose(replicas).send(Method::DELETE, request).await;
        let is_revoked = revoked.is_ok_and(|answer| answer.status.is_success());
        self.count("revoked", is_revoked);
        if !is_revoked {
            return;
        }
        sleep(REVOKED_MAX).await;
        for (index, replica) in replicas.iter().enumerate() {
            // Before and after: a fault that begins meanwhile excuses the replica.
            let was_connected = reachable.is_connected_for(index, REVOKED_MAX * 2);
            let answer = replica.with_key(&key).get("/tools").await;
            let is_connected = was_connected && reachable.is_connected_for(index, REVOKED_MAX * 2);
            if let Ok(answer) = answer
                && is_connected
            {
                self.count("refused after 1 s", answer.status == StatusCode::UNAUTHORIZED);
                if answer.status.is_success() {
                    self.problems.push(format!("replica {index} accepts `{name}` after 1 s"));
                }
            }
        }
    }

    fn count(&mut self, word: &str, is_success: bool) {
        let word = if is_success { word.to_owned() } else { format!("not {word}") };
        *self.counts.entry(format!("key: {word}")).or_default() += 1;
    }
}
