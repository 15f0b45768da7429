//! Sends genai's requests with Haft's own HTTP client.
//!
//! Genai brings a reqwest client and reads error bodies, single answers and lines whole, and
//! reqwest has no limit for the size of a response. So each request has a relay: a Unix socket that
//! accepts this process only. Genai's client connects there; the relay sends the request with
//! [`HttpClient`] and passes the answer on within its limits. An answer that exceeds them closes
//! the connection, and [`Relay::take_failure`] returns the reason.

mod budget;
mod socket;

use std::io;
use std::sync::Arc;

use futures_util::stream;
use genai::Client;
use haft_mcp::{HttpClient, HttpError, HttpResponse};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, TRANSFER_ENCODING};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use url::Url;

pub(super) use self::budget::{AnswerLimits, Excess, Framing};

use self::budget::Budget;
use self::socket::Socket;

/// Number of bytes read of an error body. Services explain errors in far less.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// One exchange with a service. Dropping it closes the exchange.
pub(super) struct Relay {
    client: Client,
    exchange: Arc<Exchange>,
    _serving: AbortOnDropHandle<()>,
}

/// A failure that genai cannot see, because it happened behind the relay.
#[derive(Debug)]
pub(super) enum RelayFailure {
    /// The request failed, or its answer broke off.
    Http(HttpError),
    /// The answer exceeded a limit.
    Excess(Excess),
}

struct Exchange {
    http: HttpClient,
    /// The service's scheme, host and port. Genai's client always speaks plain HTTP to the relay.
    service: Url,
    limits: AnswerLimits,
    failure: Mutex<Option<RelayFailure>>,
}

/// Ends the connection to genai's client. The reason is in [`Exchange::failure`].
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the exchange with the service failed")]
struct Broken;

type AnswerBody = UnsyncBoxBody<Bytes, Broken>;

impl Relay {
    /// Opens a relay to `service`. The current runtime serves it.
    pub(super) fn open(http: &HttpClient, service: Url, limits: AnswerLimits) -> io::Result<Self> {
        let socket = Socket::bind()?;
        let local = haft_mcp::http_client_builder().unix_socket(socket.path());
        let local = local.build().map_err(io::Error::other)?;
        let client = Client::builder().with_reqwest(local).build().map_err(io::Error::other)?;
        let failure = Mutex::default();
        let exchange = Arc::new(Exchange { http: http.clone(), service, limits, failure });
        let serving = TaskTracker::new().spawn(serve(socket, Arc::clone(&exchange)));
        Ok(Self { client, exchange, _serving: AbortOnDropHandle::new(serving) })
    }

    /// The client that uses this relay.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The reason why the relay closed the connection.
    pub(super) fn take_failure(&self) -> Option<RelayFailure> {
        self.exchange.failure.lock().take()
    }
}

/// Serves the one connection of genai's client, and a second one if it retries.
async fn serve(socket: Socket, exchange: Arc<Exchange>) {
    while let Ok(stream) = socket.accept().await {
        let service = service_fn(|request| Arc::clone(&exchange).forward(request));
        let connection = hyper::server::conn::http1::Builder::new()
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        // An error is either genai leaving or `Broken`, which is recorded.
        let _ = connection.await;
    }
}

impl Exchange {
    async fn forward(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<AnswerBody>, Broken> {
        let (mut head, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Broken)?.to_bytes();
        let mut url = self.service.clone();
        url.set_path(head.uri.path());
        url.set_query(head.uri.query());
        remove_hop_headers(&mut head.headers);
        head.headers.remove(HOST);
        match self.http.send(head.method, &url, head.headers, body).await {
            Ok(response) => Ok(self.answer(response)),
            Err(error) => Err(self.fail(RelayFailure::Http(error))),
        }
    }

    fn answer(self: Arc<Self>, mut response: HttpResponse) -> Response<AnswerBody> {
        let status = response.status();
        let mut headers = std::mem::take(response.headers_mut());
        remove_hop_headers(&mut headers);
        let body = if status.is_success() {
            self.within_limits(response)
        } else {
            self.beginning(response)
        };
        let mut answer = Response::new(body);
        *answer.status_mut() = status;
        *answer.headers_mut() = headers;
        answer
    }

    /// The body, for as long as it keeps to the limits.
    fn within_limits(self: Arc<Self>, response: HttpResponse) -> AnswerBody {
        let budget = Budget::new(self.limits);
        let frames = stream::try_unfold(
            (self, response, budget),
            |(exchange, mut response, mut budget)| async {
                match response.chunk().await {
                    Ok(Some(chunk)) => match budget.spend(&chunk) {
                        Ok(()) => Ok(Some((Frame::data(chunk), (exchange, response, budget)))),
                        Err(excess) => Err(exchange.fail(RelayFailure::Excess(excess))),
                    },
                    Ok(None) => Ok(None),
                    Err(error) => Err(exchange.fail(RelayFailure::Http(error))),
                }
            },
        );
        StreamBody::new(frames).boxed_unsync()
    }

    /// The first [`REFUSAL_BYTES_MAX`] of a body. The status identifies the error, so the rest does
    /// not matter.
    fn beginning(self: Arc<Self>, response: HttpResponse) -> AnswerBody {
        let frames =
            stream::try_unfold((self, response, 0), |(exchange, mut response, read)| async move {
                if read >= REFUSAL_BYTES_MAX {
                    return Ok(None);
                }
                match response.chunk().await {
                    Ok(Some(mut chunk)) => {
                        chunk.truncate(REFUSAL_BYTES_MAX - read);
                        let read = read + chunk.len();
                        Ok(Some((Frame::data(chunk), (exchange, response, read))))
                    }
                    Ok(None) => Ok(None),
                    Err(error) => Err(exchange.fail(RelayFailure::Http(error))),
                }
            });
        StreamBody::new(frames).boxed_unsync()
    }

    /// Records why the exchange fails, before genai's client notices that it did.
    fn fail(&self, failure: RelayFailure) -> Broken {
        let mut known = self.failure.lock();
        known.get_or_insert(failure);
        Broken
    }
}

/// Removes what belongs to one connection only. hyper writes these itself.
fn remove_hop_headers(headers: &mut HeaderMap) {
    for name in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        headers.remove(name);
    }
}
