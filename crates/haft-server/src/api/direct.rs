//! The endpoints that every call of a tool takes, answered without the router.

use std::sync::Arc;

use super::{Service, calls, revision};
use crate::gateway::Mount;
use crate::serve::{DirectEndpoints, DirectRequest, Problem, Response};

/// `POST /mcp` and `POST /api/v1/tools/{name}/call`.
pub struct DirectCalls {
    service: Arc<Service>,
    gateway: Option<Mount>,
}

impl DirectCalls {
    pub(super) fn new(service: Arc<Service>, gateway: Option<Mount>) -> Self {
        Self { service, gateway }
    }

    /// As [`call`](Self::call), with the revision that the client has seen.
    async fn call_at_revision(&self, request: DirectRequest) -> Result<Response, Problem> {
        let live = &self.service.live;
        revision::wait(live, &request.headers).await;
        let mut response = self.call(request).await?;
        revision::stamp(live, response.headers_mut());
        Ok(response)
    }

    async fn call(&self, request: DirectRequest) -> Result<Response, Problem> {
        match &self.gateway {
            Some(gateway) if Mount::answers(request.uri.path()) => gateway.post(request).await,
            Some(_) | None => calls::call_direct(&self.service, request).await,
        }
    }
}

impl DirectEndpoints for DirectCalls {
    fn answers(&self, path: &str) -> bool {
        (self.gateway.is_some() && Mount::answers(path)) || calls::direct_tool(path).is_some()
    }

    async fn answer(&self, request: DirectRequest) -> Result<Response, Problem> {
        if self.service.peers.is_none() {
            return self.call(request).await;
        }
        // Boxed: a service without replicas must not carry this future with every request.
        Box::pin(self.call_at_revision(request)).await
    }
}
