//! Search results, for models and programs.

use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use super::NAME;
use super::question::Question;
use crate::content::{Content, ToolOutput};
use crate::error::ToolFailure;

const TITLE_CHARS_MAX: usize = 300;
const SNIPPET_CHARS_MAX: usize = 1000;
const URL_CHARS_MAX: usize = 2000;

/// One result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Found {
    title: String,
    url: String,
    snippet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<String>,
}

impl Found {
    /// Creates a result with each text on one line; `None` if the address is not a web address.
    pub(super) fn new(title: &str, url: &str, snippet: &str) -> Option<Self> {
        let url = Url::parse(url.trim()).ok()?;
        let is_web =
            matches!(url.scheme(), "http" | "https") && url.as_str().len() <= URL_CHARS_MAX;
        let title = one_line(title, TITLE_CHARS_MAX);
        is_web.then(|| Self {
            title: if title.is_empty() { url.to_string() } else { title },
            url: url.into(),
            snippet: one_line(snippet, SNIPPET_CHARS_MAX),
            published: None,
        })
    }

    pub(super) fn published(mut self, date: Option<&str>) -> Self {
        let date = date.map(|date| one_line(date, TITLE_CHARS_MAX));
        self.published = date.filter(|date| !date.is_empty());
        self
    }
}

fn one_line(text: &str, chars_max: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

pub(super) fn answer(question: &Question, found: &[Found]) -> Result<ToolOutput, ToolFailure> {
    let output = ToolOutput::from_json(&json!({ "results": found }))
        .map_err(|error| ToolFailure::execution(format!("the answer of `{NAME}`: {error}")))?;
    let text = if found.is_empty() {
        format!(
            "No results were found for `{}`. Other or fewer words may find some.",
            question.query
        )
    } else {
        let numbered = found.iter().enumerate().map(|(at, found)| entry(at + 1, found));
        numbered.collect::<Vec<_>>().join("\n")
    };
    Ok(ToolOutput { content: vec![Content::text(text)], ..output })
}

fn entry(number: usize, found: &Found) -> String {
    let Found { title, url, snippet, published } = found;
    let date = published.as_ref().map(|date| format!(" ({date})")).unwrap_or_default();
    let snippet = if snippet.is_empty() { String::new() } else { format!("\n   {snippet}") };
    format!("{number}. {title} — {url}{date}{snippet}")
}

pub(super) fn schema() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "properties": {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { "title": text, "url": text, "snippet": text, "published": text },
                    "required": ["title", "url", "snippet"],
                },
            },
        },
        "required": ["results"],
    })
}
