//! The memory that requests and responses take, until the last byte of a response has left.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{Method, Request};
use haft::memory::{Held, MemoryBudget, OverBudget, Owner, Reservation};
use hyper::body::{Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};

use super::body::{Response, ResponseBody};
use super::problem::Problem;

/// Bodies of requests up to this size are not counted while they are read.
const SMALL_REQUEST_BYTES: usize = 4 * 1024;
/// Responses, and parts of streams, up to this size are not counted.
const SMALL_RESPONSE_BYTES: usize = 64 * 1024;
/// The least that is reserved at once, so that a body in many pieces takes few steps.
const STEP_BYTES: usize = 64 * 1024;

/// The memory of one request's body. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct RequestMemory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    budget: MemoryBudget,
    caller: Arc<str>,
    held: Mutex<Option<Reservation>>,
}

impl RequestMemory {
    /// The memory of a request, unless it is small.
    pub(super) fn of<B: HttpBody>(
        request: &Request<B>,
        budget: &MemoryBudget,
        caller: &Arc<str>,
    ) -> Option<Self> {
        if request.body().is_end_stream() {
            return None;
        }
        let length = request.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if length.is_some_and(|length| length <= SMALL_REQUEST_BYTES) {
            return None;
        }
        let (budget, caller) = (budget.clone(), Arc::clone(caller));
        Some(Self(Arc::new(Shared { budget, caller, held: Mutex::default() })))
    }

    /// Makes sure that at least `bytes` are reserved.
    pub(super) fn cover(&self, bytes: usize) -> Result<(), Problem> {
        let mut held = self.held();
        let reserved = held.as_ref().map_or(0, Reservation::bytes);
        if bytes <= reserved {
            return Ok(());
        }
        let more = (bytes - reserved).max(STEP_BYTES);
        if let Some(held) = &mut *held {
            return held.grow(more).map_err(|over| busy(&over));
        }
        let owner = Owner::Caller(Some(&self.0.caller));
        *held = Some(self.0.budget.reserve(more, owner).map_err(|over| busy(&over))?);
        Ok(())
    }

    /// Gives everything back.
    pub(super) fn release(&self) {
        let held = self.held().take();
        drop(held);
    }

    /// Leaves the memory to what the request has become.
    pub(crate) fn hand_over(&self) -> Held {
        self.held().take().map(Held::from).unwrap_or_default()
    }

    fn held(&self) -> MutexGuard<'_, Option<Reservation>> {
        self.0.held.lock()
    }
}

/// 503: there is no memory for the request now; 413: there never is.
fn busy(over: &OverBudget) -> Problem {
    let detail = format!("there is no memory for the request: {over}");
    if over.is_transient() {
        Problem::busy(detail).remedy("send it again later, or send less at once")
    } else {
        let remedy = format!("send less at once, or raise `{}`", haft::memory::SETTING);
        Problem::too_large(detail).remedy(remedy)
    }
}

/// The parts of a request that its response needs.
pub(super) struct ResponseMemory {
    pub(super) budget: MemoryBudget,
    /// True if the request only reads, so that a refused response loses nothing.
    pub(super) is_safe: bool,
    pub(super) caller: Arc<str>,
}

impl ResponseMemory {
    pub(super) fn of<B>(request: &Request<B>, budget: &MemoryBudget, caller: &Arc<str>) -> Self {
        let is_safe = matches!(*request.method(), Method::GET | Method::HEAD);
        Self { budget: budget.clone(), is_safe, caller: Arc::clone(caller) }
    }

    /// Counts the response until its last byte has left.
    pub(super) fn count(self, response: Response) -> Result<Response, Problem> {
        let counting = match response.body().size_hint().exact() {
            Some(bytes) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                if bytes <= SMALL_RESPONSE_BYTES {
                    return Ok(response);
                }
                Counting::Whole(Some(self.whole(bytes)?))
            }
            None => Counting::Parts(self),
        };
        Ok(response.map(|body| Body::new(CountedBody { body, counting }).into()))
    }

    /// A call that has run is answered in any case. Its memory was reserved while it ran.
    fn whole(&self, bytes: usize) -> Result<Reservation, Problem> {
        let owner = Owner::Caller(Some(&self.caller));
        if !self.is_safe {
            return Ok(self.budget.charge(bytes, Some(owner)));
        }
        self.budget.reserve(bytes, owner).map_err(|over| busy(&over))
    }
}

/// A body whose bytes are counted until they are written. Its length stays known, so the response has a
/// `Content-Length`.
struct CountedBody {
    body: ResponseBody,
    counting: Counting,
}

enum Counting {
    /// A body of known length. Its first frame takes the reservation.
    Whole(Option<Reservation>),
    /// A stream: every long part by itself.
    Parts(ResponseMemory),
}

impl CountedBody {
    fn count(&mut self, bytes: Bytes) -> Bytes {
        match &mut self.counting {
            Counting::Whole(reservation) => match reservation.take() {
                Some(held) => counted(bytes, held),
                None => bytes,
            },
            Counting::Parts(_) if bytes.len() <= SMALL_RESPONSE_BYTES => bytes,
            Counting::Parts(memory) => {
                let owner = Owner::Caller(Some(&memory.caller));
                let held = memory.budget.charge(bytes.len(), Some(owner));
                counted(bytes, held)
            }
        }
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(|it| self.count(it)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes that give their memory back when they are written: the connection keeps them longer than their body.
fn counted(bytes: Bytes, held: Reservation) -> Bytes {
    struct Counted {
        bytes: Bytes,
        _held: Reservation,
    }
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    Bytes::from_owner(Counted { bytes, _held: held })
}
