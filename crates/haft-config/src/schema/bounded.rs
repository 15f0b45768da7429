//! Expensive checks run on a separate thread with a time limit.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::Schema;
use super::Violation;
use haft_text::human;

/// Time limit of one check.
pub const CHECK_TIME_MAX: Duration = Duration::from_secs(1);
/// Limits concurrent checks on separate threads; abandoned checks count until they end. Merely
/// large values have their own permits, so that a caller with pathological schemas cannot block
/// them.
static HARD: Semaphore = Semaphore::const_new(4);
static LARGE: Semaphore = Semaphore::const_new(4);
/// Recursive references are followed recursively, so the stack is large.
const STACK_BYTES: usize = 64 << 20;
/// Strings longer than this are checked on a separate thread if a pattern applies to them.
pub(super) const PATTERN_BYTES_MAX: usize = 16 * 1024;
/// Limit for an inline check: parts of the schema times bytes of the value. Larger checks run on a
/// separate thread.
pub(super) const WORK_MAX: usize = 20_000_000;
/// Schemas longer than this, and all schemas with patterns, are compiled on a separate thread.
const READ_BYTES_MAX: usize = 4 * 1024;

impl Schema {
    /// Like [`check`](Self::check), with a time limit: a check that takes too long rejects the
    /// value. The work runs on its own thread, because it cannot be interrupted.
    pub async fn check_bounded(
        self: &Arc<Self>,
        value: &Value,
        bytes: usize,
    ) -> Result<(), Vec<Violation>> {
        let places = if self.is_hard(bytes) {
            &HARD
        } else if self.is_large(bytes) {
            &LARGE
        } else {
            return self.check(value);
        };
        self.check_depth(value)?;
        let (schema, value) = (Arc::clone(self), value.clone());
        beside(places, move || schema.check(&value)).await.unwrap_or_else(|problem| {
            let problem = format!("it could not be checked: {problem}");
            Err(vec![Violation { pointer: String::new(), problem }])
        })
    }

    /// Like [`compile`](Self::compile), with a time limit: for schemas from untrusted callers.
    pub async fn compile_bounded(schema: &Value) -> Result<Arc<Self>, String> {
        if super::patterns(schema) == 0 && schema.to_string().len() <= READ_BYTES_MAX {
            return Self::compile(schema).map(Arc::new);
        }
        let schema = schema.clone();
        let compiled = beside(&HARD, move || Self::compile(&schema)).await?;
        compiled.map(Arc::new)
    }
}

/// Runs uninterruptible work on its own thread. Waits a bounded time for a permit and for the
/// result, and returns the reason if either takes too long.
async fn beside<T: Send + 'static>(
    places: &'static Semaphore,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let place = timeout(CHECK_TIME_MAX, places.acquire()).await;
    let Ok(Ok(place)) = place else { return Err("others take too long".to_owned()) };
    let (done, answer) = oneshot::channel();
    let work = move || {
        let _place = place;
        // The receiver is gone if the time limit has passed.
        let _ = done.send(work());
    };
    let thread = std::thread::Builder::new().name("haft-schema".into()).stack_size(STACK_BYTES);
    if thread.spawn(work).is_err() {
        return Err("no thread could be started for it".to_owned());
    }
    match timeout(CHECK_TIME_MAX, answer).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => Err("it failed".to_owned()),
        Err(_) => Err(format!("it took longer than {}", human(CHECK_TIME_MAX))),
    }
}
