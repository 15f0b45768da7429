//! `SearXNG`: a self-hosted instance, queried for JSON.

use reqwest::header::{ACCEPT, AUTHORIZATION};
use serde::Deserialize;
use serde_json::Value;

use super::answer::Found;
use super::http::{Http, Service};
use super::question::Question;
use crate::config::agent::SearchService;
use crate::error::ToolFailure;

const WHEN_REFUSED: &str = "let the instance answer in JSON: add `json` to `search.formats` in its settings.yml, which \
    by default has `html` only; where it asks for a key, set `builtin.web_search.searxng.api_key`";

#[derive(Deserialize)]
struct Answer {
    results: Vec<Page>,
    /// Pairs of an engine and its error.
    #[serde(default)]
    unresponsive_engines: Vec<Value>,
}

#[derive(Deserialize)]
struct Page {
    url: Option<String>,
    title: Option<String>,
    content: Option<String>,
    #[serde(rename = "publishedDate")]
    published: Option<String>,
}

pub(super) async fn search(
    http: &Http,
    settings: &SearchService,
    question: &Question,
) -> Result<Vec<Found>, ToolFailure> {
    let service =
        Service { name: "SearXNG", section: "searxng", settings, when_refused: WHEN_REFUSED };
    let mut address = service.address("/search");
    address.query_pairs_mut().append_pair("q", &question.query).append_pair("format", "json");
    if let Some(range) = question.time_range {
        address.query_pairs_mut().append_pair("time_range", range.word());
    }
    let mut request = http.client.get(address).header(ACCEPT, "application/json");
    if settings.api_key.is_some() {
        request = request.header(AUTHORIZATION, service.key("Bearer ")?);
    }
    let reply = http.send(service, request).await?;
    let Answer { results, unresponsive_engines } = service.json(&reply)?;
    // No engine answered, which is not the same as no results.
    if results.is_empty() && !unresponsive_engines.is_empty() {
        let engines: Vec<String> = unresponsive_engines.iter().map(described).collect();
        let cause = format!("has no results, for its engines failed: {}", engines.join(", "));
        return Err(service.unavailable(&cause, "try again later, or enable other engines in it"));
    }
    let found = results.iter().filter_map(|page| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let found = Found::new(&text(&page.title), page.url.as_deref()?, &text(&page.content))?;
        Some(found.published(page.published.as_deref()))
    });
    Ok(found.collect())
}

fn described(engine: &Value) -> String {
    let words =
        |values: &Vec<Value>| values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
    let text = engine.as_array().map_or_else(|| engine.to_string(), words);
    haft_text::printable(&text).chars().take(80).collect()
}
