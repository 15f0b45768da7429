//! What a caller hears of a call before its answer: its id, and how far it is.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// How much is done. Grows from report to report.
    pub progress: f64,
    /// How much there is to do, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What is going on, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Progress {
    /// So much of `total` is done.
    pub fn new(progress: f64, total: impl Into<Option<f64>>) -> Self {
        Self { progress, total: total.into(), message: None }
    }

    /// Says what is going on.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

type StartFn = Arc<dyn Fn(&str) + Send + Sync>;
type ProgressFn = Arc<dyn Fn(Progress) + Send + Sync>;

/// Whom a call tells about itself.
#[derive(Clone, Default)]
pub(crate) struct Listeners {
    pub(crate) start: Option<StartFn>,
    pub(crate) progress: Option<ProgressFn>,
}

impl Listeners {
    pub(crate) fn started(&self, execution_id: &str) {
        if let Some(listener) = &self.start {
            told("whoever waits for the id of a call", || listener(execution_id));
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

/// The way of a tool's reports to whoever listens. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Reporter(Option<Arc<Mutex<Option<ProgressFn>>>>);

impl Reporter {
    /// Whether anybody listens.
    #[cfg(feature = "mcp")]
    pub(crate) fn is_heard(&self) -> bool {
        self.0.is_some()
    }

    /// Hands a report on, in order; dropped when the call is over.
    pub(crate) fn report(&self, progress: Progress) {
        let Some(listener) = &self.0 else { return };
        // Held while the listener hears: reports of several threads stay in order, and `close`
        // waits for the last one, so that none comes after the answer.
        let listener = listener.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = &*listener {
            told("whoever hears the progress of a call", || listener(progress));
        }
    }

    /// The call is over: nobody hears anything from now on.
    pub(crate) fn close(&self) {
        if let Some(listener) = &self.0 {
            let gone = listener.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(gone);
        }
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reporter").field(&self.0.is_some()).finish()
    }
}

/// Calls code of the embedding program. If that panics, it is no fault of the call.
pub(crate) fn told(whom: &str, tell: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(tell)).is_err() {
        tracing::error!("{whom} panicked");
    }
}
