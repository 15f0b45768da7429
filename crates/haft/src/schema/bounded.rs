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
        let Some(running) = Running::start() else {
            return Err(refused("checks of other calls take too long"));
        };
        let (done, answer) = oneshot::channel();
        let (schema, value) = (Arc::clone(self), value.clone());
        let work = move || {
            let _running = running;
            // Nobody listens any more where the time was up.
            let _ = done.send(schema.check(&value));
        };
        if std::thread::Builder::new().name("haft-schema".into()).spawn(work).is_err() {
            return Err(refused("no thread could be started for the check"));
        }
        match tokio::time::timeout(CHECK_TIME_MAX, answer).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(_)) => Err(refused("the check failed")),
            Err(_) => {
                Err(refused(&format!("the check took longer than {}", human(CHECK_TIME_MAX))))
            }
        }
    }
}

fn refused(problem: &str) -> Vec<Violation> {
    let problem = format!("it could not be checked: {problem}");
    vec![Violation { pointer: String::new(), problem }]
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
