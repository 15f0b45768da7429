//! Notifications that a caller receives before the answer: the execution id and progress.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The progress of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Progress {
    /// Completed work. Increases from report to report.
    pub progress: f64,
    /// Total work, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// A message for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Progress {
    /// Progress of `progress` out of `total`.
    pub fn new(progress: f64, total: impl Into<Option<f64>>) -> Self {
        Self { progress, total: total.into(), message: None }
    }

    /// Sets the message.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

type StartFn = Arc<dyn Fn(&str) + Send + Sync>;
type ProgressFn = Arc<dyn Fn(Progress) + Send + Sync>;

/// The listeners of a call.
#[derive(Clone, Default)]
pub(crate) struct Listeners {
    pub(crate) start: Option<StartFn>,
    pub(crate) progress: Option<ProgressFn>,
}

impl Listeners {
    pub(crate) fn started(&self, execution_id: &str) {
        if let Some(listener) = &self.start {
            told("the listener for the id of a call", || listener(execution_id));
        }
    }

    pub(crate) fn reporter(&self) -> Reporter {
        Reporter(
            self.progress.as_ref().map(|listener| Arc::new(Mutex::new(Some(listener.clone())))),
        )
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners")
            .field("start", &self.start.is_some())
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// Delivers a tool's reports to the listener. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Reporter(Option<Arc<Mutex<Option<ProgressFn>>>>);

impl Reporter {
    /// Returns true if a listener is registered.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.is_some()
    }

    /// Delivers a report in order; drops it once the call has ended.
    pub(crate) fn report(&self, progress: Progress) {
        let Some(listener) = &self.0 else { return };
        // Held while the listener runs: reports of several threads stay in order, and `close` waits
        // for the last one, so that none follows the answer.
        let listener = listener.lock();
        if let Some(listener) = &*listener {
            told("the listener for the progress of a call", || listener(progress));
        }
    }

    /// Ends delivery, because the call has ended.
    pub(crate) fn close(&self) {
        if let Some(listener) = &self.0 {
            let gone = listener.lock().take();
            drop(gone);
        }
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reporter").field(&self.0.is_some()).finish()
    }
}

/// Runs a callback of the embedding program. A panic in it does not fail the call.
pub(crate) fn told(whom: &str, tell: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(tell)).is_err() {
        tracing::error!("{whom} panicked");
    }
}
