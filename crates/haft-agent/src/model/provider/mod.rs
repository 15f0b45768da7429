//! Models of real services, by way of genai. Its types stop here.

mod content;
mod failure;
mod frames;
mod key;
mod kind;
mod provider_state;
mod relay;
mod request;
mod target;
mod thread;
mod tool_calls;
mod turn;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use genai::chat::{ChatOptions, ChatRequest, ChatStream, ChatStreamEvent, StreamEnd};
use genai::{Client, ServiceTarget};
use haft_mcp::{HttpClient, HttpClientOptions};
use url::Url;

pub(super) use kind::Provider;

use self::content::MediaSupport;
use self::frames::{Frames, StreamError};
use self::relay::{AnswerLimits, Framing, Relay};
use self::target::Target;
use self::thread::Thread;
use self::turn::{Chunk, TurnBuilder, TurnError};
use super::adapt::Offer;
use super::failure::Failures;
use super::{
    ChatMessage, ChatModel, ModelError, ModelEvent, ModelFailure, ModelRequest, ModelStream,
    ModelTurn,
};
use haft::config::Secret;
use haft::config::agent::AgentConfig;
use haft_text::innermost;

/// Maximum time with heartbeats only, in multiples of the silence limit: some services send them
/// while a request is queued.
const SILENCES_MAX: u32 = 10;
/// Many services close a connection that idles for a minute.
const IDLE_MAX: Duration = Duration::from_secs(50);
const IDLE_CONNECTIONS_MAX: usize = 8;

/// A model of a service.
pub(super) struct ServiceModel {
    service: Arc<Service>,
    thread: Arc<Thread>,
}

struct Service {
    /// Finds addresses only. Requests go through a [`Relay`].
    resolver: Client,
    http: HttpClient,
    target: Target,
    shows: MediaSupport,
    is_strict: bool,
    /// A self-hosted service receives the name unmodified.
    is_verbatim: bool,
    silence_max: Duration,
    /// Maximum number of values and keys in one event of an answer.
    answer_nodes_max: usize,
    answer_bytes_max: u64,
    max_output_tokens: Option<u32>,
}

impl ServiceModel {
    /// Checks the settings; sends no request.
    pub(super) fn new(config: &AgentConfig) -> Result<Self, ModelError> {
        let target = Target::new(config)?;
        let unused =
            haft_mcp::http_client_builder().build().map_err(|it| no_setup(innermost(&it)))?;
        let resolver = Client::builder().with_reqwest(unused).build().map_err(no_setup)?;
        let http = HttpClient::new(HttpClientOptions {
            connect_timeout: config.request_timeout.value,
            idle_max: IDLE_MAX,
            idle_connections_max: IDLE_CONNECTIONS_MAX,
        });
        let http = http.map_err(|it| no_setup(it.root_cause()))?;
        let thread = Thread::start("haft-model").map_err(no_setup)?;
        let shows = MediaSupport {
            provider: target.provider,
            images: config.images.value,
            audio: config.audio.as_ref().map(|audio| audio.value),
        };
        let service = Service {
            resolver,
            http,
            shows,
            is_strict: config.strict_schemas.value,
            is_verbatim: target.provider == Provider::OpenAi && config.base_url.is_some(),
            silence_max: config.request_timeout.value,
            answer_nodes_max: config.answer_nodes_max,
            answer_bytes_max: u64::from(config.answer_bytes_max.value),
            max_output_tokens: config.max_output_tokens.as_ref().map(|it| it.value),
            target,
        };
        Ok(Self { service: Arc::new(service), thread: Arc::new(thread) })
    }
}

fn no_setup(why: impl std::fmt::Display) -> ModelError {
    ModelError {
        kind: ModelFailure::Setup,
        message: format!("no connection can be set up: {why}"),
        remedy: None,
    }
}

impl ChatModel for ServiceModel {
    fn name(&self) -> &str {
        &self.service.target.model
    }

    fn ask(&self, request: ModelRequest) -> ModelStream {
        let (service, thread) = (Arc::clone(&self.service), Arc::clone(&self.thread));
        let listening = async move { service.begin(request).await.map(Listening::events) };
        let events = stream::once(listening).try_flatten();
        Box::pin(stream::once(async move { thread.read(events) }).flatten())
    }
}

/// A request in flight.
struct Listening {
    service: Arc<Service>,
    stream: ChatStream,
    relay: Relay,
    frames: Arc<Frames>,
    builder: TurnBuilder,
    /// The time of the last event other than a heartbeat.
    last_said: Instant,
    offer: Offer,
    failures: Failures,
    /// The same question for a service that does not stream, until it is known that it does.
    plain: Option<Box<Plain>>,
    /// The turn to return after this event.
    turn: Option<ModelTurn>,
}

struct Plain {
    target: ServiceTarget,
    address: Url,
    chat: ChatRequest,
    options: ChatOptions,
}

