//! Checks that may take long run beside the caller and are waited for only so long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

use super::Schema;
use crate::error::{Violation, human};

/// How long a check is waited for.
pub const CHECK_TIME_MAX: Duration = Duration::from_secs(1);
/// How many checks may run beside their callers; one that nobody waits for any more still counts.
const CHECKS_MAX: usize = 4;
/// Texts longer than this are checked beside the caller where a pattern looks at them.
pub(super) const PATTERN_BYTES_MAX: usize = 16 * 1024;
/// So many parts of a schema times bytes of a value are checked at once; more of it beside the caller.
pub(super) const WORK_MAX: usize = 5_000_000;
/// Schemas longer than this are read beside the caller, and so are those with patterns.
const READ_BYTES_MAX: usize = 4 * 1024;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

impl Schema {
    /// Like [`check`](Self::check), but always answers soon: a check that takes too long refuses
    /// the value. A thread of its own does the work, because nothing can interrupt it.
    pub async fn check_bounded(
        self: &Arc<Self>,
        value: &Value,
        bytes: usize,
    ) -> Result<(), Vec<Violation>> {
        if !self.is_heavy(bytes) {
            return self.check(value);
        }
        self.check_depth(value)?;
        let (schema, value) = (Arc::clone(self), value.clone());
        beside(move || schema.check(&value)).await.unwrap_or_else(|problem| {
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
        let compiled = beside(move || Self::compile(&schema)).await?;
        compiled.map(Arc::new)
    }
}

/// Does what nothing can interrupt on a thread of its own, and waits only so long. Else says why not.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    let Some(running) = Running::start() else {
        return Err("others take too long".to_owned());
    };
    let (done, answer) = oneshot::channel();
    let work = move || {
        let _running = running;
        // Nobody listens any more where the time was up.
        let _ = done.send(work());
    };
    if std::thread::Builder::new().name("haft-schema".into()).spawn(work).is_err() {
        return Err("no thread could be started for it".to_owned());
    }
    match tokio::time::timeout(CHECK_TIME_MAX, answer).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => Err("it failed".to_owned()),
        Err(_) => Err(format!("it took longer than {}", human(CHECK_TIME_MAX))),
    }
}

struct Running;

impl Running {
    fn start() -> Option<Self> {
        let free = |count: usize| (count < CHECKS_MAX).then_some(count + 1);
        RUNNING.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).ok().map(|_| Self)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}
