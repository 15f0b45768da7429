//! What is left of the webhook in a build without an HTTP client: nobody is told.

use super::{Inbox, Item};
use crate::config::agent::InboxConfig;
use crate::redact::Redactor;

/// Never made.
pub(super) enum Webhook {}

impl Webhook {
    pub(super) fn of(config: &InboxConfig, _: Redactor) -> Option<Self> {
        if config.webhook.is_some() {
            tracing::warn!(
                "`inbox.webhook` has no effect: this build of Haft has no HTTP client (feature `mcp`)"
            );
        }
        None
    }

    pub(super) fn tell(&self, _: &Inbox, _: &Item) {
        match *self {}
    }
}
