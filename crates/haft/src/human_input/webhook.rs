//! The webhook that is notified of every new question. Its failures do not affect the question.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use url::Url;

use super::{HumanInbox, InboxItem};
use crate::config::agent::InboxConfig;
use haft_config::redact::Redactor;
use haft_text::innermost;

/// Time limit of one attempt.
const ATTEMPT_TIME_MAX: Duration = Duration::from_secs(10);
/// Delays before further attempts.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(8)];
/// Maximum number of concurrent requests and of queued questions.
const AT_ONCE_MAX: usize = 8;
const WAITING_MAX: usize = 1000;

/// The webhook for new questions.
#[derive(Clone)]
pub(super) struct Webhook {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    /// The address with secrets masked.
    shown: String,
    /// Masks secrets in the payload.
    redactor: Redactor,
    turns: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Webhook {
    /// Creates the webhook of a configuration. An unusable one is logged and ignored.
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

    /// Notifies the webhook of a question in the background, while the question is open.
    pub(super) fn notify(&self, inbox: &HumanInbox, item: &InboxItem) {
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

    async fn send(&self, inbox: &HumanInbox, id: &str, body: &[u8]) {
        let url = &self.shown;
        let Ok(_turn) = self.turns.acquire().await else { return };
        let mut pauses = PAUSES.into_iter();
        while inbox.item(id).is_some() {
            let Err(problem) = self.post(body).await else {
                tracing::debug!(id, url, "told the webhook of a question");
                return;
            };
            let Some(pause) = pauses.next() else {
                tracing::warn!(id, url, problem, "the webhook could not be notified of a question");
                return;
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn post(&self, body: &[u8]) -> Result<(), String> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(body.to_vec());
        // The error text contains the address, which may hold a secret.
        let answer = request.send().await.map_err(|error| innermost(&error.without_url()))?;
        let status = answer.status();
        if status.is_success() { Ok(()) } else { Err(format!("it answered {status}")) }
    }
}

fn headers(config: &InboxConfig) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &config.webhook_headers {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` of `webhook_headers` is not a header name"))?;
        let mut value = HeaderValue::from_str(value.expose())
            .map_err(|_| format!("the value of `{name}` has characters that no header may have"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}
