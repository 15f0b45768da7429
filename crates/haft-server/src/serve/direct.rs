//! Endpoints that are answered without the router. Every call of a tool takes one of them, and the router costs
//! about as much as the rest of such a request.

use axum::http::{HeaderMap, Uri};

use super::access::Caller;
use super::activity::RequestBody;
use super::body::Response;
use super::memory::RequestMemory;
use super::problem::Problem;

/// Endpoints for POST requests of callers of tools. [`CheckedService`](super::CheckedService) makes its checks before
/// them, as before the router.
pub trait DirectEndpoints: Send + Sync + 'static {
    /// Returns true if a POST to this path is answered here.
    fn answers(&self, path: &str) -> bool;

    /// Answers a POST.
    fn answer(
        &self,
        request: DirectRequest,
    ) -> impl Future<Output = Result<Response, Problem>> + Send;
}

/// A request that was let in.
#[derive(Debug)]
pub struct DirectRequest {
    /// Its address.
    pub uri: Uri,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, to be read within limits.
    pub body: RequestBody,
    /// The sender.
    pub caller: Caller,
    /// The memory of its body, unless it is small.
    pub(crate) memory: Option<RequestMemory>,
}

/// No such endpoints: the router answers everything.
#[derive(Debug, Clone, Copy)]
pub struct RouterOnly;

impl DirectEndpoints for RouterOnly {
    fn answers(&self, _: &str) -> bool {
        false
    }

    async fn answer(&self, _: DirectRequest) -> Result<Response, Problem> {
        Err(Problem::internal())
    }
}
