//! Streams of the legacy era that the client asks for: the background one, for what the server
//! sends by itself, and the rest of an answer whose stream broke off.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use tokio::sync::oneshot;

use super::{Events, Shared, is_event_stream};
use crate::error::{Failure, TransportError};
use crate::http_client::Response;

/// The first and the longest pause before asking again. A server may ask for one in between; a shorter one would
/// let it cause requests without end.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long the handshake waits for the background stream. Some servers answer only when they have
/// something to say.
const OPEN_WAIT_MAX: Duration = Duration::from_millis(200);
/// How often in a row the rest of an answer is asked for in vain.
const RESUMES_MAX: u32 = 5;
/// How often a server may cut one answer altogether.
const CUTS_MAX: u32 = 1_000;

/// Where a stream broke off.
#[derive(Default)]
struct Place {
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl Place {
    fn note(&mut self, events: &Events) {
        if let Some(id) = events.stream.last_id() {
            self.last_id = Some(id.to_owned());
        }
        self.retry = events.stream.retry().or(self.retry);
    }
}

/// The pauses between requests for a stream, growing until it brings something.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(PAUSE_MIN)
    }
}

impl Pause {
    /// The next pause: the one the server wishes for, unless that is shorter than the shortest.
    fn next(&mut self, wish: Option<Duration>) -> Duration {
        let own = self.0;
        self.0 = (own * 2).min(PAUSE_MAX);
        wish.filter(|wish| *wish >= PAUSE_MIN).map_or(own, |wish| wish.min(PAUSE_MAX))
    }
}

impl Shared {
    /// Starts the background stream, once. It lives as long as the connection.
    ///
    /// Returns when the server has answered, so that what it sends by itself from now on is heard.
    pub(super) async fn listen(self: &Arc<Self>) {
        {
            let mut state = self.state();
            if state.listening || state.era != Some(super::Era::Legacy) {
                return;
            }
            state.listening = true;
        }
        let shared = Arc::clone(self);
        let (open, opened) = oneshot::channel();
        self.inbox.spawn(async move { shared.keep_listening(open).await });
        let _ = tokio::time::timeout(OPEN_WAIT_MAX, opened).await;
    }

    /// Drops `open` when the first answer is there.
    async fn keep_listening(&self, open: oneshot::Sender<()>) {
        let mut open = Some(open);
        let mut place = Place::default();
        let mut pause = Pause::default();
        let mut was_offered = false;
        loop {
            let began = Instant::now();
            let wish;
            let answer = self.events_from(&place).await;
            open.take();
            match answer {
                Ok(events) => {
                    was_offered = true;
                    let heard = self.take_in_all(events, None, &mut place).await;
                    if heard > 0 || began.elapsed() > PAUSE_MAX {
                        pause = Pause::default();
                    }
                    // A server that closes its streams on purpose says when to come back.
                    wish = place.retry;
                }
                // A server that knew the stream and does not know it now has forgotten the session.
                Err(error) if error.kind == Failure::Status(404) && was_offered => {
                    let shown = &self.endpoint.shown;
                    let message = format!("`{shown}` does not know the session any more");
                    let expired = TransportError::unsent(Failure::SessionExpired, message);
                    return self.inbox.end(&expired);
                }
                // The server has no such stream, which it need not have.
                Err(error) if !error.is_transient() => {
                    if error.kind != Failure::Status(405) {
                        self.inbox.handler().trouble(&format!("no background stream: {error}"));
                    }
                    return;
                }
                Err(error) => wish = error.retry_after,
            }
            tokio::time::sleep(pause.next(wish)).await;
        }
    }

    /// Asks for the rest of an answer until it is there.
    pub(super) async fn resume(&self, id: u64, events: Events) -> Result<(), TransportError> {
        let mut place = Place::default();
        place.note(&events);
        drop(events);
        let mut in_vain = 0;
        let mut why = None;
        let mut pause = Pause::default();
        for _ in 0..CUTS_MAX {
            tokio::time::sleep(pause.next(place.retry)).await;
            match self.events_from(&place).await {
                Ok(events) => {
                    let heard = self.take_in_all(events, Some(id), &mut place).await;
                    if !self.inbox.awaits(id) {
                        return Ok(());
                    }
                    in_vain += 1;
                    if heard > 0 {
                        in_vain = 0;
                        pause = Pause::default();
                    }
                }
                Err(error) => {
                    let may_help = error.is_transient();
                    in_vain += 1;
                    why = Some(error);
                    if !may_help {
                        break;
                    }
                }
            }
            if in_vain >= RESUMES_MAX {
                break;
            }
        }
        let shown = &self.endpoint.shown;
        let why = why.map_or_else(|| "the rest never came".to_owned(), |error| error.message);
        Err(TransportError::after_sending(
            Failure::Closed,
            format!("`{shown}` ended the exchange without an answer, and could not go on: {why}"),
        ))
    }

    async fn events_from(&self, place: &Place) -> Result<Events, TransportError> {
        let endpoint = &self.endpoint;
        let headers = self.headers_for_events(place.last_id.as_deref());
        // Some servers begin their response with the first event.
        let limit = endpoint.sse_read_timeout;
        let response = endpoint.send(&Method::GET, &endpoint.url, headers, None, limit).await?;
        self.check_events(response).await
    }

    async fn check_events(&self, response: Response) -> Result<Events, TransportError> {
        if !response.status().is_success() {
            let refusal = self.endpoint.refusal(response).await;
            return Err(self.endpoint.refused(&refusal));
        }
        if !is_event_stream(&response) {
            let message = format!("`{}` answered without a stream of events", self.endpoint.shown);
            return Err(TransportError::unsent(Failure::Protocol, message));
        }
        Ok(Events::new(response, &self.inbox))
    }

    /// Reads a stream to its end, or until the answer to `awaited` came. Counts the messages.
    async fn take_in_all(
        &self,
        mut events: Events,
        awaited: Option<u64>,
        place: &mut Place,
    ) -> usize {
        let mut heard = 0;
        while let Ok(Some(event)) = events.next(&self.endpoint, &self.inbox).await {
            if event.is_message() {
                self.inbox.accept(None, event.data).await;
                heard += 1;
            }
            if awaited.is_some_and(|id| !self.inbox.awaits(id)) {
                break;
            }
        }
        place.note(&events);
        heard
    }
}
