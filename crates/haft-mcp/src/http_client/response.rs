//! A response whose body is read chunk by chunk.

use std::sync::Arc;

use http::response::Parts;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper_util::rt::TokioIo;
use url::Url;

use super::HttpError;
use super::gate::{HeadGate, OpenGate};

/// A connection that changed its protocol.
pub type Upgraded = TokioIo<hyper::upgrade::Upgraded>;

/// A response. Dropping it before its body ended closes the connection.
#[derive(Debug)]
pub struct Response {
    head: Parts,
    body: Incoming,
    url: Url,
    /// Nothing once the body has ended.
    gate: Option<OpenGate>,
}

impl Response {
    pub(super) fn new(response: http::Response<Incoming>, url: Url) -> Self {
        let (mut head, body) = response.into_parts();
        let gate = head.extensions.remove::<Arc<HeadGate>>();
        // Without a body, the connection may serve the next request at once.
        let is_over = body.is_end_stream() && head.status != StatusCode::SWITCHING_PROTOCOLS;
        let gate = gate.filter(|_| !is_over).map(HeadGate::open);
        Self { head, body, url, gate }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The headers, to be taken out.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.head.headers
    }

    /// The address that was asked.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The length of the body as far as it was announced.
    pub fn content_length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next chunk of the body; nothing at its end. Cancelling it loses nothing.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            match self.body.frame().await {
                // What is not data are trailers, which nothing here uses.
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => {
                    self.gate = None;
                    return Err(HttpError::of_body(error));
                }
                None => {
                    self.gate = None;
                    return Ok(None);
                }
            }
        }
    }

    /// The connection after `101 Switching Protocols`.
    pub async fn upgrade(self) -> Result<Upgraded, HttpError> {
        let response = http::Response::from_parts(self.head, self.body);
        let upgraded = hyper::upgrade::on(response).await.map_err(HttpError::of_body)?;
        if let Some(gate) = self.gate {
            gate.keep_open();
        }
        Ok(TokioIo::new(upgraded))
    }
}
