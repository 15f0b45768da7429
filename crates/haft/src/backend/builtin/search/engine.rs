//! The search engines.

use super::answer::Found;
use super::http::Http;
use super::pace::Pace;
use super::question::Question;
use super::{brave, duckduckgo, searxng, tavily};
use crate::config::agent::{SearchService, WebSearchConfig};
use crate::config::choices::SearchBackend;
use crate::error::ToolFailure;

/// The configured service and its address. `None` only if the configuration is invalid.
pub(super) enum Engine {
    Searxng(Option<SearchService>),
    Brave(Option<SearchService>),
    Tavily(Option<SearchService>),
    Duckduckgo(Option<SearchService>, Pace),
}

impl Engine {
    pub(super) fn of(config: &WebSearchConfig) -> Self {
        let has_key = |service: &Option<SearchService>| {
            service.as_ref().is_some_and(|service| service.api_key.is_some())
        };
        let WebSearchConfig { searxng, brave, tavily, duckduckgo, .. } = config;
        let backend = match config.backend.value {
            SearchBackend::Auto if searxng.is_some() => SearchBackend::Searxng,
            SearchBackend::Auto if has_key(brave) => SearchBackend::Brave,
            SearchBackend::Auto if has_key(tavily) => SearchBackend::Tavily,
            named => named,
        };
        match backend {
            SearchBackend::Searxng => Self::Searxng(searxng.clone()),
            SearchBackend::Brave => Self::Brave(brave.clone()),
            SearchBackend::Tavily => Self::Tavily(tavily.clone()),
            SearchBackend::Duckduckgo | SearchBackend::Auto => {
                Self::Duckduckgo(duckduckgo.clone(), Pace::default())
            }
        }
    }

    pub(super) async fn search(
        &self,
        http: &Http,
        question: &Question,
    ) -> Result<Vec<Found>, ToolFailure> {
        match self {
            Self::Searxng(Some(service)) => searxng::search(http, service, question).await,
            Self::Brave(Some(service)) => brave::search(http, service, question).await,
            Self::Tavily(Some(service)) => tavily::search(http, service, question).await,
            Self::Duckduckgo(Some(service), pace) => {
                duckduckgo::search(http, service, pace, question).await
            }
            Self::Searxng(None)
            | Self::Brave(None)
            | Self::Tavily(None)
            | Self::Duckduckgo(None, _) => Err(ToolFailure::Execution {
                message: "the address of the search service is missing".into(),
                remedy: Some("set its `url` in `builtin.web_search`".into()),
                details: serde_json::Value::Null,
            }),
        }
    }
}
