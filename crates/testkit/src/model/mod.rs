//! A language model on loopback that answers by a script, in the formats of the real services.
//!
//! ```no_run
//! use serde_json::json;
//! use testkit::model::{ModelServer, Step};
//!
//! let server = ModelServer::openai([
//!     Step::call("add", json!({"a": 2, "b": 3})),
//!     Step::by(|asked| Step::text(format!("It is {}.", asked.last_result()))),
//! ]);
//! // A configuration that uses it, and what it received when the test is over.
//! let config = server.config();
//! assert_eq!(server.requests()[0].tool_names(), ["add"]);
//! ```
//!
//! Each request takes the next step. When the script is over, the service answers 500 with that reason.
//! The server has a thread of its own, so it serves tests without a runtime, with paused time, and
//! those that start the program.

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod request;
mod step;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use request::{AskedModel, OfferedTool, ToldResult};
pub use step::Step;
use step::{Answer, End, Kind};

/// Largest request body.
const REQUEST_BYTES_MAX: usize = 64 << 20;

/// The service. It ends when it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _stop: DropGuard,
}

/// The provider's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Chat completions, `POST /v1/chat/completions`.
    OpenAi,
    /// Messages, `POST /v1/messages`.
    Anthropic,
    /// `POST /v1beta/models/...:streamGenerateContent`.
    Gemini,
    /// `POST /api/chat`, lines of JSON.
    Ollama,
}

struct Shared {
    format: Format,
    script: Mutex<VecDeque<Step>>,
    asked: Mutex<Vec<AskedModel>>,
    calls: Mutex<usize>,
}

impl ModelServer {
    /// A service that speaks OpenAI's format.
    pub fn openai(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::start(Format::OpenAi, steps)
    }

    /// A service that speaks Anthropic's format.
    pub fn anthropic(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::start(Format::Anthropic, steps)
    }

    /// A service that speaks Gemini's format.
    pub fn gemini(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::start(Format::Gemini, steps)
    }

    /// A service that speaks Ollama's own format.
    pub fn ollama(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::start(Format::Ollama, steps)
    }

    /// A service that speaks this format.
    pub fn start(format: Format, steps: impl IntoIterator<Item = Step>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        listener.set_nonblocking(true).expect("a listener for a runtime");
        let shared = Arc::new(Shared {
            format,
            script: Mutex::new(steps.into_iter().collect()),
            asked: Mutex::default(),
            calls: Mutex::default(),
        });
        let stop = CancellationToken::new();
        let (ended, state) = (stop.clone(), Arc::clone(&shared));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                let router = Router::new().fallback(answer).with_state(state);
                // Open connections end with the runtime.
                tokio::select! {
                    () = ended.cancelled() => {}
                    served = axum::serve(listener, router).into_future() => served.expect("served"),
                }
            });
        });
        Self { address, shared, _stop: stop.drop_guard() }
    }

    /// Its base address, for `agent.base_url`.
    pub fn url(&self) -> String {
        let path = match self.shared.format {
            Format::OpenAi | Format::Anthropic => "/v1",
            Format::Gemini => "/v1beta",
            Format::Ollama => "",
        };
        format!("http://{}{path}", self.address)
    }

    /// The model's name, for `agent.model`.
    pub fn model(&self) -> &'static str {
        match self.shared.format {
            Format::OpenAi => "openai::scripted",
            Format::Anthropic => "anthropic::scripted",
            Format::Gemini => "gemini::scripted",
            Format::Ollama => "ollama::scripted",
        }
    }

    /// The `agent` section of a native YAML file that uses it. It needs no key. Settings can follow,
    /// indented by two.
    pub fn config(&self) -> String {
        format!("agent:\n  model: \"{}\"\n  base_url: {}\n", self.model(), self.url())
    }

    /// Appends steps to the script.
    pub fn then(&self, steps: impl IntoIterator<Item = Step>) {
        self.shared.script.lock().extend(steps);
    }

    /// Number of steps that are left.
    pub fn left(&self) -> usize {
        self.shared.script.lock().len()
    }

    /// All requests so far, in order.
    pub fn requests(&self) -> Vec<AskedModel> {
        self.shared.asked.lock().clone()
    }

    /// The last request. Panics where there was none.
    pub fn last_request(&self) -> AskedModel {
        self.requests().pop().expect("the model was asked")
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, REQUEST_BYTES_MAX).await.unwrap_or_default();
    let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let asked = AskedModel {
        format: shared.format,
        path: parts.uri.to_string(),
        headers: parts.headers.iter().map(header).collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    shared.asked.lock().push(asked.clone());
    let mut step = shared.script.lock().pop_front().unwrap_or_else(|| {
        Step::status(500).with_body(shared.error(500, "the script of the test is over"))
    });
    while let Kind::By(decide) = &step.0 {
        step = decide(&asked);
    }
    match step.0 {
        Kind::Answer(answer) => shared.say(&asked, &answer),
        Kind::Status { status, body, headers } => {
            let scripted = || shared.error(status, &format!("scripted {status}"));
            let body = body.unwrap_or_else(scripted);
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            let kind = if body.starts_with('<') { "text/html" } else { "application/json" };
            response.header("content-type", kind).body(Body::from(body)).expect("a response")
        }
        Kind::Body(body) => respond("application/json", Body::from(body)),
        Kind::Silence => std::future::pending().await,
        Kind::Endless { piece, pause } => {
            let pieces = stream::repeat(Bytes::from(piece)).then(move |piece| async move {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                Ok::<_, std::io::Error>(piece)
            });
            respond("text/event-stream", Body::from_stream(pieces))
        }
        Kind::By(_) => unreachable!("decided above"),
    }
}

