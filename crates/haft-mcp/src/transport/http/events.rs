//! A response that is a stream of events.

use reqwest::Response;

use super::Endpoint;
use crate::error::TransportError;
use crate::inbox::Inbox;
use crate::transport::event_stream::{Event, EventStream, Excess};

/// A stream that is being read.
pub(crate) struct Events {
    response: Response,
    pub(crate) stream: EventStream,
}

impl Events {
    pub(crate) fn new(response: Response, inbox: &Inbox) -> Self {
        let limits = inbox.limits();
        let stream = EventStream::new(limits.message_bytes_max, limits.noise_bytes_max);
        Self { response, stream }
    }

    /// The next event; nothing at the end of the stream. Given up while it waits, nothing is lost.
    pub(crate) async fn next(
        &mut self,
        endpoint: &Endpoint,
        inbox: &Inbox,
    ) -> Result<Option<Event>, TransportError> {
        loop {
            match self.stream.next() {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(Excess::Message) => return Err(inbox.too_long()),
                Err(Excess::Noise) => return Err(inbox.too_noisy()),
            }
            match endpoint.chunk(&mut self.response, endpoint.sse_read_timeout).await? {
                Some(chunk) => self.stream.push(&chunk),
                None => return Ok(None),
            }
        }
    }
}

impl Event {
    /// Whether its data is a message of the protocol.
    pub(crate) fn is_message(&self) -> bool {
        self.name.is_empty() || self.name == "message"
    }
}
