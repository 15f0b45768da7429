//! The client of one connection.

use std::ops::Deref;
use std::sync::OnceLock;

use haft_mcp::{Client, Failure, TransportError};

/// A connected client, until its connection ends or is reported as lost.
pub(super) struct LiveClient {
    client: Client,
    /// The attempt that connected it.
    attempt: u64,
    /// The reason why a request found the connection lost. Over HTTP the client itself does not
    /// notice.
    loss: OnceLock<TransportError>,
}

impl LiveClient {
    pub(super) fn new(client: Client, attempt: u64) -> Self {
        Self { client, attempt, loss: OnceLock::new() }
    }

    pub(super) fn attempt(&self) -> u64 {
        self.attempt
    }

    /// Returns true if new requests may use it.
    pub(super) fn is_usable(&self) -> bool {
        self.loss.get().is_none() && !self.client.has_ended()
    }

    /// Withdraws it from new requests. Returns false if that was done before; the first reason counts.
    pub(super) fn withdraw(&self, loss: TransportError) -> bool {
        self.loss.set(loss).is_ok()
    }

    /// The reason of the loss.
    pub(super) fn loss(&self) -> TransportError {
        let unknown = || TransportError::after_sending(Failure::Closed, "the connection ended");
        self.client.ended().or_else(|| self.loss.get().cloned()).unwrap_or_else(unknown)
    }
}

impl Deref for LiveClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
