//! The address that is told of every new question. What goes wrong there is no matter of the question's.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use url::Url;

use super::{Inbox, Item};
use crate::config::agent::InboxConfig;
use crate::error::innermost;
use crate::redact::Redactor;

/// How long one attempt may take.
const ATTEMPT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long to wait before each further attempt.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(8)];
/// How many requests are made at once, and how many questions may wait to be told.
const AT_ONCE_MAX: usize = 8;
const WAITING_MAX: usize = 1000;

/// Where new questions are told.
#[derive(Clone)]
pub(super) struct Webhook {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    /// The address without secrets.
    shown: String,
    /// Masks secrets in what is sent.
    redactor: Redactor,
    turns: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Webhook {
    /// The webhook of a configuration. One that cannot be used is said and left out.
    pub(super) fn of(config: &InboxConfig, redactor: Redactor) -> Option<Self> {
        let url = &config.webhook.as_ref()?.value;
        let made = headers(config).and_then(|headers| {
            let client = haft_mcp::http_client_builder().timeout(ATTEMPT_TIME_MAX).build();
            Ok((headers, client.map_err(|error| innermost(&error))?))
        });
        match made {
            Ok((headers, client)) => Some(Self {
                client,
                url: url.expose().clone(),
                headers,
                shown: url.to_string(),
                redactor,
                turns: Arc::new(Semaphore::new(AT_ONCE_MAX)),
                tasks: TaskTracker::new(),
            }),
            Err(problem) => {
                tracing::warn!("`inbox.webhook` cannot be used: {problem}");
                None
            }
        }
    }

    /// Tells of a question in the background, for as long as it is open.
    pub(super) fn tell(&self, inbox: &Inbox, item: &Item) {
        let (id, url) = (item.id.clone(), &self.shown);
        if self.tasks.len() >= WAITING_MAX {
            tracing::warn!(
                id,
                url,
                "the webhook was not told of a question: too many wait already"
            );
            return;
        }
        match serde_json::to_string(item) {
            Ok(body) => {
                let body = self.redactor.json(&body).into_owned().into_bytes();
                let (webhook, inbox) = (self.clone(), inbox.clone());
                self.tasks.spawn(async move { webhook.send(&inbox, &id, &body).await });
            }
            Err(error) => {
                tracing::warn!(id, url, %error, "the webhook was not told of a question");
            }
        }
    }

    async fn send(&self, inbox: &Inbox, id: &str, body: &[u8]) {
        let url = &self.shown;
        let Ok(_turn) = self.turns.acquire().await else { return };
        let mut pauses = PAUSES.into_iter();
        while inbox.item(id).is_some() {
            let Err(problem) = self.post(body).await else {
                tracing::debug!(id, url, "told the webhook of a question");
                return;
            };
            let Some(pause) = pauses.next() else {
                tracing::warn!(id, url, problem, "the webhook could not be told of a question");
                return;
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn post(&self, body: &[u8]) -> Result<(), String> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(body.to_vec());
        // The text of an error names the address, which may hold a secret.
        let answer = request.send().await.map_err(|error| innermost(&error.without_url()))?;
        let status = answer.status();
        if status.is_success() { Ok(()) } else { Err(format!("it answered {status}")) }
    }
}

fn headers(config: &InboxConfig) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &config.webhook_headers {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` of `webhook_headers` is no name of a header"))?;
        let mut value = HeaderValue::from_str(value.expose())
            .map_err(|_| format!("the value of `{name}` has characters that no header may have"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}
