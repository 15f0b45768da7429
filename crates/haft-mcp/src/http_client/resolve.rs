//! Name lookup: the system's, or one that filters the addresses.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use hyper_util::client::legacy::connect::dns::Name;
use tower::Service;

use super::error::BoxError;

/// A lookup in flight.
pub(crate) type Resolving =
    Pin<Box<dyn Future<Output = Result<vec::IntoIter<SocketAddr>, BoxError>> + Send>>;

/// Finds the addresses of a host. Connections are made to these and no others.
pub(crate) trait Resolve: Send + Sync + 'static {
    fn resolve(&self, host: &str) -> Resolving;
}

/// The system's lookup.
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> Resolving {
        let host = host.to_owned();
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            Ok(found.into_iter())
        })
    }
}

/// A lookup as the connector takes it.
#[derive(Clone)]
pub(super) struct Resolver(pub(super) Arc<dyn Resolve>);

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Resolving;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Resolving {
        self.0.resolve(name.as_str())
    }
}
