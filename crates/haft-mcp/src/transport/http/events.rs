//! A response that is a stream of events.

use super::Endpoint;
use super::endpoint::BodyKind;
use crate::budget::{Charge, FREE_BYTES};
use crate::error::TransportError;
use crate::http_client::Response;
use crate::message_router::MessageRouter;
use crate::transport::event_stream::{Event, EventStream, Excess};

/// A stream that is being read.
pub(crate) struct Events {
    response: Response,
    pub(crate) stream: EventStream,
    charge: Charge,
}

impl Events {
    pub(crate) fn new(response: Response, router: &MessageRouter) -> Self {
        let limits = router.limits();
        let stream = EventStream::new(limits.message_bytes_max, limits.noise_bytes_max);
        Self { response, stream, charge: router.charge() }
    }

    /// The next event; nothing at the end of the stream. Given up while it waits, nothing is lost.
    pub(crate) async fn next(
        &mut self,
        endpoint: &Endpoint,
        router: &MessageRouter,
    ) -> Result<Option<Event>, TransportError> {
        loop {
            match self.stream.next() {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => self.cover()?,
                Err(Excess::Message) => return Err(router.too_long()),
                Err(Excess::Noise) => return Err(router.too_noisy()),
            }
            match endpoint.chunk(&mut self.response, BodyKind::Stream).await? {
                Some(chunk) => self.stream.push(&chunk),
                None => return Ok(None),
            }
        }
    }

    /// Holds memory for the event that is being read, and no longer for the one before it.
    fn cover(&mut self) -> Result<(), TransportError> {
        let bytes = self.stream.buffered_bytes();
        if bytes <= FREE_BYTES {
            self.charge.release();
            return Ok(());
        }
        self.charge.cover(bytes)
    }
}

impl Event {
    /// Returns true if its data is a message of the protocol.
    pub(crate) fn is_message(&self) -> bool {
        self.name.is_empty() || self.name == "message"
    }
}
