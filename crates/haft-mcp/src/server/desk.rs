//! Where requests of clients are answered, whatever carried them here.

use haft_bounds::parse_error::describe;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::ask::{Asks, Questions};
use super::input::{Input, Parking, Running, Work, lasting};
use super::level::Level;
use super::meta::{Meta, Wishes};
use super::peer::{Asking, ClientFacts, Line, Peer};
use super::seal::Bound;
use super::tasks::Tasks;
use super::{Change, ClientRequest, INVALID_REQUEST, Service, Subscription, listen, modern};
use crate::budget::KeptBytes;
use crate::error::{INVALID_PARAMS, METHOD_NOT_FOUND, RpcError};
use crate::extension::TASKS_EXTENSION;

/// From which level on clients that asked for none get log messages.
const LEVEL: Level = Level::Info;

/// How many resources one client may watch, and how long their URIs may be.
pub(super) const RESOURCES_MAX: usize = 1_000;
pub(super) const URI_BYTES_MAX: usize = 8 * 1024;

pub(super) type Answer = Result<Box<RawValue>, RpcError>;

/// What all clients of a service share.
pub(super) struct Desk {
    pub(super) service: Arc<dyn Service>,
    parking: Arc<Parking>,
    tasks: Arc<Tasks>,
}

/// A request as it came.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) id: &'a RawValue,
    pub(super) method: &'a str,
    pub(super) params: Option<&'a RawValue>,
}

/// A client of the legacy era: one session, or one connection.
pub(super) struct Client {
    pub(super) facts: Arc<ClientFacts>,
    pub(super) asks: Arc<Asks>,
    level: Mutex<Level>,
    /// What it asked for, so that it may be out of date now.
    listed: Mutex<Vec<Change>>,
    /// The resources whose updates it wants to hear of.
    subscriptions: Mutex<HashMap<String, Subscription>>,
}

impl Client {
    pub(super) fn new(facts: ClientFacts) -> Arc<Self> {
        Arc::new(Self {
            facts: Arc::new(facts),
            asks: Arc::default(),
            level: Mutex::new(LEVEL),
            listed: Mutex::default(),
            subscriptions: Mutex::default(),
        })
    }

    /// Whether it wants to hear of this: lists that it has seen, resources that it subscribed to.
    pub(super) fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Resource(uri) => lock(&self.subscriptions).contains_key(&**uri),
            list => lock(&self.listed).contains(list),
        }
    }

    /// What a client watches is kept for as long as it likes, so there is not much of it.
    fn may_watch(&self, uri: &str) -> Result<(), RpcError> {
        let subscriptions = lock(&self.subscriptions);
        let is_full = subscriptions.len() >= RESOURCES_MAX && !subscriptions.contains_key(uri);
        if is_full || uri.len() > URI_BYTES_MAX {
            let text = format!(
                "Invalid params: a client watches at most {RESOURCES_MAX} resources, with URIs of at \
                 most {URI_BYTES_MAX} bytes"
            );
            return Err(RpcError::new(INVALID_PARAMS, text));
        }
        Ok(())
    }

    fn asks_for(&self, method: &str) {
        let list = match method {
            "tools/list" => Change::Tools,
            "prompts/list" => Change::Prompts,
            "resources/list" | "resources/templates/list" => Change::Resources,
            _ => return,
        };
        let mut listed = lock(&self.listed);
        if !listed.contains(&list) {
            listed.push(list);
        }
    }
}

#[derive(Deserialize)]
struct Uri {
    uri: String,
}

#[derive(Deserialize)]
struct SetLevel {
    level: String,
}

impl Desk {
    pub(super) fn new(service: Arc<dyn Service>, kept_bytes: KeptBytes) -> Arc<Self> {
        let (parking, tasks) = (Arc::new(Parking::new()), Tasks::new(kept_bytes));
        Arc::new(Self { service, parking, tasks })
    }

