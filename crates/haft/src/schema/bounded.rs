//! Checks that may take long run beside the caller and are waited for only so long.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::Schema;
use crate::error::{Violation, human};

/// How long a check is waited for.
pub const CHECK_TIME_MAX: Duration = Duration::from_secs(1);
/// How many may run beside their callers; one that nobody waits for any more still counts. What is only large has places of
/// its own, so that nobody who sends what never ends keeps the others from theirs.
static HARD: Semaphore = Semaphore::const_new(4);
static LARGE: Semaphore = Semaphore::const_new(4);
/// What is referred to again and again is followed level by level.
const STACK_BYTES: usize = 64 << 20;
/// Texts longer than this are checked beside the caller where a pattern looks at them.
pub(super) const PATTERN_BYTES_MAX: usize = 16 * 1024;
/// So many parts of a schema times bytes of a value are checked at once; more of it beside the caller.
pub(super) const WORK_MAX: usize = 20_000_000;
/// Schemas longer than this are read beside the caller, and so are those with patterns.
const READ_BYTES_MAX: usize = 4 * 1024;

impl Schema {
    /// Like [`check`](Self::check), but always answers soon: a check that takes too long refuses
    /// the value. A thread of its own does the work, because nothing can interrupt it.
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

    /// Like [`compile`](Self::compile), but always answers soon: for schemas that anybody may send at any time.
    pub async fn compile_bounded(schema: &Value) -> Result<Arc<Self>, String> {
        if super::patterns(schema) == 0 && schema.to_string().len() <= READ_BYTES_MAX {
            return Self::compile(schema).map(Arc::new);
        }
        let schema = schema.clone();
        let compiled = beside(&HARD, move || Self::compile(&schema)).await?;
        compiled.map(Arc::new)
    }
}

/// Does what nothing can interrupt on a thread of its own, and waits only so long, for a place and for the end. Else says
/// why not.
async fn beside<T: Send + 'static>(
    places: &'static Semaphore,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let place = timeout(CHECK_TIME_MAX, places.acquire()).await;
    let Ok(Ok(place)) = place else { return Err("others take too long".to_owned()) };
    let (done, answer) = oneshot::channel();
    let work = move || {
        let _place = place;
        // Nobody listens any more where the time was up.
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
