//! The context of a call: the caller, the session, and the way back to the caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::progress::{Progress, Reporter};
use crate::requester::{Behind, Origin};
use crate::trace::TraceContext;

/// Who calls, on whose behalf, under which id. Travels with the call into its log entry.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The id of this execution and of its log entry.
    pub execution_id: String,
    /// Who asked: a key's name, `cli`, a program's own name.
    pub caller: Option<String>,
    pub(crate) owner: Option<String>,
    /// The session or run the call belongs to.
    pub session: Option<String>,
    /// What tools of one session share.
    pub state: SessionState,
    /// The trace the call belongs to.
    pub trace: Option<TraceContext>,
    pub(crate) reporter: Reporter,
    pub(crate) requester: Behind,
}

impl CallContext {
    /// Reports progress to the caller's listener. Does nothing once the call has ended.
    pub fn progress(&self, progress: Progress) {
        self.reporter.report(progress);
    }
}

/// Values that the tools of one session share. Lives as long as the session does.
#[derive(Debug, Clone, Default)]
pub struct SessionState(Arc<Mutex<HashMap<String, Value>>>);

impl SessionState {
    /// The value kept under `key`.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.lock().ok()?.get(key).cloned()
    }

    /// Keeps `value` under `key` and hands back what was there.
    pub fn set(&self, key: impl Into<String>, value: Value) -> Option<Value> {
        self.0.lock().ok()?.insert(key.into(), value)
    }
}

impl From<&CallContext> for Origin {
    fn from(context: &CallContext) -> Self {
        Self {
            execution_id: Some(context.execution_id.clone()),
            caller: context.caller.clone(),
            session: context.session.clone(),
        }
    }
}
