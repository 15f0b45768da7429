//! The collector: one request, and what its answer means.

use std::time::Duration;

use haft::config::service::TelemetryConfig;
use haft_text::innermost;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};
use uuid::Uuid;

use super::TracesError;
use super::otlp::{self, Sender};
use super::span::Span;

/// Time limit of one request.
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(10);

/// Largest part of an answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The longest wait a collector may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct Collector {
    client: reqwest::Client,
    address: Url,
    /// The address without secrets, for log lines.
    pub(super) shown: String,
    headers: HeaderMap,
    sender: Sender,
}

/// Why a collector did not take spans.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) problem: String,
    pub(super) again: Again,
}

/// The retry decision after a failed request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// It would be refused again.
    Never,
    /// Later, and not before this time has passed.
    After(Duration),
}

impl Collector {
    /// Nothing where none is configured.
    pub(super) fn new(config: &TelemetryConfig) -> Result<Option<Self>, TracesError> {
        let Some(endpoint) = &config.otlp_endpoint else { return Ok(None) };
        let client = haft::http_client_builder()
            .timeout(REQUEST_WAIT_MAX)
            .build()
            .map_err(TracesError::Client)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, secret) in &config.otlp_headers {
            let broken = || TracesError::Header { name: name.clone() };
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| broken())?;
            let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| broken())?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let sender = Sender {
            service_name: config.service_name.value.clone(),
            instance_id: Uuid::now_v7().to_string(),
        };
        let address = traces_address(endpoint.value.expose());
        let shown = endpoint.value.to_string();
        Ok(Some(Self { client, address, shown, headers, sender }))
    }

    /// Sends spans. Answers how many of them the collector did not want, and why.
    pub(super) async fn send(&self, spans: &[Span]) -> Result<Option<(u64, String)>, Refusal> {
        let request = self.client.post(self.address.clone()).headers(self.headers.clone());
        let sent = request.body(otlp::request(&self.sender, spans)).send().await;
        // The text of the error names the address, which may hold a secret.
        let response = sent.map_err(|error| Refusal {
            problem: innermost(&error.without_url()),
            again: Again::After(Duration::ZERO),
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(otlp::rejected(&body(response).await));
        }
        let wait = retry_after(&response);
        let again = match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Again::After(wait),
            _ => Again::Never,
        };
        Err(Refusal { problem: format!("it answered {status}"), again })
    }
}

/// The base address with the path of traces, which may be there already.
fn traces_address(endpoint: &Url) -> Url {
    let mut address = endpoint.clone();
    let path = endpoint.path().trim_end_matches('/');
    if !path.ends_with("/v1/traces") {
        address.set_path(&format!("{path}/v1/traces"));
    }
    address
}

fn retry_after(response: &Response) -> Duration {
    let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let secs = header.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    Duration::from_secs(secs).min(RETRY_AFTER_MAX)
}

/// The beginning of the answer; all of it, for a collector in its right mind.
async fn body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_BYTES_MAX {
            return Vec::new();
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_traces_is_added_once() {
        for (endpoint, expected) in [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
            ("https://o.example/otlp/?key=1", "https://o.example/otlp/v1/traces?key=1"),
            ("https://o.example/v1/traces", "https://o.example/v1/traces"),
        ] {
            let endpoint = Url::parse(endpoint).unwrap();
            assert_eq!(traces_address(&endpoint).as_str(), expected);
        }
    }
}
