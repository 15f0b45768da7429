//! Lists over all replicas: the items here and those of every other live replica, within one second.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Service;
use crate::serve::{Gone, PeerRequest, Peers, is_forwarded};

/// The longest list of one replica.
const LIST_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The other replicas that a list or a stream is gathered from. None for a service on its own, and for a request that
/// another replica forwarded.
pub(super) struct Gather(pub(super) Option<(Peers, PeerRequest)>);

/// The longest answer to a notification.
const NOTIFIED_BYTES_MAX: usize = 64 * 1024;

/// One item of a list.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Listed<T> {
    /// An item of this replica.
    Own(T),
    /// An item of another replica, as it sent it.
    Other(Box<RawValue>),
}

/// The items of all replicas that answered.
pub(super) struct Gathered<T> {
    /// Sorted by their ids, which begin with the time.
    pub(super) items: Vec<Listed<T>>,
    /// The replicas that did not answer in time.
    pub(super) replicas_missing: Vec<u16>,
}

/// An item with its id.
pub(super) trait Identified {
    fn id(&self) -> &str;
}

impl FromRequestParts<Arc<Service>> for Gather {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<Service>,
    ) -> Result<Self, Infallible> {
        let peers = service.peers.clone().filter(|_| !is_forwarded(&parts.headers));
        Ok(Self(peers.map(|peers| {
            let Parts { method, uri, headers, .. } = parts;
            (peers, PeerRequest::new(method.clone(), uri, headers, Bytes::new()))
        })))
    }
}

impl Gather {
    /// Sends the request to the other replicas too, whatever they answer.
    pub(super) async fn notify(self) {
        if let Some((peers, request)) = self.0 {
            peers.gather(&request, NOTIFIED_BYTES_MAX).await;
        }
    }

    /// Adds the items of the other replicas. Their lists have the items in `field`.
    pub(super) async fn list<T: Identified>(self, field: &str, own: Vec<T>) -> Gathered<T> {
        let Some((peers, request)) = self.0 else {
            let items = own.into_iter().map(Listed::Own).collect();
            return Gathered { items, replicas_missing: Vec::new() };
        };
        let mut items: Vec<(String, Listed<T>)> =
            own.into_iter().map(|item| (item.id().to_owned(), Listed::Own(item))).collect();
        let mut replicas_missing = Vec::new();
        for (number, answer) in peers.gather(&request, LIST_BYTES_MAX).await {
            match answer.and_then(|answer| others(field, &answer)) {
                Ok(others) => items.extend(others),
                Err(Gone) => replicas_missing.push(number.get()),
            }
        }
        items.sort_by(|(one, _), (other, _)| one.cmp(other));
        replicas_missing.sort_unstable();
        Gathered { items: items.into_iter().map(|(_, item)| item).collect(), replicas_missing }
    }
}

/// The items in the list of another replica, with their ids.
fn others<T>(field: &str, list: &[u8]) -> Result<Vec<(String, Listed<T>)>, Gone> {
    let mut list: HashMap<String, Box<RawValue>> =
        serde_json::from_slice(list).map_err(|_| Gone)?;
    let items = list.remove(field).ok_or(Gone)?;
    let items: Vec<Box<RawValue>> = serde_json::from_str(items.get()).map_err(|_| Gone)?;
    items.into_iter().map(|item| Ok((id_of(&item).ok_or(Gone)?, Listed::Other(item)))).collect()
}

/// The id of an item that another replica sent.
pub(super) fn id_of(item: &RawValue) -> Option<String> {
    /// A call has the id of its execution alone; a question may have both.
    #[derive(Deserialize)]
    struct Ids {
        id: Option<String>,
        execution_id: Option<String>,
    }
    let Ids { id, execution_id } = serde_json::from_str(item.get()).ok()?;
    id.or(execution_id)
}
