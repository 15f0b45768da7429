//! Where requests of clients are answered, whatever carried them here.

use haft_bounds::parse_error::describe;
use std::borrow::Cow;
use std::collections::HashMap;
use std::future::ready;
use std::num::NonZeroU16;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::ask::{Asks, Questions};
use super::input::{Input, Running, SuspendedRequests, Work, lasting};
use super::level::Level;
use super::meta::RequestMeta;
use super::modern::Completed;
use super::params::Params;
use super::peer::{Asking, ClientFacts, NotificationSender, Out, Peer};
use super::replica::Replica;
use super::state_signer::StateBinding;
use super::tasks::Tasks;
use super::{
    Change, ClientRequest, INVALID_REQUEST, Service, Subscription, ToolRequest, listen, modern,
};
use crate::budget::KeptBytes;
use crate::error::{INVALID_PARAMS, METHOD_NOT_FOUND, RpcError};
use crate::extension::TASKS_EXTENSION;
use crate::handler::BoxFuture;

/// From which level on clients that raw for none get log messages.
const LEVEL: Level = Level::Info;

/// Largest number of resources that one client may watch, and longest URI.
pub(super) const RESOURCES_MAX: usize = 1_000;
pub(super) const URI_BYTES_MAX: usize = 8 * 1024;

pub(super) type Answer = Result<Box<RawValue>, RpcError>;
/// The answer of the modern era.
pub(super) type Completion = Result<Completed, RpcError>;

/// The parts of a request's parameters that outlive its message.
pub(super) struct Extracted {
    tool: Option<ToolRequest>,
    input: Input,
}

impl Extracted {
    pub(super) fn of(method: &str, params: &Params<'_>) -> Result<Self, RpcError> {
        Ok(Self { tool: params.tool(method)?, input: params.input()? })
    }
}

/// State that all clients of a service share.
pub(super) struct RequestHandler {
    pub(super) service: Arc<dyn Service>,
    suspended_requests: Arc<SuspendedRequests>,
    tasks: Arc<Tasks>,
}

/// A request as it came.
#[derive(Clone, Copy)]
pub(super) struct RawRequest<'a> {
    pub(super) id: &'a RawValue,
    pub(super) method: &'a str,
    pub(super) params: Option<&'a RawValue>,
}

/// A client of the legacy era: one session, or one connection.
pub(super) struct Client {
    pub(super) facts: Arc<ClientFacts>,
    pub(super) asks: Arc<Asks>,
    level: Mutex<Level>,
    /// The lists it has requested, which may be outdated now.
    listed: Mutex<Vec<Change>>,
    /// The resources whose updates it has subscribed to.
    subscriptions: Mutex<HashMap<String, Subscription>>,
}

impl Client {
    pub(super) fn new(facts: ClientFacts) -> Arc<Self> {
        Self::with(facts, Asks::default(), Vec::new())
    }

    /// A client whose other requests may go to other replicas: it may have requested any list there.
    pub(super) fn of_replica(facts: ClientFacts, number: NonZeroU16) -> Arc<Self> {
        Self::with(facts, Asks::of_replica(number), Change::LISTS.to_vec())
    }

    fn with(facts: ClientFacts, asks: Asks, listed: Vec<Change>) -> Arc<Self> {
        Arc::new(Self {
            facts: Arc::new(facts),
            asks: Arc::new(asks),
            level: Mutex::new(LEVEL),
            listed: Mutex::new(listed),
            subscriptions: Mutex::default(),
        })
    }

