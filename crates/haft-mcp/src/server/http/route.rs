//! The replica that answers a request. Most requests are answered where they arrive; those about state that lives in one
//! process go to its owner.

use std::num::NonZeroU16;

use super::event_id::EventId;
use super::session::Session;
use crate::server::params::Params;
use crate::server::{state_signer, tasks};

/// Where a request may be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// At its owner: the reply may be [`ForwardTo`](super::ReplyBody::ForwardTo).
    Owner,
    /// Here, because it was forwarded already, or because its owner is gone. State that is not here is gone.
    Here,
}

impl Routing {
    pub(super) fn other_replica(
        self,
        owner: Option<NonZeroU16>,
        own: NonZeroU16,
    ) -> Option<NonZeroU16> {
        match self {
            Self::Owner => owner.filter(|owner| *owner != own),
            Self::Here => None,
        }
    }
}

/// The owner of what a legacy request is about: the home replica has the client's level and its subscriptions.
pub(super) fn owner_of_legacy(session: &Session, method: &str) -> Option<NonZeroU16> {
    match method {
        "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
            session.place.map(|place| place.home)
        }
        _ => None,
    }
}

/// The owner of what a modern request is about: a suspended request, or a task. The ids are unverified here; their owner
/// verifies them.
pub(super) fn owner_of_modern(method: &str, params: &Params<'_>) -> Option<NonZeroU16> {
    match method {
        "tasks/get" | "tasks/update" | "tasks/cancel" => {
            let id = params.subject(method).ok()??;
            tasks::named_replica(&id)
        }
        _ => state_signer::named_replica(&params.request_state()?),
    }
}

/// The owner of a stream: the replica that the last event names, otherwise the home replica.
pub(super) fn stream_owner(session: &Session, last: Option<&str>) -> Option<NonZeroU16> {
    match last.filter(|last| !last.is_empty()) {
        Some(last) => EventId::parse(last)?.replica,
        None => session.place.map(|place| place.home),
    }
}
