//! A service of embeddings on loopback, as OpenAI and those that speak like it answer.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

/// The kind of answer.
#[derive(Debug, Clone, PartialEq)]
pub enum EmbeddingAnswer {
    /// A direction for each of its topics: a string points to those whose words it has.
    Vectors,
    /// The same with this many additional numbers: another model.
    Longer(usize),
    /// Vectors, unless one of the strings has more characters.
    Limited(usize),
    /// This status and text.
    Refusal(u16, &'static str),
    /// This body.
    Body(Value),
    /// Nothing, ever.
    Silence,
}

/// The service. Its topics are groups of words that mean the same to it.
pub struct EmbeddingServer {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    topics: Vec<Vec<&'static str>>,
    answer: Mutex<EmbeddingAnswer>,
    asked: Mutex<Vec<Asked>>,
}

/// A request it got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `Authorization`, where there was one.
    pub authorization: Option<String>,
    /// The model that was asked for.
    pub model: String,
    /// The strings to embed.
    pub input: Vec<String>,
}

impl EmbeddingServer {
    /// Starts it; it ends with the test.
    pub async fn start(topics: &[&[&'static str]]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            topics: topics.iter().map(|words| words.to_vec()).collect(),
            answer: Mutex::new(EmbeddingAnswer::Vectors),
            asked: Mutex::default(),
        });
        let router =
            Router::new().route("/v1/embeddings", post(embed)).with_state(Arc::clone(&shared));
        TaskTracker::new().spawn(axum::serve(listener, router).into_future());
        Self { address, shared }
    }

    /// Sets the answer to later requests.
    pub fn answers(&self, answer: EmbeddingAnswer) {
        *self.shared.answer.lock() = answer;
    }

    /// Returns the requests since the last call of this function.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.shared.asked.lock())
    }
}

async fn embed(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(question): Json<Value>,
) -> Response {
    let texts = question["input"].as_array().expect("a list of strings");
    let input: Vec<String> =
        texts.iter().map(|text| text.as_str().expect("a string").to_owned()).collect();
    assert_eq!(question["encoding_format"], "float");
    let authorization = headers.get("authorization").and_then(|it| it.to_str().ok());
    shared.asked.lock().push(Asked {
        authorization: authorization.map(ToOwned::to_owned),
        model: question["model"].as_str().expect("a model").to_owned(),
        input: input.clone(),
    });
    let answer = shared.answer.lock().clone();
    match answer {
        EmbeddingAnswer::Limited(chars_max)
            if input.iter().any(|text| text.chars().count() > chars_max) =>
        {
            (StatusCode::BAD_REQUEST, "too long").into_response()
        }
        EmbeddingAnswer::Vectors | EmbeddingAnswer::Longer(_) | EmbeddingAnswer::Limited(_) => {
            let more = if let EmbeddingAnswer::Longer(more) = answer { more } else { 0 };
            // Backwards: the order is in `index`.
            let data = input.iter().enumerate().rev().map(|(index, text)| {
                json!({"object": "embedding", "index": index, "embedding": shared.vector(text, more)})
            });
            let data: Vec<Value> = data.collect();
            Json(json!({"object": "list", "data": data, "model": question["model"],
                        "usage": {"prompt_tokens": 1, "total_tokens": 1}}))
            .into_response()
        }
        EmbeddingAnswer::Refusal(status, text) => {
            (StatusCode::from_u16(status).expect("a status"), text).into_response()
        }
        EmbeddingAnswer::Body(body) => Json(body).into_response(),
        EmbeddingAnswer::Silence => std::future::pending().await,
    }
}

impl Shared {
    fn vector(&self, text: &str, more: usize) -> Vec<f32> {
        let text = text.to_lowercase();
        let has = |words: &Vec<&str>| words.iter().any(|word| text.contains(word));
        let topics = self.topics.iter().map(|words| if has(words) { 1.0 } else { 0.0 });
        // What is about nothing points nowhere else.
        std::iter::once(0.1).chain(topics).chain(std::iter::repeat_n(0.0, more)).collect()
    }
}
