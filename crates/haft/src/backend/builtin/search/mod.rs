//! `web_search`: queries the configured search service, and never invents a result.

mod answer;
mod brave;
mod cache;
mod duckduckgo;
mod engine;
mod html;
mod http;
mod pace;
mod question;
mod searxng;
mod tavily;

use std::sync::{Arc, OnceLock};

use serde_json::json;

use self::answer::Found;
use self::cache::Cache;
use self::engine::Engine;
use self::http::Http;
use self::question::Question;
use super::example_lines;
use crate::config::agent::WebSearchConfig;
use crate::content::ToolOutput;
use crate::error::ToolFailure;
use crate::policy::Admitted;
use crate::tool::{BoxFuture, Tool, ToolDefinition};
use haft_config::tool_metadata::ToolAnnotations;

/// The tool's name.
pub const NAME: &str = "web_search";

const DESCRIPTION: &str = "Searches the web and returns titles, addresses and short excerpts of the pages found. Use it \
    for what is recent or changes: news, prices, weather, releases, opening hours, people and companies today, and for \
    facts that need a source. Not for general knowledge, definitions, translations or mathematics, and not for reading \
    a page whose address is known.";

/// Example requests.
pub(super) const EXAMPLES: &str = include_str!("../../../../assets/examples/web_search.txt");

/// `web_search`.
pub struct SearchTool {
    engine: Engine,
    config: WebSearchConfig,
    cache: Cache,
    /// Created on first use.
    http: OnceLock<Result<Http, String>>,
}

impl SearchTool {
    /// Creates a tool that queries the configured service. Nothing connects before the first call.
    pub fn new(config: &WebSearchConfig) -> Self {
        Self {
            engine: Engine::of(config),
            config: config.clone(),
            cache: Cache::new(config.cache.value),
            http: OnceLock::new(),
        }
    }

    async fn run(&self, arguments: &str) -> Result<ToolOutput, ToolFailure> {
        let question = Question::read(arguments)?;
        let found = match self.cache.get(&question) {
            Some(found) => found,
            None => self.ask(question.clone()).await?,
        };
        answer::answer(&question, &found)
    }

    async fn ask(&self, question: Question) -> Result<Arc<Vec<Found>>, ToolFailure> {
        let http = self.http.get_or_init(|| Http::new(&self.config)).as_ref().map_err(|cause| {
            ToolFailure::Unavailable {
                message: format!("the web cannot be searched: {cause}"),
                remedy: None,
                details: json!({}),
            }
        })?;
        let found = self.engine.search(http, &question).await;
        let mut found = found.map_err(|failure| failure.without_secrets(http.redactor()))?;
        found.truncate(question.max_results);
        let found = Arc::new(found);
        self.cache.put(question, Arc::clone(&found));
        Ok(found)
    }
}

/// The tool's definition.
pub(super) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: NAME.into(),
        title: Some("Search the web".into()),
        description: DESCRIPTION.into(),
        input_schema: question::schema(),
        output_schema: Some(answer::schema()),
        annotations: Some(ToolAnnotations::new().read_only(true).open_world(true)),
        icons: None,
    }
}

impl Tool for SearchTool {
    fn definition(&self) -> ToolDefinition {
        definition()
    }

    fn examples(&self) -> Vec<String> {
        example_lines(EXAMPLES)
    }

    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(self.run(call.arguments().raw().get()))
    }
}
