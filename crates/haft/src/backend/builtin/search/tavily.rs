//! The Tavily API.

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::json;

use super::answer::Found;
use super::http::{Http, Service};
use super::question::Question;
use crate::config::agent::SearchService;
use crate::error::ToolFailure;

const WHEN_REFUSED: &str =
    "set a valid key: `TAVILY_API_KEY` in the environment, or `builtin.web_search.tavily.api_key`";

#[derive(Deserialize)]
struct Answer {
    results: Vec<Page>,
}

#[derive(Deserialize)]
struct Page {
    title: Option<String>,
    url: Option<String>,
    content: Option<String>,
    published_date: Option<String>,
}

pub(super) async fn search(
    http: &Http,
    settings: &SearchService,
    question: &Question,
) -> Result<Vec<Found>, ToolFailure> {
    let service =
        Service { name: "Tavily", section: "tavily", settings, when_refused: WHEN_REFUSED };
    let key = service.key("Bearer ")?;
    let mut body = json!({
        "query": question.query,
        "max_results": question.max_results,
        "search_depth": "basic",
        "include_answer": false,
    });
    if let Some(range) = question.time_range {
        body["time_range"] = json!(range.word());
    }
    let request = http.client.post(service.address("/search")).header(AUTHORIZATION, key);
    let request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
    let reply = http.send(service, request).await?;
    // The plan's quota or the pay-as-you-go limit is exhausted.
    if matches!(reply.status.as_u16(), 432 | 433) {
        return Err(service.limited(reply.status, None));
    }
    let Answer { results } = service.json(&reply)?;
    let found = results.iter().filter_map(|page| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let found = Found::new(&text(&page.title), page.url.as_deref()?, &text(&page.content))?;
        Some(found.published(page.published_date.as_deref()))
    });
    Ok(found.collect())
}
