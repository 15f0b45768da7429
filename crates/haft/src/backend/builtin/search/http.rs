//! Requests to a search service and their errors.

use haft_bounds::parse_error::describe;
use std::time::Duration;

use reqwest::header::{HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::json;
use url::Url;

use crate::config::agent::{SearchService, WebSearchConfig};
use crate::error::ToolFailure;
use haft_config::redact::Redactor;
use haft_text::{human, innermost, printable};

/// Maximum number of bytes read of an answer.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Maximum number of characters shown of a service's error.
const SHOWN_CHARS_MAX: usize = 200;

pub(super) struct Http {
    pub(super) client: Client,
    limit: Duration,
    redactor: Redactor,
}

/// A service, for messages.
#[derive(Clone, Copy)]
pub(super) struct Service<'a> {
    /// Its display name.
    pub(super) name: &'static str,
    /// Its key in `builtin.web_search`.
    pub(super) section: &'static str,
    pub(super) settings: &'a SearchService,
    /// The remedy if the service refuses access.
    pub(super) when_refused: &'static str,
}

/// A response with any status.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
    retry_after: Option<String>,
    location: Option<String>,
}

impl Http {
    pub(super) fn new(config: &WebSearchConfig) -> Result<Self, String> {
        let limit = config.request_timeout.value;
        let client = haft_mcp::http_client_builder().timeout(limit).build();
        let WebSearchConfig { searxng, brave, tavily, duckduckgo, .. } = config;
        let services = [searxng, brave, tavily, duckduckgo].into_iter().flatten();
        let secrets = services.flat_map(|service| {
            let key = service.api_key.iter().map(|key| key.value.expose().to_owned());
            service.url.value.secrets().into_iter().chain(key)
        });
        Ok(Self {
            client: client.map_err(|error| innermost(&error))?,
            limit,
            redactor: Redactor::new(secrets),
        })
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Sends a request and reads the response up to the limit.
    pub(super) async fn send(
        &self,
        service: Service<'_>,
        request: RequestBuilder,
    ) -> Result<Reply, ToolFailure> {
        let mut response = request.send().await.map_err(|error| self.lost(service, error))?;
        let header =
            |name| response.headers().get(name).and_then(|it: &HeaderValue| it.to_str().ok());
        let (retry_after, location) = (header(RETRY_AFTER), header(LOCATION));
        let (retry_after, location) =
            (retry_after.map(ToOwned::to_owned), location.map(ToOwned::to_owned));
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.lost(service, error))? {
            if body.len() + chunk.len() > BODY_BYTES_MAX {
                return Err(
                    service.unreadable(&format!("it is longer than {BODY_BYTES_MAX} bytes"))
                );
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Reply { status: response.status(), body, retry_after, location })
    }

    fn lost(&self, service: Service<'_>, error: reqwest::Error) -> ToolFailure {
        if error.is_timeout() {
            let cause = format!("gave no answer within {}", human(self.limit));
            let remedy = "try again later, or raise `builtin.web_search.request_timeout`";
            return service.unavailable(&cause, remedy);
        }
        // The error text contains the address, which may hold a secret.
        let cause = innermost(&error.without_url());
        let remedy = format!(
            "check the network and `builtin.web_search.{}.url` (now {})",
            service.section, service.settings.url.value
        );
        service.unavailable(&format!("cannot be reached: {cause}"), &remedy)
    }
}

impl Service<'_> {
    /// The address of `path` below the configured one, unless that already includes it.
    pub(super) fn address(&self, path: &str) -> Url {
        let mut address = self.settings.url.value.expose().clone();
        let base = address.path().trim_end_matches('/').to_owned();
        if !base.ends_with(path.trim_end_matches('/')) {
            address.set_path(&format!("{base}{path}"));
        }
        address
    }

