//! One request to the service, and whether its answer can be used.

use haft_bounds::parse_error::describe;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::config::select::EmbeddingsConfig;
use crate::select::Direction;
use haft_config::redact::Redactor;
use haft_text::{innermost, printable};

/// Maximum size of a response: 32 vectors of 8,192 numbers of 25 characters, and some more.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Maximum number of characters shown of an error.
const SHOWN_CHARS_MAX: usize = 200;

/// Reasons why a request failed.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The service cannot be used now.
    Down(String),
    /// The service rejects these inputs: one is too long, or not permitted.
    Text(String),
}

impl From<String> for Refusal {
    fn from(problem: String) -> Self {
        Self::Down(problem)
    }
}

pub(super) struct Service {
    client: reqwest::Client,
    address: Url,
    headers: HeaderMap,
    model: String,
    /// The address without secrets.
    pub(super) shown: String,
    /// A service may repeat what it was sent.
    redactor: Redactor,
}

#[derive(Serialize)]
struct Question<'a, T> {
    model: &'a str,
    input: &'a [T],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Service {
    pub(super) fn new(config: &EmbeddingsConfig) -> Result<Self, String> {
        let client = haft_mcp::http_client_builder().timeout(config.timeout.value).build();
        let client = client.map_err(|error| cause(&error))?;
        let mut headers = HeaderMap::new();
        if let Some(key) = &config.api_key {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.value.expose()));
            let mut value =
                value.map_err(|_| "`api_key` has characters that no header may have".to_owned())?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self {
            client,
            address: address(config.url.value.expose()),
            headers,
            model: config.model.value.clone(),
            shown: config.url.value.to_string(),
            redactor: Redactor::new(config.secrets()),
        })
    }

    /// One direction for each text, in their order.
    pub(super) async fn ask<T: Serialize + Sync>(
        &self,
        texts: &[T],
    ) -> Result<Vec<Direction>, Refusal> {
        let question = Question { model: &self.model, input: texts, encoding_format: "float" };
        let question = serde_json::to_vec(&question).map_err(|error| error.to_string())?;
        let request = self.client.post(self.address.clone()).headers(self.headers.clone());
        let request = request.header(reqwest::header::CONTENT_TYPE, "application/json");
        // The text of an error names the address, which may hold a secret.
        let sent = request.body(question).send().await;
        let response = sent.map_err(|error| cause(&error.without_url()))?;
        let status = response.status();
        let body = body(response).await?;
        if !status.is_success() {
            let text = String::from_utf8_lossy(&body);
            let text: String = printable(text.trim()).chars().take(SHOWN_CHARS_MAX).collect();
            let problem = format!("it answered {status}: {}", self.redactor.text(&text));
            return Err(if is_about_the_text(status) {
                Refusal::Text(problem)
            } else {
                Refusal::Down(problem)
            });
        }
        let answer: Answer = serde_json::from_slice(&body).map_err(|error| {
            format!("its answer is not one of embeddings: {}", describe(&error))
        })?;
        Ok(in_order(answer.data, texts.len())?)
    }
}

fn is_about_the_text(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY
    )
}

/// The base address with the path of embeddings, which may be there already.
fn address(base: &Url) -> Url {
    let mut address = base.clone();
    let path = base.path().trim_end_matches('/');
    if !path.ends_with("/embeddings") {
        address.set_path(&format!("{path}/embeddings"));
    }
    address
}

fn in_order(data: Vec<Embedding>, count: usize) -> Result<Vec<Direction>, String> {
    if data.len() != count {
        return Err(format!("it gave {} vectors for {count} inputs", data.len()));
    }
    let length = data.first().map_or(0, |it| it.embedding.len());
    if data.iter().any(|it| it.embedding.len() != length) {
        return Err("its vectors do not all have one length".to_owned());
    }
    let mut places: Vec<Option<Direction>> = vec![None; count];
    for (at, Embedding { index, embedding }) in data.into_iter().enumerate() {
        let direction = Direction::new(&embedding)
            .ok_or_else(|| "one of its vectors points nowhere".to_owned())?;
        let place = places.get_mut(index.unwrap_or(at)).filter(|place| place.is_none());
        *place.ok_or_else(|| "it numbers its vectors wrongly".to_owned())? = Some(direction);
    }
    Ok(places.into_iter().flatten().collect())
}

async fn body(mut response: reqwest::Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| cause(&error.without_url()))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(format!("its answer is longer than {ANSWER_BYTES_MAX} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it did not answer in time (`select.embeddings.timeout`)".to_owned();
    }
    innermost(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_added_once() {
        for (base, path) in [
            ("http://h/v1", "/v1/embeddings"),
            ("http://h/v1/", "/v1/embeddings"),
            ("http://h/v1/embeddings", "/v1/embeddings"),
            ("http://h", "/embeddings"),
        ] {
            assert_eq!(address(&base.parse().unwrap()).path(), path);
        }
    }

    #[test]
    fn answers_are_put_in_order_or_refused() {
        let answer = |index: usize, embedding: &[f32]| Embedding {
            index: Some(index),
            embedding: embedding.to_vec(),
        };
        let sorted = in_order(vec![answer(1, &[0.0, 2.0]), answer(0, &[3.0, 0.0])], 2).unwrap();
        assert_eq!(sorted[0].numbers(), [1.0, 0.0]);
        let wrong = [
            vec![answer(0, &[1.0])],
            vec![answer(0, &[1.0]), answer(0, &[1.0])],
            vec![answer(0, &[1.0]), answer(7, &[1.0])],
            vec![answer(0, &[1.0]), answer(1, &[1.0, 2.0])],
            vec![answer(0, &[1.0]), answer(1, &[0.0])],
        ];
        for data in wrong {
            in_order(data, 2).unwrap_err();
        }
    }
}
