//! Streamable HTTP: each message is a POST, and its answer comes back in the same exchange, as one
//! JSON body or as a stream of events.

mod answer;
mod endpoint;
mod events;
mod failure;
mod headers;
mod listen;
mod refusal;
mod retry_after;

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use parking_lot::{Mutex, MutexGuard};

use super::{Connector, Era, Outgoing, Transport};
use crate::error::TransportError;
use crate::handler::BoxFuture;
use crate::http_client::Response;
use crate::message_router::MessageRouter;

pub use endpoint::HttpOptions;
pub(super) use endpoint::{Endpoint, origin};
pub(super) use events::Events;
pub(super) use failure::silent;
use headers::{LAST_EVENT_ID, SESSION_ID};
pub(super) use headers::{PROTOCOL_VERSION, configured as configured_headers, trace as add_trace};
pub(super) use refusal::rpc_error;
pub(super) use retry_after::read as retry_after;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON_OR_EVENT_STREAM: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");
/// Time limit for ending the session.
const GOODBYE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Connects to servers that speak streamable HTTP. Connections to the server are shared by
/// everything that one connector opens.
pub struct HttpConnector {
    endpoint: Endpoint,
    terminate_on_close: bool,
}

impl HttpConnector {
    /// Nothing is sent yet; what is wrong with the options is found here.
    pub fn new(options: HttpOptions) -> Result<Self, TransportError> {
        let terminate_on_close = options.terminate_on_close;
        Ok(Self { endpoint: Endpoint::new(options)?, terminate_on_close })
    }
}

impl Connector for HttpConnector {
    fn open(
        &self,
        router: MessageRouter,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
        Box::pin(async move {
            let endpoint = self.endpoint.clone();
            let mut headers = endpoint.headers.clone();
            headers.insert(ACCEPT, JSON_OR_EVENT_STREAM);
            headers.insert(CONTENT_TYPE, JSON);
            let state = State { headers, era: None, listening: false };
            let shared = Arc::new(Shared { endpoint, router, state: Mutex::new(state) });
            let terminate_on_close = self.terminate_on_close;
            Ok(Arc::new(Http { shared, terminate_on_close }) as Arc<dyn Transport>)
        })
    }
}

/// One server over streamable HTTP.
struct Http {
    shared: Arc<Shared>,
    terminate_on_close: bool,
}

/// Shared state of exchanges and the background stream.
struct Shared {
    endpoint: Endpoint,
    router: MessageRouter,
    state: Mutex<State>,
}

/// Results of the handshake.
struct State {
    /// Every header of a POST, except those of its own message.
    headers: HeaderMap,
    era: Option<Era>,
    /// The background stream was started.
    listening: bool,
}

impl Http {
    async fn exchange(&self, message: &Outgoing) -> Result<(), TransportError> {
        let Shared { endpoint, router: _, state: _ } = &*self.shared;
        let headers = self.shared.headers_for(message);
        let response = endpoint
            .send(&Method::POST, &endpoint.url, headers, Some(&message.body), endpoint.timeout)
            .await?;
        if !response.status().is_success() {
            return self.shared.refused(message, response).await;
        }
        if message.method == "initialize" {
            self.shared.keep_session(&response);
        }
        if let Some(id) = message.awaited() {
            return self.shared.answer(id, response).await;
        }
        if !is_event_stream(&response) {
            endpoint.drain(response).await;
        }
        if message.method == "notifications/initialized" {
            self.shared.listen().await;
        }
        Ok(())
    }
}

impl Transport for Http {
    fn deliver<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(self.exchange(message))
    }

    fn negotiated(&self, version: &str, era: Era) {
        let mut state = self.shared.state();
        state.era = Some(era);
        if let Ok(version) = HeaderValue::from_str(version) {
            state.headers.insert(PROTOCOL_VERSION, version);
        }
    }

    fn answers_in_exchange(&self) -> bool {
        true
    }

    fn cancels_by_closing(&self) -> bool {
        self.shared.is_modern()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let mut headers = self.shared.state().headers.clone();
            // Forgotten first: whatever happens, the session is ended once at most.
            let session = self.shared.state().headers.remove(SESSION_ID);
            if !self.terminate_on_close || session.is_none() {
                return;
            }
            headers.remove(CONTENT_TYPE);
            let endpoint = &self.shared.endpoint;
            let limit = endpoint.timeout.min(GOODBYE_WAIT_MAX);
            let goodbye = endpoint.send(&Method::DELETE, &endpoint.url, headers, None, limit);
            // A server that is gone, or does not end sessions, needs no notification.
            let _ = tokio::time::timeout(limit, goodbye).await;
        })
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn is_modern(&self) -> bool {
        self.state().era == Some(Era::Modern)
    }

    fn has_session(&self) -> bool {
        self.state().headers.contains_key(SESSION_ID)
    }

    fn headers_for(&self, message: &Outgoing) -> HeaderMap {
        let state = self.state();
        let mut headers = state.headers.clone();
        if state.era == Some(Era::Modern) {
            headers::add_message_headers(message, &mut headers);
        }
        headers::trace(message, &mut headers);
        headers
    }

    /// The headers of a GET for events, from behind `last_id` on.
    fn headers_for_events(&self, last_id: Option<&str>) -> HeaderMap {
        let mut headers = self.state().headers.clone();
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, EVENT_STREAM);
        if let Some(Ok(id)) = last_id.map(HeaderValue::from_str) {
            headers.insert(LAST_EVENT_ID, id);
        }
        headers
    }

    /// Takes the session's name from the answer to `initialize`.
    fn keep_session(&self, response: &Response) {
        if let Some(session) = response.headers().get(SESSION_ID) {
            self.state().headers.insert(SESSION_ID, session.clone());
        }
    }
}

pub(super) fn is_event_stream(response: &Response) -> bool {
    is_of_type(response, "text/event-stream")
}

fn is_of_type(response: &Response, wanted: &str) -> bool {
    let Some(Ok(kind)) = response.headers().get(CONTENT_TYPE).map(HeaderValue::to_str) else {
        return false;
    };
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
}
