//! The context of a call: the caller, the session, and the way back to the caller.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::caller_handle::{CallOrigin, CallerRef};
use crate::progress::{Progress, Reporter};
use crate::trace::TraceContext;

/// The caller, the session and the execution id of a call. Also written to its log entry.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The id of this execution and of its log entry.
    pub execution_id: String,
    /// The caller's name: a key's name, `cli`, or a program's own name.
    pub caller: Option<String>,
    pub(crate) owner: Option<String>,
    /// The session or run the call belongs to.
    pub session: Option<String>,
    /// State shared by the tools of one session.
    pub state: SessionState,
    /// The trace the call belongs to.
    pub trace: Option<TraceContext>,
    pub(crate) reporter: Reporter,
    pub(crate) caller_handle: CallerRef,
    pub(crate) printed: PrintedText,
    pub(crate) reader: Option<String>,
}

/// The text that a tool printed during the call. The backend sets it, the log entry holds it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PrintedText(Arc<Mutex<String>>);

impl PrintedText {
    pub(crate) fn set(&self, text: String) {
        if !text.is_empty() {
            *self.0.lock() = text;
        }
    }

    pub(crate) fn take(&self) -> Option<String> {
        let text = std::mem::take(&mut *self.0.lock());
        (!text.is_empty()).then_some(text)
    }
}

impl CallContext {
    /// The caller that may read the result of this call again.
    pub(crate) fn reader(&self) -> Option<&str> {
        let reader = self.reader.as_ref().or(self.owner.as_ref()).or(self.caller.as_ref());
        reader.map(String::as_str)
    }

    /// Reports progress to the caller's listener. Does nothing once the call has ended.
    pub fn progress(&self, progress: Progress) {
        self.reporter.report(progress);
    }
}

/// Values that the tools of one session share, for the lifetime of the session.
#[derive(Debug, Clone, Default)]
pub struct SessionState(Arc<Mutex<HashMap<String, Value>>>);

impl SessionState {
    /// Returns the value under `key`.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.lock().get(key).cloned()
    }

    /// Stores `value` under `key` and returns the previous value.
    pub fn set(&self, key: impl Into<String>, value: Value) -> Option<Value> {
        self.0.lock().insert(key.into(), value)
    }
}

impl From<&CallContext> for CallOrigin {
    fn from(context: &CallContext) -> Self {
        Self {
            execution_id: Some(context.execution_id.clone()),
            caller: context.caller.clone(),
            session: context.session.clone(),
        }
    }
}
