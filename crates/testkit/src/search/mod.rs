//! The four search services on loopback, with answers in the shape that each of them has.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use tokio_util::task::TaskTracker;

/// An answer of a `SearXNG` instance.
pub const SEARXNG: &str = include_str!("searxng.json");
/// An answer of Brave.
pub const BRAVE: &str = include_str!("brave.json");
/// An answer of Tavily.
pub const TAVILY: &str = include_str!("tavily.json");
/// The page of `DuckDuckGo` with results, an advertisement among them.
pub const DUCKDUCKGO: &str = include_str!("duckduckgo.html");
/// Its page where it found nothing.
pub const DUCKDUCKGO_NOTHING: &str = include_str!("duckduckgo_nothing.html");
/// Its page that asks whether a person is there.
pub const DUCKDUCKGO_ANOMALY: &str = include_str!("duckduckgo_anomaly.html");

const BODY_BYTES_MAX: usize = 1 << 20;

/// The kind of answer.
#[derive(Debug, Clone)]
pub enum SearchAnswer {
    /// Each service with its results, by the path that is asked for.
    Results,
    /// This status, these headers, this body.
    Page(u16, Vec<(&'static str, String)>, String),
    /// Nothing, ever.
    Silence,
}

/// The services.
pub struct SearchServer {
    /// Where they listen.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    answer: Mutex<SearchAnswer>,
    asked: Mutex<Vec<Searched>>,
}

/// A request that arrived.
#[derive(Debug, Clone)]
pub struct Searched {
    /// `GET` or `POST`.
    pub method: Method,
    /// The path.
    pub path: String,
    /// The query string.
    pub query: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: String,
}

impl Searched {
    /// A header, where it is there.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl SearchServer {
    /// Starts it; it ends with the test.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let shared =
            Arc::new(Shared { answer: Mutex::new(SearchAnswer::Results), asked: Mutex::default() });
        let router = Router::new().fallback(search).with_state(Arc::clone(&shared));
        TaskTracker::new().spawn(axum::serve(listener, router).into_future());
        Self { address, shared }
    }

    /// Sets the answer to later requests.
    pub fn answers(&self, answer: SearchAnswer) {
        *self.shared.answer.lock() = answer;
    }

    /// Answers from now on with this status and body.
    pub fn says(&self, status: u16, body: &str) {
        self.answers(SearchAnswer::Page(status, Vec::new(), body.to_owned()));
    }

    /// Returns the requests since the last call of this function.
    pub fn asked(&self) -> Vec<Searched> {
        std::mem::take(&mut *self.shared.asked.lock())
    }
}

async fn search(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, BODY_BYTES_MAX).await.expect("a body");
    let (method, path) = (parts.method, parts.uri.path().to_owned());
    shared.asked.lock().push(Searched {
        method: method.clone(),
        path: path.clone(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    });
    let answer = shared.answer.lock().clone();
    match answer {
        SearchAnswer::Results => {
            let page = match (method, path.as_str()) {
                (Method::GET, "/search") => SEARXNG,
                (Method::GET, "/res/v1/web/search") => BRAVE,
                (Method::POST, "/search") => TAVILY,
                (Method::POST, "/html/") => DUCKDUCKGO,
                _ => return StatusCode::NOT_FOUND.into_response(),
            };
            page.into_response()
        }
        SearchAnswer::Page(status, headers, body) => {
            let status = StatusCode::from_u16(status).expect("a status");
            let mut response = (status, body).into_response();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().expect("a header"));
            }
            response
        }
        SearchAnswer::Silence => std::future::pending().await,
    }
}