impl Service {
    async fn begin(self: Arc<Self>, mut request: ModelRequest) -> Result<Listening, ModelError> {
        request.max_output_tokens = request.max_output_tokens.or(self.max_output_tokens);
        let (target, key) = self.target.resolve(&self.resolver).await?;
        let address = self.target.shown.as_deref().unwrap_or(target.endpoint.base_url());
        let has_images = self.shows.images && request.messages.iter().any(ChatMessage::has_image);
        let failures = self.failures(address, key.clone()).showing(has_images);
        let offer = Offer::new(&request.tools, self.target.provider, self.is_strict);
        let chat = request::chat(&request, &offer, self.shows);
        let frames = Frames::new(self.target.provider, self.answer_nodes_max);
        let options = request::options(&request, self.target.provider, self.is_verbatim)
            .with_raw_frame_sink_arc(frames.clone())
            .with_stream_header_timeout(self.silence_max)
            .with_stream_read_timeout(self.silence_max);
        let options = match (&key, self.target.provider) {
            // Genai sends this provider no key.
            (Some(key), Provider::Ollama) => {
                let bearer = format!("Bearer {}", key.expose());
                options.with_extra_headers(("Authorization".to_owned(), bearer))
            }
            _ => options,
        };
        let (target, address) = target::local(target).map_err(|why| failures.unsendable(&why))?;
        let relay = self.relay(address.clone(), self.target.provider.framing())?;
        let plain =
            Plain { target: target.clone(), address, chat: chat.clone(), options: options.clone() };
        let asked = relay.client().exec_chat_stream(target, chat, Some(&options)).await;
        let stream = asked.map_err(|error| failure::told(&failures, error))?.stream;
        Ok(Listening {
            service: self,
            stream,
            relay,
            frames,
            builder: TurnBuilder::default(),
            last_said: Instant::now(),
            offer,
            failures,
            plain: Some(Box::new(plain)),
            turn: None,
        })
    }

    fn relay(&self, address: Url, framing: Framing) -> Result<Relay, ModelError> {
        let limits = AnswerLimits { bytes_max: self.answer_bytes_max, framing };
        Relay::open(&self.http, address, limits).map_err(no_setup)
    }

    fn failures(&self, address: &str, key: Option<Secret>) -> Failures {
        let Target { model, key: source, secrets, .. } = &self.target;
        Failures::new(model, address, source.place(), key, secrets).waiting(self.silence_max)
    }
}

impl Listening {
    fn events(self) -> impl futures_util::Stream<Item = Result<ModelEvent, ModelError>> + Send {
        stream::try_unfold(Some(self), |listening| async move {
            let Some(mut listening) = listening else { return Ok(None) };
            let event = listening.next().await?;
            let is_last = matches!(event, ModelEvent::Done(_));
            Ok(Some((event, (!is_last).then_some(listening))))
        })
    }

    async fn next(&mut self) -> Result<ModelEvent, ModelError> {
        if let Some(turn) = self.turn.take() {
            return Ok(ModelEvent::Done(Box::new(turn)));
        }
        while let Some(event) = self.push().await? {
            let event = event.map_err(|error| self.failed(error))?;
            if !matches!(event, ChatStreamEvent::Heartbeat) {
                self.last_said = Instant::now();
            } else if self.last_said.elapsed()
                > self.service.silence_max.saturating_mul(SILENCES_MAX)
            {
                return Err(self.failures.only_alive(SILENCES_MAX));
            }
            let chunk = self.builder.push(event);
            if self.builder.is_begun {
                self.plain = None;
            }
            match chunk {
                Chunk::Event(event) => return Ok(event),
                Chunk::Nothing => {}
                Chunk::TooMuch => return Err(self.failures.unreadable("it has no end")),
                Chunk::End(end) => return self.finish(*end),
            }
        }
        if let Some(end) = self.frames.take_end() {
            return self.finish(end);
        }
        match self.plain.take() {
            Some(plain) => self.ask_plainly(*plain).await,
            None => Err(self.failures.broken_off()),
        }
    }

    fn finish(&mut self, end: StreamEnd) -> Result<ModelEvent, ModelError> {
        let builder = std::mem::take(&mut self.builder);
        let provider = self.service.target.provider;
        let turn = builder.finish(end, self.frames.take_calls(), provider, &self.offer);
        let turn = turn.map_err(|no_turn| match no_turn {
            TurnError::BrokenOff => self.failures.broken_off(),
            TurnError::NoCalls => {
                self.failures.unreadable("it wants to call tools, and names none")
            }
            TurnError::TooManyCalls => self.failures.unreadable(&tool_calls::too_many()),
        })?;
        Ok(ModelEvent::Done(Box::new(turn)))
    }

    fn failed(&self, error: genai::Error) -> ModelError {
        match self.relay.take_failure() {
            Some(failure) => failure::relayed(&self.failures, failure),
            None => failure::told(&self.failures, error),
        }
    }

    async fn push(&mut self) -> Result<Option<genai::Result<ChatStreamEvent>>, ModelError> {
        // A service that never pauses would otherwise starve other tasks of this thread.
        tokio::task::consume_budget().await;
        let chunk = self.frames.next(&mut self.stream, self.service.silence_max).await;
        chunk.map_err(|deaf| match deaf {
            StreamError::Refused(why) => self.failures.unreadable(&why),
            StreamError::Silent => self.failures.silent(),
            StreamError::OnlyAlive => self.failures.only_alive(SILENCES_MAX),
        })
    }

    /// Retries without streaming, because the response has no events. Services without streaming
    /// send the whole answer at once.
    async fn ask_plainly(&mut self, plain: Plain) -> Result<ModelEvent, ModelError> {
        let Plain { target, address, chat, options } = plain;
        self.relay = self.service.relay(address, Framing::Whole)?;
        let answer = self.relay.client().exec_chat(target, chat, Some(&options));
        let answer = frames::unwound(answer);
        let answer = tokio::time::timeout(self.service.silence_max, answer).await;
        let answer = answer.map_err(|_| self.failures.silent())?;
        let answer = answer.map_err(|why| self.failures.unreadable(&why))?;
        let answer = answer.map_err(|error| self.failed(error))?;
        let turn = turn::whole(answer, self.service.target.provider, &self.offer);
        if turn.text.is_empty() {
            return Ok(ModelEvent::Done(Box::new(turn)));
        }
        let text = turn.text.clone();
        self.turn = Some(turn);
        Ok(ModelEvent::Text(text))
    }
}