    /// Answers a request of the legacy era. `out` takes what is to be told before the answer.
    pub(super) async fn legacy(
        &self,
        client: &Arc<Client>,
        asked: Asked<'_>,
        out: mpsc::Sender<String>,
    ) -> Answer {
        let Asked { method, params, .. } = asked;
        // What cannot be read there is left to whoever reads the rest.
        let meta = Meta::read(params).unwrap_or_default();
        let peer = Peer {
            facts: Arc::clone(&client.facts),
            line: Line::new(out, meta.progress_token()),
            asking: Asking::Legacy(Arc::clone(&client.asks)),
            level: Some(*lock(&client.level)),
        };
        match method {
            "ping" => Ok(empty()),
            "logging/setLevel" => {
                let SetLevel { level } = read(params)?;
                *lock(&client.level) = Level::read(&level)?;
                Ok(empty())
            }
            "resources/subscribe" => {
                let Uri { uri } = read(params)?;
                client.may_watch(&uri)?;
                let subscription = Arc::clone(&self.service).subscribe(uri.clone(), peer).await?;
                let before = lock(&client.subscriptions).insert(uri, subscription);
                drop(before);
                Ok(empty())
            }
            "resources/unsubscribe" => {
                let Uri { uri } = read(params)?;
                let before = lock(&client.subscriptions).remove(&uri);
                drop(before);
                Ok(empty())
            }
            // Words of the other era.
            "server/discover" | "subscriptions/listen" => Err(unknown(method)),
            _ => {
                client.asks_for(method);
                Arc::clone(&self.service).request(request(asked, peer)).await
            }
        }
    }

    /// Answers a request of the modern era.
    pub(super) async fn modern(
        &self,
        facts: ClientFacts,
        wishes: Wishes,
        asked: Asked<'_>,
        out: mpsc::Sender<String>,
    ) -> Answer {
        let Asked { method, params, .. } = asked;
        let Wishes { progress_token, level } = wishes;
        let line = Line::new(out, progress_token);
        let Input { input_responses, request_state } = Input::read(params)?;
        let takes_tasks = facts.has_extension(TASKS_EXTENSION);
        if let Some(answer) = self.tasks.answer(method, params, &facts.principal, takes_tasks) {
            return answer.map(|result| modern::complete(method, result));
        }
        let tasks = (takes_tasks && method == "tools/call").then(|| Arc::clone(&self.tasks));
        let responses = input_responses.unwrap_or_default();
        if let Some(state) = request_state {
            let bound = Bound::new(&facts.principal, method, &lasting(params));
            let answer = self.parking.resume(&state, bound, responses, &line, tasks).await;
            return answer.map(|result| modern::complete(method, result));
        }
        let principal = Arc::clone(&facts.principal);
        let revoked = facts.revoked.clone();
        let (questions, signals) = Questions::new(responses);
        let asking = Asking::Modern(Arc::new(questions));
        let peer = Peer { facts: Arc::new(facts), line: Arc::clone(&line), asking, level };
        let service = Arc::clone(&self.service);
        let answer = match method {
            "server/discover" => modern::discover(&service.about().await),
            "subscriptions/listen" => listen::listen(service, asked, peer).await,
            // Words of the other era.
            "initialize"
            | "ping"
            | "logging/setLevel"
            | "resources/subscribe"
            | "resources/unsubscribe" => Err(unknown(method)),
            _ => {
                let work = service.request(request(asked, peer));
                let bound = || Bound::new(&principal, method, &lasting(params));
                let principal = Arc::clone(&principal);
                let answer = Running::Here(work);
                let work =
                    Work { answer, signals, line, principal, revoked, tasks, is_task: false };
                self.parking.run(work, bound).await
            }
        };
        answer.map(|result| modern::complete(method, result))
    }
}

fn request(asked: Asked<'_>, peer: Peer) -> ClientRequest {
    let Asked { method, params, .. } = asked;
    ClientRequest { method: method.to_owned(), params: params.map(ToOwned::to_owned), peer }
}

/// The parameters of a request.
pub(super) fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get)).map_err(|error| {
        RpcError::new(INVALID_PARAMS, format!("Invalid params: {}", describe(&error)))
    })
}

/// An id is a text or a number; with anything else nobody could tell answers apart.
pub(super) fn check_id(id: &RawValue) -> Result<(), RpcError> {
    if id.get().starts_with(|it: char| it == '"' || it == '-' || it.is_ascii_digit()) {
        return Ok(());
    }
    Err(RpcError::new(INVALID_REQUEST, "Invalid Request: an id is a text or a number"))
}

pub(super) fn unknown(method: &str) -> RpcError {
    RpcError::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))
}

pub(super) fn empty() -> Box<RawValue> {
    // Two characters that are JSON.
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
