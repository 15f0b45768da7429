//! `subscriptions/listen`: a request that lasts as long as the client's subscription.

use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::dispatch::{Answer, RESOURCES_MAX, RawRequest, URI_BYTES_MAX, read};
use super::peer::Peer;
use super::tasks::missing_extension;
use super::{Change, Service, Subscription, change};
use crate::error::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use crate::extension::TASKS_EXTENSION;
use crate::wire;

/// The subscribed notifications.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    #[serde(default, skip_serializing_if = "is_false")]
    tools_list_changed: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    prompts_list_changed: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    resources_list_changed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Deserialize)]
struct Params {
    notifications: Filter,
}

#[derive(Deserialize)]
struct TaskParams {
    notifications: TaskFilter,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskFilter {
    #[serde(default)]
    task_ids: Option<IgnoredAny>,
}

impl Filter {
    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools_list_changed,
            Change::Prompts => self.prompts_list_changed,
            Change::Resources => self.resources_list_changed,
            Change::Resource(uri) => self.resource_subscriptions.iter().any(|it| **it == **uri),
            Change::Log(_) => false,
        }
    }
}

/// Sends notifications until the sender is closed, or the client drops the request.
pub(super) async fn listen(service: Arc<dyn Service>, raw: RawRequest<'_>, peer: Peer) -> Answer {
    let Params { notifications: mut filter } = read(raw.params)?;
    let TaskParams { notifications } = read(raw.params)?;
    // States of tasks are polled here; none is acknowledged.
    if notifications.task_ids.is_some() && !peer.has_extension(TASKS_EXTENSION) {
        return Err(missing_extension());
    }
    let uris = &filter.resource_subscriptions;
    if uris.len() > RESOURCES_MAX || uris.iter().any(|uri| uri.len() > URI_BYTES_MAX) {
        let text = format!(
            "Invalid params: a request watches at most {RESOURCES_MAX} resources, with URIs of at most \
             {URI_BYTES_MAX} bytes"
        );
        return Err(RpcError::new(INVALID_PARAMS, text));
    }
    let mut changes = service.changes();
    let _subscriptions = subscribe(&service, &mut filter, &peer).await;
    let out = peer.notifications.out();
    let id = raw.id.get();
    let meta: Box<RawValue> = RawValue::from_string(id.to_owned())
        .map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))?;
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": meta });
    let accepted = json!({ "_meta": meta, "notifications": filter });
    let accepted =
        wire::notification("notifications/subscriptions/acknowledged", &accepted.to_string());
    let mut is_open = out.send(accepted).await.is_ok();
    while is_open && let Some(changes_seen) = change::next(&mut changes).await {
        for change in changes_seen.iter().filter(|change| filter.wants(change)) {
            let message = wire::notification(change.method(), &change.params(Some(id)));
            is_open &= out.send(message).await.is_ok();
        }
    }
    to_raw_value(&json!({ "_meta": meta }))
        .map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))
}

/// Watches the resources that the client names. Unknown ones are left out of the accepted list.
async fn subscribe(
    service: &Arc<dyn Service>,
    filter: &mut Filter,
    peer: &Peer,
) -> Vec<Subscription> {
    let mut subscriptions = Vec::new();
    let mut accepted = Vec::new();
    for uri in std::mem::take(&mut filter.resource_subscriptions) {
        if let Ok(subscription) = Arc::clone(service).subscribe(uri.clone(), peer.clone()).await {
            subscriptions.push(subscription);
            accepted.push(uri);
        }
    }
    filter.resource_subscriptions = accepted;
    subscriptions
}
