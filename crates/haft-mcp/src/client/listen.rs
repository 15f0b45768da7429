//! Hearing of changes in the modern era: a request that the server answers only at the end, and
//! whose notifications arrive meanwhile.

use std::time::Duration;

use super::{Client, Params};
use crate::error::{METHOD_NOT_FOUND, RequestError};
use crate::session::RequestOptions;

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
    // Ends with the client, which ends the inbox.
    let session = client.session.clone();
    client.session.inbox().spawn(async move {
        let mut pause = PAUSE_MIN;
        loop {
            let id = session.next_id();
            let began = std::time::Instant::now();
            let ended = session
                .request(id, "subscriptions/listen", &params, RequestOptions::default())
                .await;
            if let Err(RequestError::Rpc(error)) = &ended
                && error.code == METHOD_NOT_FOUND
            {
                return;
            }
            pause =
                if began.elapsed() > PAUSE_MAX { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
            tokio::time::sleep(pause).await;
            // Whatever changed while nobody listened was not announced.
            for (_, _, notification) in &announced {
                session.inbox().handler().notification(notification, None);
            }
        }
    });
}
