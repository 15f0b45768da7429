//! Checks a shared registry for changes before a name counts as unknown: the change that made it known may have been made
//! at another replica just before.

use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::worker::{ChangeSource, WorkItem};

/// Time between the starts of two checks, whatever the number of callers.
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(50);
/// Longest wait of a caller. A store that does not respond must not hold up the answer.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Checks on request. Callers share a check that starts after they asked.
pub(super) struct RegistryRefresher {
    queue: mpsc::Sender<WorkItem>,
    /// The start of the last check.
    last: Mutex<Option<Instant>>,
}

impl RegistryRefresher {
    pub(super) fn new(queue: mpsc::Sender<WorkItem>) -> Self {
        Self { queue, last: Mutex::new(None) }
    }

    /// Returns when the registry in use is as new as this call, or after [`WAIT_MAX`].
    pub(super) async fn refresh(&self) {
        // Without a response the state in use stays, as it does for every other request.
        let _ = timeout(WAIT_MAX, self.check()).await;
    }

    async fn check(&self) {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        if let Some(last) = *last {
            if last >= asked {
                return;
            }
            sleep_until(last + CHECK_INTERVAL_MIN).await;
        }
        let started = Instant::now();
        let (sender, checked) = oneshot::channel();
        if self.queue.send(WorkItem::CheckForChanges(ChangeSource::Registry, sender)).await.is_ok()
        {
            // Fails only if the toolbox stops.
            let _ = checked.await;
        }
        *last = Some(started);
    }
}
