//! Servers elsewhere, reached over HTTP or WebSocket.

use super::connection::Connection;
use crate::config::model::RemoteEndpoint;
use haft_mcp::*;
use std::sync::Arc;

pub(super) struct NotYet;
impl Connector for NotYet {
    fn open(&self, _: Inbox) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
        Box::pin(async { Err(TransportError::unsent(Failure::Tls, "not yet")) })
    }
}
pub(super) fn http(_: &Connection, _: &RemoteEndpoint) -> NotYet {
    NotYet
}
pub(super) fn sse(_: &Connection, _: &RemoteEndpoint) -> NotYet {
    NotYet
}
pub(super) fn websocket(_: &Connection, _: &RemoteEndpoint) -> NotYet {
    NotYet
}
