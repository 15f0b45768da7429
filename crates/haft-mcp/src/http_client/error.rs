//! Failures of a request, divided by whether the server can have acted on it.

use std::error::Error;
use std::io;
use std::time::Duration;

use hyper_util::client::legacy;

use super::gate::HeadTooLarge;

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// A failed request. No text contains the address: it may hold a secret.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address cannot be part of a request.
    #[error("the address is invalid")]
    Address(#[source] BoxError),
    /// TLS cannot be set up on this machine.
    #[error("TLS cannot be set up")]
    Tls,
    /// No connection was established; nothing was sent.
    #[error("no connection was established")]
    Connect(#[source] BoxError),
    /// Connecting exceeded its limit; nothing was sent.
    #[error("no connection was established within {0:?}")]
    ConnectTimeout(Duration),
    /// Headers or interim responses exceeded [`super::HEAD_BYTES_MAX`].
    #[error("the response head is too large")]
    HeadTooLarge(#[source] BoxError),
    /// The exchange broke off after the request was sent.
    #[error("the connection was lost")]
    Lost(#[source] BoxError),
}

/// The connector's own timeout, on its way through hyper.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no connection within {0:?}")]
pub(super) struct ConnectTimedOut(pub(super) Duration);

impl HttpError {
    pub(super) fn of_request(error: legacy::Error) -> Self {
        if error.is_connect() {
            return match find::<ConnectTimedOut>(&error) {
                Some(ConnectTimedOut(after)) => Self::ConnectTimeout(*after),
                None => Self::Connect(Box::new(error)),
            };
        }
        match find::<HeadTooLarge>(&error) {
            Some(excess) => Self::HeadTooLarge(Box::new(*excess)),
            None => Self::Lost(Box::new(error)),
        }
    }

    pub(super) fn of_body(error: hyper::Error) -> Self {
        Self::Lost(Box::new(error))
    }

    /// The message of the last cause, which is the most specific.
    pub fn root_cause(&self) -> String {
        let mut cause: &dyn Error = self;
        while let Some(source) = cause.source() {
            cause = source;
        }
        cause.to_string()
    }

    /// The first error of type `T` in the chain of causes.
    pub fn find_cause<T: Error + 'static>(&self) -> Option<&T> {
        find(self)
    }
}

fn find<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<T>() {
            return Some(found);
        }
        // An I/O error reports the source of what it wraps as its own, and skips what it wraps.
        let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => cause.source(),
        };
    }
    None
}
