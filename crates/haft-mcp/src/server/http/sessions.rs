//! All sessions, within limits.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::EndpointOptions;
use super::session::{Place, Session};
use super::session_id::{self, RANDOM_BYTES, SignedSession};
use crate::budget::KeptBytes;
use crate::server::Change;
use crate::server::dispatch::Client;
use crate::server::peer::ClientFacts;
use crate::server::principal::Principal;
use crate::server::replica::Replica;

/// Largest number of sessions that were ended by their clients and are remembered, because any replica could rebuild them
/// from their ids.
const DELETED_MAX: usize = 10_000;

/// The sessions of an endpoint.
pub(super) struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
    /// The ids of clients that ended their sessions.
    deleted: Mutex<Deleted>,
    replica: Option<Replica>,
    max: usize,
    idle_max: Duration,
    kept_bytes: KeptBytes,
}

#[derive(Default)]
struct Deleted {
    clients: HashSet<u64>,
    oldest_first: VecDeque<u64>,
}

/// A session that was looked up.
pub(super) enum Found {
    /// It was there.
    Known(Arc<Session>),
    /// It was rebuilt from its id.
    Rebuilt(Arc<Session>),
}

/// Why no session can be opened.
pub(super) struct NoRoom(pub(super) String);

impl Sessions {
    pub(super) fn new(options: &EndpointOptions) -> Self {
        Self {
            open: Mutex::default(),
            deleted: Mutex::default(),
            replica: options.replica.clone(),
            max: options.sessions_max.max(1),
            idle_max: options.session_idle,
            kept_bytes: options.kept_bytes.clone(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Opens a session for a client.
    pub(super) fn open(&self, facts: ClientFacts) -> Result<Arc<Session>, NoRoom> {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random)
            .map_err(|error| NoRoom(format!("there are no random numbers: {error}")))?;
        if let Some(replica) = &self.replica {
            let (id, facts) = session_id::sign(replica, random, facts);
            let signed = SignedSession { home: replica.number, facts };
            return self.insert(self.of_replica(replica, id, signed));
        }
        let id = haft_text::hex(&random);
        let session = Session::new(id, Client::new(facts), None, self.kept_bytes.clone());
        self.insert(session)
    }

    /// The session of this id, if it is this client's. Where there are replicas, it is rebuilt if it is not here.
    pub(super) fn find(&self, id: &str, principal: &Principal) -> Result<Option<Found>, NoRoom> {
        let session = self.lock().get(id).cloned();
        if let Some(session) = session {
            let is_own = session.client.facts.principal == principal.name;
            return Ok(is_own.then_some(Found::Known(session)));
        }
        let Some(replica) = &self.replica else { return Ok(None) };
        let signed = session_id::verify(replica, id, principal)
            .filter(|signed| !self.deleted.lock().clients.contains(&signed.facts.id));
        let Some(signed) = signed else { return Ok(None) };
        let session = self.of_replica(replica, id.to_owned(), signed);
        // What the client missed may have been anything.
        session.announce(&Change::LISTS);
        self.insert(session).map(|session| Some(Found::Rebuilt(session)))
    }

    fn of_replica(&self, replica: &Replica, id: String, signed: SignedSession) -> Arc<Session> {
        let SignedSession { home, facts } = signed;
        let place = Place { home, own: replica.number };
        let client = Client::of_replica(facts, replica.number);
        Session::new(id, client, Some(place), self.kept_bytes.clone())
    }

    /// Adds a session, unless another request was faster. If all are taken, the session that was idle for the longest
    /// time is closed: of the same client if it has more than half of all, otherwise of any client.
    fn insert(&self, session: Arc<Session>) -> Result<Arc<Session>, NoRoom> {
        let mut open = self.lock();
        if let Some(faster) = open.get(&session.id) {
            return Ok(Arc::clone(faster));
        }
        let gone =
            if open.len() < self.max { None } else { Some(self.most_idle(&open, &session)?) };
        let gone = gone.and_then(|id| open.remove(&id));
        open.insert(session.id.clone(), Arc::clone(&session));
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

    /// Ends a session for its client, which does not use it again.
    pub(super) fn delete(&self, session: &Session) {
        if self.replica.is_some() {
            self.deleted.lock().insert(session.client.facts.id);
        }
        self.end(session);
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

impl Deleted {
    fn insert(&mut self, client: u64) {
        if !self.clients.insert(client) {
            return;
        }
        self.oldest_first.push_back(client);
        if self.oldest_first.len() > DELETED_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.clients.remove(&oldest);
        }
    }
}