impl Shared {
    fn say(&self, asked: &AskedModel, answer: &Answer) -> Response<Body> {
        let first_call = {
            let mut calls = self.calls.lock();
            let first = *calls;
            *calls += answer.calls.len();
            first
        };
        let model = &asked.body["model"];
        let wants_stream = match self.format {
            Format::Gemini => asked.path.contains(":streamGenerateContent"),
            Format::OpenAi | Format::Anthropic | Format::Ollama => asked.body["stream"] == true,
        };
        if !answer.streamed || !wants_stream {
            let whole = match self.format {
                Format::OpenAi => openai::whole(model, answer, first_call),
                Format::Anthropic => anthropic::whole(model, answer, first_call),
                Format::Gemini => gemini::whole(answer),
                Format::Ollama => ollama::whole(model, answer),
            };
            return respond("application/json", Body::from(whole.to_string()));
        }
        let lines = match self.format {
            Format::OpenAi => openai::stream(model, answer, first_call),
            Format::Anthropic => anthropic::stream(model, answer, first_call),
            Format::Gemini => gemini::stream(answer),
            Format::Ollama => ollama::stream(model, answer),
        };
        let said = stream::iter(lines).map(|line| Ok::<_, std::io::Error>(Bytes::from(line)));
        let body = match answer.end {
            End::Proper | End::Unmarked | End::Early => Body::from_stream(said),
            End::Silent => Body::from_stream(said.chain(stream::pending())),
            End::Lost => {
                // The text is flushed before the connection is lost, otherwise the client would not receive it.
                let lost = stream::once(async {
                    tokio::task::yield_now().await;
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    Err(std::io::Error::other("lost as scripted"))
                });
                Body::from_stream(said.chain(lost))
            }
        };
        let is_lines = self.format == Format::Ollama;
        respond(if is_lines { "application/x-ndjson" } else { "text/event-stream" }, body)
    }

    fn error(&self, status: u16, message: &str) -> String {
        match self.format {
            Format::OpenAi => openai::error(status, message).to_string(),
            Format::Anthropic => anthropic::error(status, message).to_string(),
            Format::Gemini => gemini::error(status, message).to_string(),
            Format::Ollama => ollama::error(message).to_string(),
        }
    }
}

fn respond(kind: &str, body: Body) -> Response<Body> {
    let response = Response::builder().status(StatusCode::OK).header("content-type", kind);
    response.body(body).expect("a response")
}
