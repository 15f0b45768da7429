//! Requests of the workloads: a new connection for each, to the balancer or to one replica.

use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;

/// Longest wait for an answer. Longer than any fault that a request waits for.
const ANSWER_MAX: Duration = Duration::from_secs(40);

/// Where requests go, and with which key.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    client: Client,
    url: String,
    key: String,
}

/// One request.
#[derive(Debug, Default)]
pub(crate) struct Request<'a> {
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: Option<&'a Value>,
}

/// An answer with its status.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) etag: Option<String>,
    /// The revision of the registry that the replica uses.
    pub(crate) revision: Option<String>,
    pub(crate) body: Value,
}

/// The start of the run, from which all times count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunClock(Instant);

impl RunClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Duration {
        self.0.elapsed()
    }
}

impl Target {
    pub(crate) fn new(port: u16, key: &str) -> Self {
        let client = Client::builder().pool_max_idle_per_host(0).timeout(ANSWER_MAX).build();
        let client = client.expect("a client");
        Self { client, url: format!("http://127.0.0.1:{port}"), key: key.to_owned() }
    }

    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// A request of any path, with the key.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(&self.key)
    }

    /// The answer, or why there is none: the connection failed or broke.
    pub(crate) async fn send(
        &self,
        method: Method,
        request: Request<'_>,
    ) -> Result<Answer, String> {
        let mut sent = self.request(method, &format!("/api/v1{}", request.path));
        for (name, value) in request.headers {
            sent = sent.header(*name, *value);
        }
        if let Some(body) = request.body {
            sent = sent.header("content-type", "application/json").body(body.to_string());
        }
        let answer = sent.send().await.map_err(|error| chain(&error))?;
        let status = answer.status();
        let header = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let etag = header("etag").map(str::to_owned);
        let revision = header("haft-revision").map(str::to_owned);
        let text = answer.text().await.map_err(|error| chain(&error))?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Answer { status, etag, revision, body })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Answer, String> {
        self.send(Method::GET, Request { path, ..Request::default() }).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Answer, String> {
        self.send(Method::POST, Request { path, body: Some(body), ..Request::default() }).await
    }
}

/// The status of an answer, for a report.
pub(crate) fn status_of(answer: &Result<Answer, String>) -> String {
    match answer {
        Ok(answer) => answer.status.as_u16().to_string(),
        Err(_) => "no answer".to_owned(),
    }
}

/// The error with its causes.
pub(crate) fn chain(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
