//! The body of a response: a single piece, or whatever the router made. A single piece needs no allocation of its own.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response as RoutedResponse;
use hyper::body::{Frame, SizeHint};

/// A response on its way to the connection.
pub type Response = axum::http::Response<ResponseBody>;

/// The body of a response.
#[derive(Debug)]
pub struct ResponseBody(Content);

#[derive(Debug)]
enum Content {
    /// One piece, until it is taken.
    Whole(Option<Bytes>),
    Routed(Body),
}

impl ResponseBody {
    /// The same as a body of the router.
    pub(crate) fn into_routed(self) -> Body {
        match self.0 {
            Content::Whole(bytes) => Body::from(bytes.unwrap_or_default()),
            Content::Routed(body) => body,
        }
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        Self(Content::Whole(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }
}

impl From<Body> for ResponseBody {
    fn from(body: Body) -> Self {
        Self(Content::Routed(body))
    }
}

/// A response of the router.
pub(crate) fn routed(response: RoutedResponse) -> Response {
    response.map(ResponseBody::from)
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.0 {
            Content::Whole(bytes) => Poll::Ready(bytes.take().map(|it| Ok(Frame::data(it)))),
            Content::Routed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Whole(bytes) => bytes.is_none(),
            Content::Routed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(bytes) => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Content::Routed(body) => body.size_hint(),
        }
    }
}
