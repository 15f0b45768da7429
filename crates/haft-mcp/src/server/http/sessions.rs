//! All sessions, within limits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::EndpointOptions;
use super::session::Session;
use crate::budget::KeptBytes;
use crate::server::Change;
use crate::server::dispatch::Client;

/// The random part of a session's id.
const ID_BYTES: usize = 16;

/// The sessions of an endpoint.
pub(super) struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
    max: usize,
    idle_max: Duration,
    kept_bytes: KeptBytes,
}

/// Why no session can be opened.
pub(super) struct NoRoom(pub(super) String);

impl Sessions {
    pub(super) fn new(options: &EndpointOptions) -> Self {
        Self {
            open: Mutex::default(),
            max: options.sessions_max.max(1),
            idle_max: options.session_idle,
            kept_bytes: options.kept_bytes.clone(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Opens a session. If all are taken, the session that was idle for the longest time is closed: of the same
    /// client if it has more than half of all, otherwise of any client.
    pub(super) fn open(&self, client: Arc<Client>) -> Result<Arc<Session>, NoRoom> {
        let mut bytes = [0; ID_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| NoRoom(format!("there are no random numbers: {error}")))?;
        let id = haft_text::hex(&bytes);
        let session = Session::new(id.clone(), client, self.kept_bytes.clone());
        let mut open = self.lock();
        let gone =
            if open.len() < self.max { None } else { Some(self.most_idle(&open, &session)?) };
        let gone = gone.and_then(|id| open.remove(&id));
        open.insert(id, Arc::clone(&session));
        drop(open);
        if let Some(gone) = gone {
            gone.end();
        }
        Ok(session)
    }

    fn most_idle(
        &self,
        open: &HashMap<String, Arc<Session>>,
        new: &Session,
    ) -> Result<String, NoRoom> {
        let is_own = |it: &&Arc<Session>| it.client.facts.principal == new.client.facts.principal;
        let has_most = open.values().filter(is_own).count() > self.max / 2;
        let candidates = open.values().filter(|it| !has_most || is_own(it));
        let idle = candidates.filter_map(|it| Some((it.idle_since()?, it)));
        let most = idle.min_by_key(|(since, _)| *since).map(|(_, it)| it.id.clone());
        // If all are in use, a client with more than half of them gives one to another client.
        let taken = || {
            let (greedy, count) = Self::greediest(open)?;
            let gives = count > self.max / 2 && greedy != new.client.facts.principal;
            let own = open.values().filter(|it| gives && it.client.facts.principal == greedy);
            own.min_by_key(|it| it.last_use()).map(|it| it.id.clone())
        };
        most.or_else(taken).ok_or_else(|| {
            NoRoom(format!("{} sessions are in use already, try again later", self.max))
        })
    }

    /// The client with the most sessions, and how many it has.
    fn greediest(open: &HashMap<String, Arc<Session>>) -> Option<(Arc<str>, usize)> {
        let mut counts: HashMap<&Arc<str>, usize> = HashMap::new();
        for session in open.values() {
            *counts.entry(&session.client.facts.principal).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count)?;
        Some((Arc::clone(most.0), most.1))
    }

    /// The session of this id, if it is this client's.
    pub(super) fn find(&self, id: &str, principal: &str) -> Option<Arc<Session>> {
        let session = self.lock().get(id).cloned();
        session.filter(|session| *session.client.facts.principal == *principal)
    }

    pub(super) fn end(&self, session: &Session) {
        self.lock().remove(&session.id);
        session.end();
    }

    pub(super) fn announce(&self, changes_seen: &[Change]) {
        for session in self.all() {
            session.announce(changes_seen);
        }
    }

    /// Ends the sessions that were unused for long enough.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        for session in self.all() {
            session.tidy();
            if session.idle_since().is_some_and(|since| now - since >= self.idle_max) {
                self.end(&session);
            }
        }
    }

    /// Ends all of them.
    pub(super) fn clear(&self) {
        for session in self.all() {
            self.end(&session);
        }
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.open.lock()
    }
}
