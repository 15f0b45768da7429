//! The Brave Search API.

use reqwest::header::ACCEPT;
use serde::Deserialize;

use super::answer::Found;
use super::html;
use super::http::{Http, Service};
use super::question::Question;
use crate::config::agent::SearchService;
use crate::error::ToolFailure;

const WHEN_REFUSED: &str =
    "set a valid key: `BRAVE_API_KEY` in the environment, or `builtin.web_search.brave.api_key`";

#[derive(Deserialize)]
struct Answer {
    /// Always `search`; distinguishes the answer from other JSON, because an answer without results
    /// has no `web`.
    #[serde(rename = "type")]
    _kind: String,
    web: Option<Web>,
}

#[derive(Deserialize)]
struct Web {
    results: Vec<WebPage>,
}

#[derive(Deserialize)]
struct WebPage {
    title: Option<String>,
    url: Option<String>,
    description: Option<String>,
    page_age: Option<String>,
    age: Option<String>,
}

pub(super) async fn search(
    http: &Http,
    settings: &SearchService,
    question: &Question,
) -> Result<Vec<Found>, ToolFailure> {
    let service = Service { name: "Brave", section: "brave", settings, when_refused: WHEN_REFUSED };
    let key = service.key("")?;
    let mut address = service.address("/res/v1/web/search");
    let count = question.max_results.to_string();
    address.query_pairs_mut().append_pair("q", &question.query).append_pair("count", &count);
    if let Some(range) = question.time_range {
        address.query_pairs_mut().append_pair("freshness", &format!("p{}", range.letter()));
    }
    let request = http.client.get(address).header(ACCEPT, "application/json");
    let reply = http.send(service, request.header("X-Subscription-Token", key)).await?;
    let answer: Answer = service.json(&reply)?;
    let pages = answer.web.map(|web| web.results).unwrap_or_default();
    let found = pages.iter().filter_map(|page| {
        // Brave highlights the search terms.
        let text = |text: &Option<String>| html::text(text.as_deref().unwrap_or_default());
        let found = Found::new(&text(&page.title), page.url.as_deref()?, &text(&page.description))?;
        Some(found.published(page.page_age.as_deref().or(page.age.as_deref())))
    });
    Ok(found.collect())
}
