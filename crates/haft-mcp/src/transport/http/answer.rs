//! Reads the answer to a request: one JSON body, or events until the answer is among them.

use std::sync::Arc;
use std::time::Duration;

use super::endpoint::BodyKind;
use super::{Events, Shared, failure, is_event_stream, is_of_type};
use crate::budget::Charge;
use crate::error::{Failure, TransportError};
use crate::http_client::Response;

/// Longest time that a stream may stay open behind its answer before its connection is given up.
const TAIL_WAIT_MAX: Duration = Duration::from_secs(2);

impl Shared {
    /// Puts everything that comes back for the request `id` into the router.
    pub(super) async fn answer(
        self: &Arc<Self>,
        id: u64,
        response: Response,
    ) -> Result<(), TransportError> {
        if is_event_stream(&response) {
            return self.answer_in_events(id, response).await;
        }
        let is_json = is_of_type(&response, "application/json");
        let kind = response.headers().get(http::header::CONTENT_TYPE).cloned();
        let (mut body, _charge) = self.body(response).await?;
        if is_json || kind.is_none() {
            body = self.router.accept(Some(id), body).await;
        }
        if !self.router.awaits(id) {
            return Ok(());
        }
        let shown = &self.endpoint.shown;
        let what = match kind.filter(|_| !is_json) {
            Some(kind) => format!("with `{}`", failure::printable(kind.as_bytes())),
            None => "without an answer".to_owned(),
        };
        let excerpt = self.endpoint.excerpt(&body);
        let excerpt = if excerpt.is_empty() { excerpt } else { format!(": {excerpt}") };
        Err(TransportError::after_sending(
            Failure::Protocol,
            format!("`{shown}` answered a request {what}{excerpt}"),
        ))
    }

    /// A whole body, up to the size of a message.
    async fn body(&self, mut response: Response) -> Result<(Vec<u8>, Charge), TransportError> {
        let max = self.router.limits().message_bytes_max;
        let length = response.content_length().unwrap_or_default();
        if length > max as u64 {
            return Err(self.router.too_long());
        }
        let mut charge = self.router.charge();
        let mut body = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        while let Some(chunk) = self.endpoint.chunk(&mut response, BodyKind::Answer).await? {
            if body.len() + chunk.len() > max {
                return Err(self.router.too_long());
            }
            charge.cover(body.len() + chunk.len())?;
            body.extend_from_slice(&chunk);
        }
        Ok((body, charge))
    }

    async fn answer_in_events(
        self: &Arc<Self>,
        id: u64,
        response: Response,
    ) -> Result<(), TransportError> {
        let events = Events::new(response, &self.router);
        let mut tail = Tail { shared: self, id, events: Some(events) };
        let ended = loop {
            let Some(events) = &mut tail.events else { return Ok(()) };
            match events.next(&self.endpoint, &self.router).await {
                Ok(Some(event)) if event.is_message() => {
                    self.router.accept(Some(id), event.data).await;
                }
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        let Some(events) = tail.events.take() else { return Ok(()) };
        if !self.router.awaits(id) {
            return Ok(());
        }
        let can_resume = !self.is_modern()
            && events.stream.last_id().is_some()
            && ended.as_ref().is_none_or(|error| error.kind == Failure::Closed);
        if can_resume {
            return self.resume(id, events).await;
        }
        Err(ended.unwrap_or_else(|| {
            TransportError::after_sending(
                Failure::Closed,
                format!("`{}` ended the exchange without an answer", self.endpoint.shown),
            )
        }))
    }
}

/// The rest of a stream whose answer came. The caller continues at once; a stream that is read to its end leaves a
/// connection which the next request can use.
struct Tail<'a> {
    shared: &'a Arc<Shared>,
    id: u64,
    events: Option<Events>,
}

impl Drop for Tail<'_> {
    fn drop(&mut self) {
        let Some(mut events) = self.events.take() else { return };
        // The caller is gone: closing the stream cancels the request.
        let is_answered = !self.shared.router.awaits(self.id);
        if !is_answered || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let shared = Arc::clone(self.shared);
        self.shared.router.spawn(async move {
            let reading = async {
                while let Ok(Some(event)) = events.next(&shared.endpoint, &shared.router).await {
                    if event.is_message() {
                        shared.router.accept(None, event.data).await;
                    }
                }
            };
            let _ = tokio::time::timeout(TAIL_WAIT_MAX, reading).await;
        });
    }
}
