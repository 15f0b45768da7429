//! OAuth for remote servers: where a request's token comes from.
//!
//! Tokens, codes and verifiers never reach a log line, a `Debug` or an error text.

mod browser;
mod client_credentials;
mod error;
mod flow;
mod grant;
mod guard;
mod http;
mod interactive;
mod login;
mod loopback;
mod secret;
mod store;
mod stored;
#[cfg(test)]
mod tests;

pub use browser::Browser;
pub use client_credentials::ClientCredentials;
pub use error::AuthError;
pub use grant::Grant;
pub use interactive::Interactive;
pub use login::{ClientIdentity, Login, RegisteredClient};
pub use loopback::{Loopback, Opening, open_browser};
pub use store::TokenStore;
pub use stored::StoredTokens;

pub use futures_util::future::BoxFuture;
pub use haft_text::Secret;

/// Gives requests their token. The HTTP transports call it before each request and report refusals to it.
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

    /// The same, with the token that was refused: it may be an older one than the authorizer has now.
    fn refused_token<'a>(
        &'a self,
        _token: Option<&'a str>,
        status: u16,
        www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, AuthError>> {
        self.refused(status, www_authenticate)
    }
}
