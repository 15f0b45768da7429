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
/// Time that the handshake waits for the background stream. Some servers answer only with the first event.
const OPEN_WAIT_MAX: Duration = Duration::from_millis(200);
/// Largest number of failed attempts in a row to resume an answer.
const RESUMES_MAX: u32 = 5;
/// Largest number of times that a server may cut one answer.
const CUTS_MAX: u32 = 1_000;

/// Where a stream broke off.
#[derive(Default)]
struct StreamPosition {
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl StreamPosition {
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
    /// Returns when the server has answered, so that what it sends by itself from now on is received.
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
        self.router.spawn(async move { shared.keep_listening(open).await });
        let _ = tokio::time::timeout(OPEN_WAIT_MAX, opened).await;
    }

    /// Drops `open` when the first answer is there.
    async fn keep_listening(&self, open: oneshot::Sender<()>) {
        let mut open = Some(open);
        let mut position = StreamPosition::default();
        let mut pause = Pause::default();
        let mut was_offered = false;
        loop {
            let began = Instant::now();
            let wish;
            let answer = self.events_from(&position).await;
            open.take();
            match answer {
                Ok(events) => {
                    was_offered = true;
                    let received = self.take_in_all(events, None, &mut position).await;
                    if received > 0 || began.elapsed() > PAUSE_MAX {
                        pause = Pause::default();
                    }
                    // A server that closes its streams on purpose sends a reconnect delay.
                    wish = position.retry;
                }
                // A server that knew the stream and does not know it now has forgotten the session.
                Err(error) if error.kind == Failure::Status(404) && was_offered => {
                    let shown = &self.endpoint.shown;
                    let message = format!("`{shown}` does not know the session any more");
                    let expired = TransportError::unsent(Failure::SessionExpired, message);
                    return self.router.end(&expired);
                }
                // The server has no such stream, which it need not have.
                Err(error) if !error.is_transient() => {
                    if error.kind != Failure::Status(405) {
                        self.router
                            .handler()
                            .report_anomaly(&format!("no background stream: {error}"));
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
        let mut position = StreamPosition::default();
        position.note(&events);
        drop(events);
        let mut in_vain = 0;
        let mut why = None;
        let mut pause = Pause::default();
        for _ in 0..CUTS_MAX {
            tokio::time::sleep(pause.next(position.retry)).await;
            match self.events_from(&position).await {
                Ok(events) => {
                    let received = self.take_in_all(events, Some(id), &mut position).await;
                    if !self.router.awaits(id) {
                        return Ok(());
                    }
                    in_vain += 1;
                    if received > 0 {
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
            format!("`{shown}` ended the exchange without an answer, and could not resume: {why}"),
        ))
    }

    async fn events_from(&self, position: &StreamPosition) -> Result<Events, TransportError> {
        let endpoint = &self.endpoint;
        let headers = self.headers_for_events(position.last_id.as_deref());
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
        Ok(Events::new(response, &self.router))
    }

    /// Reads a stream to its end, or until the answer to `awaited` came. Counts the messages.
    async fn take_in_all(
        &self,
        mut events: Events,
        awaited: Option<u64>,
        position: &mut StreamPosition,
    ) -> usize {
        let mut received = 0;
        while let Ok(Some(event)) = events.next(&self.endpoint, &self.router).await {
            if event.is_message() {
                self.router.accept(None, event.data).await;
                received += 1;
            }
            if awaited.is_some_and(|id| !self.router.awaits(id)) {
                break;
            }
        }
        position.note(&events);
        received
    }
}
