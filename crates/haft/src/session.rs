//! State shared by the tools of one session, for a bounded number of sessions.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;

use crate::context::SessionState;

/// Maximum number of remembered sessions; the oldest is evicted first.
const SESSIONS_MAX: usize = 1000;

/// The state of each session.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    states: HashMap<String, SessionState>,
    oldest_first: VecDeque<String>,
}

impl Sessions {
    /// Returns the state of a session; a call without one gets its own state.
    pub(crate) fn state(&self, session: Option<&str>) -> SessionState {
        let Some(session) = session else {
            return SessionState::default();
        };
        let mut inner = self.0.lock();
        if let Some(state) = inner.states.get(session) {
            return state.clone();
        }
        if inner.oldest_first.len() >= SESSIONS_MAX
            && let Some(oldest) = inner.oldest_first.pop_front()
        {
            inner.states.remove(&oldest);
        }
        let state = SessionState::default();
        inner.oldest_first.push_back(session.to_owned());
        inner.states.insert(session.to_owned(), state.clone());
        state
    }
}
