//! The identity behind a request, as the program that admitted the client knows it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

/// The identity behind a request, and the end of its permission.
#[derive(Debug, Clone)]
pub struct Principal {
    /// Sessions and suspended requests belong to the principal of this name.
    pub name: Arc<str>,
    /// Cancelled when the permission ends. Sessions and suspended requests of the principal end with it.
    pub revoked: Option<Arc<CancellationToken>>,
    /// The role of the principal, as the program that admitted it names it.
    pub role: Option<&'static str>,
}

impl Principal {
    /// A principal whose permission does not end.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), revoked: None, role: None }
    }

    /// Sets the role, which [`Peer::role`](super::Peer::role) returns.
    #[must_use]
    pub fn with_role(mut self, role: &'static str) -> Self {
        self.role = Some(role);
        self
    }

    /// Ends the permission with `revoked`.
    #[must_use]
    pub fn until(mut self, revoked: Arc<CancellationToken>) -> Self {
        self.revoked = Some(revoked);
        self
    }
}

/// Waits until `revoked` is cancelled: forever without one.
pub(super) async fn revocation(revoked: Option<&CancellationToken>) {
    match revoked {
        Some(revoked) => revoked.cancelled().await,
        None => std::future::pending().await,
    }
}
