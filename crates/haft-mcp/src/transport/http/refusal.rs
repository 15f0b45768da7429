//! The meaning of an unsuccessful response for its request.

use haft_bounds::json::{Budget, NODES_MAX};

use super::Shared;
use crate::error::{Failure, RpcError, TransportError};
use crate::http_client::Response;
use crate::transport::Outgoing;
use crate::wire::{self, Incoming};

/// The code with which servers of the legacy era report an unknown session.
const SESSION_NOT_FOUND: i64 = -32001;

impl Shared {
    /// Ends the exchange of `message`: with the server's own error if it sent one, otherwise with the status.
    pub(super) async fn refused(
        &self,
        message: &Outgoing,
        response: Response,
    ) -> Result<(), TransportError> {
        let refusal = self.endpoint.refusal(response).await;
        let status = refusal.status.as_u16();
        // These concern the caller or the current load, regardless of the body.
        let is_plain = matches!(status, 401 | 403 | 429 | 503);
        let error = if is_plain { None } else { rpc_error(&refusal.body) };
        let (is_ours, error) = match error {
            Some((id, error)) => (id.is_some() && id == message.awaited(), Some(error)),
            None => (false, None),
        };
        let had_session = self.has_session() && message.method != "initialize";
        let is_expired = match (is_ours, &error) {
            (true, Some(error)) => status == 404 && names_lost_session(error),
            (_, error) => is_expiry(status, error.as_ref()),
        };
        if had_session && is_expired {
            let shown = &self.endpoint.shown;
            return Err(TransportError::unsent(
                Failure::SessionExpired,
                format!("`{shown}` does not know the session any more"),
            ));
        }
        match (message.awaited(), error) {
            (Some(id), Some(error)) if is_ours || refusal.status.is_client_error() => {
                self.router.fail(id, error);
                Ok(())
            }
            _ => Err(self.endpoint.refused(&refusal)),
        }
    }
}

/// Returns true if a refusal means that the session is gone: 404 by the specification; some servers send 400 and a
/// message.
fn is_expiry(status: u16, error: Option<&RpcError>) -> bool {
    status == 404 || (status == 400 && error.is_some_and(mentions_session))
}

/// Returns true if an error that answers the request itself reports a lost session. Others with 404 (an unknown
/// method, a missing resource) are the answer.
fn names_lost_session(error: &RpcError) -> bool {
    error.code == SESSION_NOT_FOUND || mentions_session(error)
}

fn mentions_session(error: &RpcError) -> bool {
    error.message.to_ascii_lowercase().contains("session")
}

/// The error in the body of a refusal, and for which request it is.
pub(crate) fn rpc_error(body: &[u8]) -> Option<(Option<u64>, RpcError)> {
    /// An error has no reason to nest.
    const BUDGET: Budget = Budget { nodes_max: NODES_MAX, depth_max: 32 };
    match wire::parse(body, BUDGET) {
        Ok(Incoming::Error { id, error }) => {
            let id = id.and_then(|id| id.get().parse().ok());
            Some((id, serde_json::from_str(error.get()).ok()?))
        }
        Ok(Incoming::Request { .. } | Incoming::Notification { .. } | Incoming::Result { .. })
        | Err(_) => None,
    }
}
