//! HTTP+SSE, the transport before streamable HTTP: one stream for everything the server sends, and
//! an address, named on that stream, for everything we send.

use std::sync::Arc;

use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use parking_lot::Mutex;
use url::Url;

use super::http::{
    EVENT_STREAM, Endpoint, Events, HttpOptions, JSON, PROTOCOL_VERSION, add_trace,
    is_event_stream, origin, rpc_error, silent,
};
use super::{Connector, Era, Outgoing, Transport};
use crate::error::{Failure, TransportError};
use crate::handler::BoxFuture;
use crate::http_client::Response;
use crate::message_router::MessageRouter;

/// Connects to servers that speak HTTP+SSE.
pub struct SseConnector {
    endpoint: Endpoint,
}

impl SseConnector {
    /// Nothing is sent yet; what is wrong with the options is found here.
    pub fn new(options: HttpOptions) -> Result<Self, TransportError> {
        Ok(Self { endpoint: Endpoint::new(options)? })
    }

    async fn connect(&self, router: MessageRouter) -> Result<Arc<dyn Transport>, TransportError> {
        let endpoint = &self.endpoint;
        let mut headers = endpoint.headers.clone();
        headers.insert(ACCEPT, EVENT_STREAM);
        let response =
            endpoint.send(&Method::GET, &endpoint.url, headers, None, endpoint.timeout).await?;
        if !response.status().is_success() {
            let refusal = endpoint.refusal(response).await;
            return Err(endpoint.refused(&refusal));
        }
        if !is_event_stream(&response) {
            let message = format!("`{}` answered without a stream of events", endpoint.shown);
            return Err(TransportError::unsent(Failure::Protocol, message));
        }
        let base = response.url().clone();
        let mut events = Events::new(response, &router);
        let naming = self.address(&mut events, &router, &base);
        let address = tokio::time::timeout(endpoint.timeout, naming).await.map_err(|_| {
            silent(&endpoint.shown, "did not send the address for messages", endpoint.timeout)
        })??;
        let mut headers = endpoint.headers.clone();
        headers.insert(ACCEPT, JSON);
        headers.insert(CONTENT_TYPE, JSON);
        let transport = Sse {
            endpoint: endpoint.clone(),
            router: router.clone(),
            address,
            headers: Mutex::new(headers),
        };
        router.spawn(read(events, endpoint.clone(), router.clone()));
        Ok(Arc::new(transport))
    }

    /// The address for our messages: the first event of a server.
    async fn address(
        &self,
        events: &mut Events,
        router: &MessageRouter,
        base: &Url,
    ) -> Result<Url, TransportError> {
        let shown = &self.endpoint.shown;
        while let Some(event) = events.next(&self.endpoint, router).await? {
            if event.name != "endpoint" {
                continue;
            }
            let text = String::from_utf8_lossy(&event.data);
            let Ok(address) = base.join(text.trim()) else {
                let message = format!("`{shown}` named an address for messages that is none");
                return Err(TransportError::unsent(Failure::Protocol, message));
            };
            if address.origin() != base.origin() {
                let (from, to) = (origin(base), origin(&address));
                return Err(TransportError::unsent(
                    Failure::Redirect,
                    format!("`{shown}` at `{from}` wants messages sent to another origin, `{to}`"),
                ));
            }
            return Ok(address);
        }
        let message = format!("`{shown}` ended the stream before it sent the address for messages");
        Err(TransportError::unsent(Failure::Closed, message))
    }
}

impl Connector for SseConnector {
    fn open(
        &self,
        router: MessageRouter,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
        Box::pin(self.connect(router))
    }
}

/// One server over HTTP+SSE.
struct Sse {
    endpoint: Endpoint,
    router: MessageRouter,
    address: Url,
    /// Every header of a POST.
    headers: Mutex<HeaderMap>,
}

impl Sse {
    async fn post(&self, message: &Outgoing) -> Result<(), TransportError> {
        let mut headers = self.headers.lock().clone();
        add_trace(message, &mut headers);
        let endpoint = &self.endpoint;
        let response = endpoint
            .send(&Method::POST, &self.address, headers, Some(&message.body), endpoint.timeout)
            .await?;
        if response.status().is_success() {
            endpoint.drain(response).await;
            return Ok(());
        }
        self.refused(message, response).await
    }

    async fn refused(&self, message: &Outgoing, response: Response) -> Result<(), TransportError> {
        let refusal = self.endpoint.refusal(response).await;
        if refusal.status.as_u16() == 404 {
            // The address belongs to this one session.
            let shown = &self.endpoint.shown;
            let why = format!("`{shown}` does not know the session any more");
            return Err(TransportError::unsent(Failure::SessionExpired, why));
        }
        match (message.awaited(), rpc_error(&refusal.body)) {
            (Some(id), Some((_, error))) if refusal.status.as_u16() == 400 => {
                self.router.fail(id, error);
                Ok(())
            }
            _ => Err(self.endpoint.refused(&refusal)),
        }
    }
}

impl Transport for Sse {
    fn deliver<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(self.post(message))
    }

    fn negotiated(&self, version: &str, _era: Era) {
        if let Ok(version) = HeaderValue::from_str(version) {
            let mut headers = self.headers.lock();
            headers.insert(PROTOCOL_VERSION, version);
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        // The end of the connection ends the task that reads the stream, and that closes it.
        Box::pin(std::future::ready(()))
    }
}

/// Reads the stream for as long as the connection lives.
async fn read(mut events: Events, endpoint: Endpoint, router: MessageRouter) {
    let reason = loop {
        match events.next(&endpoint, &router).await {
            Ok(Some(event)) if event.is_message() => {
                router.accept(None, event.data).await;
            }
            Ok(Some(_)) => {}
            Ok(None) => {
                let message = format!("`{}` ended the stream", endpoint.shown);
                break TransportError::after_sending(Failure::Closed, message);
            }
            Err(error) => break error,
        }
    };
    router.end(&reason);
}
