//! OAuth for remote servers: where a request's token comes from.
//!
//! Tokens, codes and verifiers never reach a log line, a `Debug` or an error text.

use std::pin::Pin;

mod error;

pub use error::AuthError;

/// A future that can be named, so that the traits here work as trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Gives requests their token. The HTTP transports ask it before each request and tell it what was
/// refused.
pub trait Authorizer: Send + Sync + 'static {
    /// The bearer token for the next request, refreshed if it is about to expire; None = send
    /// none.
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, AuthError>>;

    /// The server refused (401, or 403 with `insufficient_scope`).
    ///
    /// `Ok(true)`: a new token is there, send again (at most a bounded number of times).
    /// `Ok(false)`: nothing can be done here; the caller reports `auth_required`.
    fn refused<'a>(
        &'a self,
        status: u16,
        www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, AuthError>>;
}