    /// Returns true if it wants this notification: lists that it has seen, resources that it subscribed to.
    pub(super) fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Resource(uri) => self.subscriptions.lock().contains_key(&**uri),
            Change::Log(message) => message.level >= *self.level.lock(),
            list => self.listed.lock().contains(list),
        }
    }

    /// Subscriptions live as long as the client, so they are bounded.
    fn may_watch(&self, uri: &str) -> Result<(), RpcError> {
        let subscriptions = self.subscriptions.lock();
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

    fn set_level(&self, params: Option<&RawValue>) -> Answer {
        let SetLevel { level } = read(params)?;
        *self.level.lock() = Level::read(&level)?;
        Ok(empty())
    }

    fn wants_to_watch(&self, params: Option<&RawValue>) -> Result<String, RpcError> {
        let Uri { uri } = read(params)?;
        self.may_watch(&uri)?;
        Ok(uri)
    }

    fn unsubscribe(&self, params: Option<&RawValue>) -> Answer {
        let Uri { uri } = read(params)?;
        let before = self.subscriptions.lock().remove(&uri);
        drop(before);
        Ok(empty())
    }

    fn asks_for(&self, method: &str) {
        let list = match method {
            "tools/list" => Change::Tools,
            "prompts/list" => Change::Prompts,
            "resources/list" | "resources/templates/list" => Change::Resources,
            _ => return,
        };
        let mut listed = self.listed.lock();
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

impl RequestHandler {
    pub(super) fn new(
        service: Arc<dyn Service>,
        kept_bytes: KeptBytes,
        replica: Option<&Replica>,
    ) -> Arc<Self> {
        let suspended_requests = Arc::new(SuspendedRequests::new(replica));
        let tasks = Tasks::new(kept_bytes, replica.map(|replica| replica.number));
        Arc::new(Self { service, suspended_requests, tasks })
    }

    /// Answers a request of the legacy era. `out` takes the notifications before the answer.
    pub(super) fn legacy(
        &self,
        client: &Arc<Client>,
        raw: RawRequest<'_>,
        params: &Params<'_>,
        out: Out,
    ) -> BoxFuture<'static, Answer> {
        let RawRequest { method, params: raw_params, .. } = raw;
        let peer = Peer {
            facts: Arc::clone(&client.facts),
            notifications: NotificationSender::new(out, params.meta.progress_token()),
            asking: Asking::Legacy(Arc::clone(&client.asks)),
            level: Some(*client.level.lock()),
        };
        let answer = match method {
            "ping" => Ok(empty()),
            "logging/setLevel" => client.set_level(raw_params),
            "resources/subscribe" => match client.wants_to_watch(raw_params) {
                Ok(uri) => return self.subscribe(Arc::clone(client), uri, peer),
                Err(error) => Err(error),
            },
            "resources/unsubscribe" => client.unsubscribe(raw_params),
            // Words of the other era.
            "server/discover" | "subscriptions/listen" => Err(unknown(method)),
            _ => match params.tool(method) {
                Ok(tool) => {
                    client.asks_for(method);
                    return Arc::clone(&self.service).request(request(raw, tool, peer));
                }
                Err(error) => Err(error),
            },
        };
        Box::pin(ready(answer))
    }

    fn subscribe(
        &self,
        client: Arc<Client>,
        uri: String,
        peer: Peer,
    ) -> BoxFuture<'static, Answer> {
        let subscribing = Arc::clone(&self.service).subscribe(uri.clone(), peer);
        Box::pin(async move {
            let subscription = subscribing.await?;
            let before = client.subscriptions.lock().insert(uri, subscription);
            drop(before);
            Ok(empty())
        })
    }

    /// Answers a request of the modern era.
    pub(super) async fn modern(
        &self,
        facts: ClientFacts,
        request_meta: RequestMeta,
        raw: RawRequest<'_>,
        extracted: Extracted,
        out: Out,
    ) -> Completion {
        let RawRequest { method, params, .. } = raw;
        let RequestMeta { progress_token, level } = request_meta;
        let notifications = NotificationSender::new(out, progress_token);
        let Extracted { tool, input } = extracted;
        let Input { input_responses, request_state } = input;
        let takes_tasks = facts.has_extension(TASKS_EXTENSION);
        if let Some(answer) = self.tasks.answer(method, params, &facts.principal, takes_tasks) {
            return answer.map(|result| modern::complete(method, result));
        }
        let tasks = (takes_tasks && method == "tools/call").then(|| Arc::clone(&self.tasks));
        let responses = input_responses.unwrap_or_default();
        if let Some(state) = request_state {
            let binding =
                StateBinding::new(&facts.principal, method, &lasting(tool.as_ref(), params));
            let answer = self
                .suspended_requests
                .resume(&state, binding, responses, &notifications, tasks)
                .await;
            return answer.map(|result| modern::complete(method, result));
        }
        let principal = Arc::clone(&facts.principal);
        let revoked = facts.revoked.clone();
        let (questions, signals) = Questions::new(responses);
        let asking = Asking::Modern(Arc::new(questions));
        let peer = Peer {
            facts: Arc::new(facts),
            notifications: Arc::clone(&notifications),
            asking,
            level,
        };
        let service = Arc::clone(&self.service);
        let answer = match method {
            "server/discover" => modern::discover(&service.about().await),
            "subscriptions/listen" => listen::listen(service, raw, peer).await,
            // Words of the other era.
            "initialize"
            | "ping"
            | "logging/setLevel"
            | "resources/subscribe"
            | "resources/unsubscribe" => Err(unknown(method)),
            _ => {
                let call = tool.clone();
                let work = service.request(request(raw, tool, peer));
                let lasting = || lasting(call.as_ref(), params);
                let binding = || StateBinding::new(&principal, method, &lasting());
                let principal = Arc::clone(&principal);
                let answer = Running::Here(work);
                let work = Work {
                    answer,
                    signals,
                    notifications,
                    principal,
                    revoked,
                    tasks,
                    is_task: false,
                };
                self.suspended_requests.run(work, binding).await
            }
        };
        answer.map(|result| modern::complete(method, result))
    }
}

fn request(raw: RawRequest<'_>, tool: Option<ToolRequest>, peer: Peer) -> ClientRequest {
    let RawRequest { method, params, .. } = raw;
    let params = if tool.is_some() { None } else { params.map(ToOwned::to_owned) };
    ClientRequest { method: known_method(method), params, tool, peer }
}

/// The name of a method, without a copy of the one that most requests have.
pub(super) fn known_method(method: &str) -> Cow<'static, str> {
    match method {
        "tools/call" => Cow::Borrowed("tools/call"),
        other => Cow::Owned(other.to_owned()),
    }
}

/// The parameters of a request.
pub(super) fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get)).map_err(|error| {
        RpcError::new(INVALID_PARAMS, format!("Invalid params: {}", describe(&error)))
    })
}

/// An id is a string or a number; answers to anything else could not be matched.
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
