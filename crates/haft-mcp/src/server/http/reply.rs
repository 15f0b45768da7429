//! The answer to a request, without a framework.

use std::num::NonZeroU16;
use std::pin::Pin;

use futures_util::Stream;
use http::{HeaderValue, StatusCode};
use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::wire;

/// The answer to a request.
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The session that was opened, for the header `Mcp-Session-Id`.
    pub session: Option<HeaderValue>,
    /// The rest.
    pub body: ReplyBody,
    /// True if the same request concerns every other replica too, whatever they answer.
    pub is_for_all: bool,
}

/// The body of an answer.
pub enum ReplyBody {
    /// None.
    Empty,
    /// One message: `application/json`.
    Json(String),
    /// The events of one request, which end by themselves: `text/event-stream`. Dropping the stream means that the
    /// client disconnected.
    Response(ReplyEvents),
    /// Notifications, for as long as the client listens: `text/event-stream`.
    Notifications(ReplyEvents),
    /// The replica of this number answers the same request, which nothing here has acted on. If it is gone, answer the
    /// request with [`Routing::Here`](super::Routing::Here).
    ForwardTo(NonZeroU16),
}

/// Events as they are written.
pub type ReplyEvents = Pin<Box<dyn Stream<Item = String> + Send>>;

impl Reply {
    pub(super) fn empty(status: StatusCode) -> Self {
        Self::new(status, ReplyBody::Empty)
    }

    pub(super) fn streamed(body: ReplyBody) -> Self {
        Self::new(StatusCode::OK, body)
    }

    fn new(status: StatusCode, body: ReplyBody) -> Self {
        Self { status, session: None, body, is_for_all: false }
    }

    pub(super) fn json(status: StatusCode, message: String) -> Self {
        Self::new(status, ReplyBody::Json(message))
    }

    pub(super) fn refusal(status: StatusCode, id: Option<&RawValue>, error: &RpcError) -> Self {
        Self::json(status, wire::error_response(id.unwrap_or(RawValue::NULL), error))
    }
}