    /// The key as a header value, after a prefix such as `Bearer `.
    pub(super) fn key(&self, word: &str) -> Result<HeaderValue, ToolFailure> {
        let Some(key) = &self.settings.api_key else {
            return Err(self.unavailable("was not asked, for it needs a key", self.when_refused));
        };
        let mut value =
            HeaderValue::from_str(&format!("{word}{}", key.value.expose())).map_err(|_| {
                self.unavailable(
                    "was not asked: its key cannot stand in a header",
                    self.when_refused,
                )
            })?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Parses a successful response as JSON.
    pub(super) fn json<T: DeserializeOwned>(&self, reply: &Reply) -> Result<T, ToolFailure> {
        self.accepted(reply)?;
        serde_json::from_slice(&reply.body).map_err(|error| self.unreadable(&describe(&error)))
    }

    /// Fails unless the status is a success.
    pub(super) fn accepted(&self, reply: &Reply) -> Result<(), ToolFailure> {
        let status = reply.status;
        let settings = format!("builtin.web_search.{}", self.section);
        match status.as_u16() {
            200 => Ok(()),
            401 | 403 => {
                Err(self.unavailable(&format!("refused the search ({status})"), self.when_refused))
            }
            429 => Err(self.limited(status, reply.retry_after.as_deref())),
            300..=399 => {
                let to = reply.location.as_deref().map(printable).unwrap_or_default();
                let cause = format!("is not there: it sends to `{to}` ({status})");
                Err(self.unavailable(&cause, &format!("set `{settings}.url` to where it is")))
            }
            404 | 405 => {
                let cause = format!("does not know the way it was asked ({status})");
                Err(self.unavailable(&cause, &format!("correct `{settings}.url`")))
            }
            500.. => {
                let cause = format!("has a problem of its own: {}", self.said(reply));
                Err(self.unavailable(&cause, "try again later, or set another backend"))
            }
            _ => {
                let cause = format!("did not take the search: {}", self.said(reply));
                Err(self.unavailable(&cause, self.when_refused))
            }
        }
    }

    /// The rate limit is reached.
    pub(super) fn limited(&self, status: StatusCode, retry_after: Option<&str>) -> ToolFailure {
        let when = match retry_after.map(str::trim) {
            Some(seconds) if seconds.parse::<u32>().is_ok() => format!("in {seconds}s"),
            Some(date) if jiff::fmt::rfc2822::parse(date).is_ok() => format!("after {date}"),
            Some(_) | None => "later".to_owned(),
        };
        let cause = format!("allows no more searches for now ({status})");
        let remedy = format!(
            "try again {when}, or configure another service: `builtin.web_search.searxng.url`, `BRAVE_API_KEY` or \
             `TAVILY_API_KEY`"
        );
        self.unavailable(&cause, &remedy)
    }

    /// The response is unreadable.
    pub(super) fn unreadable(&self, cause: &str) -> ToolFailure {
        ToolFailure::Execution {
            message: format!(
                "{} answered with something that is not a list of results: {cause}",
                self.name
            ),
            remedy: Some(format!(
                "check that `builtin.web_search.{}.url` names such a service, or set another backend",
                self.section
            ).into()),
            details: json!({ "backend": self.section }),
        }
    }

    pub(super) fn unavailable(&self, cause: &str, remedy: &str) -> ToolFailure {
        ToolFailure::Unavailable {
            message: format!("{} {cause}", self.name),
            remedy: Some(remedy.into()),
            details: json!({ "backend": self.section }),
        }
    }

    /// The error text of a service, truncated. Its key is masked first, because a truncated key
    /// would not be recognized.
    fn said(&self, reply: &Reply) -> String {
        let text = String::from_utf8_lossy(&reply.body);
        let key = self.settings.api_key.iter().map(|key| key.value.expose().to_owned());
        let text = Redactor::new(key).text(text.trim()).into_owned();
        let text: String = printable(&text).chars().take(SHOWN_CHARS_MAX).collect();
        if text.is_empty() { reply.status.to_string() } else { format!("{}: {text}", reply.status) }
    }
}
