//! Hearing of changes in the modern era: a request that the server answers only at the end, and
//! whose notifications arrive meanwhile.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::MutexGuard;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Client, Params};
use crate::error::{METHOD_NOT_FOUND, RequestError};
use crate::session::{RequestOptions, Session};
use crate::transport::Era;

/// The first and the longest pause before listening again.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

const LISTS: [(&str, &str, &str); 3] = [
    ("tools", "toolsListChanged", "notifications/tools/list_changed"),
    ("prompts", "promptsListChanged", "notifications/prompts/list_changed"),
    ("resources", "resourcesListChanged", "notifications/resources/list_changed"),
];

/// Listens for as long as the connection lives, if the server announces anything.
pub(super) fn start(client: &Client) {
    let announced: Vec<_> =
        LISTS.iter().filter(|(list, ..)| client.identity.announces(list)).collect();
    if announced.is_empty() {
        return;
    }
    let wanted: Vec<String> =
        announced.iter().map(|(_, flag, _)| format!(r#""{flag}":true"#)).collect();
    let params = Params::new()
        .raw("notifications", &format!("{{{}}}", wanted.join(",")))
        .json(&client.meta, None);
    let missed: Vec<_> =
        announced.iter().map(|(_, _, method)| ((*method).to_owned(), None)).collect();
    // Ends with the client, which ends the router.
    client.session.router().spawn(listen(client.session.clone(), params, missed));
}

/// Subscribes, and subscribes again when the stream ends. `missed` are the changes that may have happened meanwhile:
/// changes without a subscription are not announced.
async fn listen(session: Session, params: String, missed: Vec<(String, Option<Box<RawValue>>)>) {
    let mut pause = PAUSE_MIN;
    loop {
        let id = session.next_id();
        let began = std::time::Instant::now();
        let ended =
            session.request(id, "subscriptions/listen", &params, RequestOptions::default()).await;
        if let Err(RequestError::Rpc(error)) = &ended
            && error.code == METHOD_NOT_FOUND
        {
            return;
        }
        pause = if began.elapsed() > PAUSE_MAX { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
        tokio::time::sleep(pause).await;
        for (method, params) in &missed {
            session.router().handler().notification(method, params.as_deref());
        }
    }
}

impl Client {
    /// Subscribes to updates of a resource, sent as `notifications/resources/updated`.
    pub async fn subscribe(&self, uri: &str) -> Result<(), RequestError> {
        if self.identity.era == Era::Legacy {
            let params = Params::new().text("uri", uri);
            return self.ask("resources/subscribe", params, self.limited(None)).await.map(drop);
        }
        let wanted = json!({ "resourceSubscriptions": [uri] });
        let params = Params::new().raw("notifications", &wanted.to_string()).json(&self.meta, None);
        let missed = RawValue::from_string(json!({ "uri": uri }).to_string()).ok();
        let missed = vec![("notifications/resources/updated".to_owned(), missed)];
        let end = CancellationToken::new();
        let listening =
            end.clone().run_until_cancelled_owned(listen(self.session.clone(), params, missed));
        self.session.router().spawn(async move {
            let _ = listening.await;
        });
        let before = self.watched().insert(uri.to_owned(), end.drop_guard());
        drop(before);
        Ok(())
    }

    /// Ends the subscription to a resource.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), RequestError> {
        if self.identity.era == Era::Legacy {
            let params = Params::new().text("uri", uri);
            return self.ask("resources/unsubscribe", params, self.limited(None)).await.map(drop);
        }
        let before = self.watched().remove(uri);
        drop(before);
        Ok(())
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<String, DropGuard>> {
        self.watched.lock()
    }
}
