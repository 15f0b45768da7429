//! Legacy sessions and the streams that wait to be resumed.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;

use crate::channel::{Frames, Outbox, Peer};
use crate::server::Server;

/// The name of the one session of a server without session ids.
const SHARED: &str = "shared";

/// The sessions of a server.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

/// A session of one client.
#[derive(Debug)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// Its client.
    pub peer: Arc<Peer>,
    /// Frames that wait for the GET stream; held by the stream that is open.
    pub general: Arc<tokio::sync::Mutex<Frames>>,
    interrupted: Mutex<HashMap<String, Frames>>,
}

impl Sessions {
    /// Opens a session; without ids there is only one, which stays.
    pub fn open(&self, server: &Server, with_id: bool) -> Arc<Session> {
        if !with_id {
            return self.shared(server);
        }
        let id = format!("session-{}-{}", std::process::id(), server.next());
        server.facts.note("session", json!({ "id": id }));
        let session = session(id, server);
        self.0.lock().insert(session.id.clone(), Arc::clone(&session));
        session
    }

    /// The one session of a server without ids.
    pub fn shared(&self, server: &Server) -> Arc<Session> {
        let mut sessions = self.0.lock();
        Arc::clone(
            sessions.entry(SHARED.to_owned()).or_insert_with(|| session(SHARED.to_owned(), server)),
        )
    }

    /// A session by its id.
    pub fn find(&self, id: &str) -> Option<Arc<Session>> {
        self.0.lock().get(id).cloned()
    }

    /// Forgets a session.
    pub fn close(&self, id: &str) {
        self.0.lock().remove(id);
    }
}

impl Session {
    /// Keeps the rest of a stream; returns the id of its last event.
    pub fn keep(&self, number: u64, frames: Frames) -> String {
        let id = format!("stream-{number}");
        self.interrupted.lock().insert(id.clone(), frames);
        id
    }

    /// The rest of a stream.
    pub fn resume(&self, last_event: &str) -> Option<Frames> {
        self.interrupted.lock().remove(last_event)
    }
}

fn session(id: String, server: &Server) -> Arc<Session> {
    let (out, frames) = Outbox::new();
    Arc::new(Session {
        id,
        peer: server.connect(out),
        general: Arc::new(tokio::sync::Mutex::new(frames)),
        interrupted: Mutex::default(),
    })
}
