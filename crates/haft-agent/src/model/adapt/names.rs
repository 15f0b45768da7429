//! Names that a provider accepts, and the way back.

use std::collections::{HashMap, HashSet};

use crate::model::provider::Provider;
use haft_text::name;

/// The names of the tools of one request.
pub(super) struct Names {
    provider: Provider,
    /// From the toolbox's name to the model's, if different.
    changed: HashMap<String, String>,
    back: HashMap<String, String>,
}

impl Names {
    pub(super) fn new<'n>(tools: impl Iterator<Item = &'n str>, provider: Provider) -> Self {
        let tools: Vec<&str> = tools.collect();
        // Names that can stay are never taken by others.
        let mut taken: HashSet<String> = tools
            .iter()
            .filter(|it| accepted(it, provider) == **it)
            .map(|it| (*it).into())
            .collect();
        let mut names = Self { provider, changed: HashMap::new(), back: HashMap::new() };
        for tool in tools {
            let simple = accepted(tool, provider);
            if simple == tool || names.changed.contains_key(tool) {
                continue;
            }
            let name = if taken.contains(&simple) {
                accepted(&name::distinct(tool), provider)
            } else {
                simple
            };
            taken.insert(name.clone());
            names.back.insert(name.clone(), tool.to_owned());
            names.changed.insert(tool.to_owned(), name);
        }
        names
    }

    pub(super) fn for_model(&self, tool: &str) -> String {
        self.changed.get(tool).cloned().unwrap_or_else(|| accepted(tool, self.provider))
    }

    pub(super) fn of_model(&self, name: &str) -> String {
        self.back.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }
}

/// Names under which genai offers a tool of the provider's own in place of ours: the provider would run it, past the
/// call path.
const ANTHROPIC_OWN: [&str; 1] = ["web_search"];
const GEMINI_OWN: [&str; 4] =
    ["googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext"];
/// Of Gemini's newer interface.
const INTERACTIONS_OWN: [&str; 8] = [
    "google_search",
    "code_execution",
    "url_context",
    "file_search",
    "computer_use",
    "google_maps",
    "mcp_server",
    "retrieval",
];

fn is_providers_own(tool: &str, provider: Provider) -> bool {
    match provider {
        Provider::OpenAi | Provider::Ollama => false,
        Provider::Anthropic => ANTHROPIC_OWN.contains(&tool),
        Provider::Gemini => GEMINI_OWN.contains(&tool),
        // Among them are services that speak any of these formats.
        Provider::Other(_) => {
            let own = [&ANTHROPIC_OWN[..], &GEMINI_OWN, &INTERACTIONS_OWN];
            own.iter().any(|names| names.contains(&tool))
        }
    }
}

/// `[A-Za-z0-9_-]{1,64}`, none of the provider's own; for Gemini it begins with a letter or `_`.
fn accepted(tool: &str, provider: Provider) -> String {
    if is_providers_own(tool, provider) {
        return format!("{tool}_tool");
    }
    let begins_well = tool.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if provider == Provider::Gemini && !begins_well {
        return name::offered(&format!("_{tool}"));
    }
    name::offered(if tool.is_empty() { "_" } else { tool })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_accepted_unique_and_found_again() {
        let tools = ["a.b", "a-b", "a b", "날씨", "2fast", "plain"];
        let names = Names::new(tools.into_iter(), Provider::Gemini);
        let offered: Vec<String> = tools.iter().map(|tool| names.for_model(tool)).collect();
        let unique: HashSet<&String> = offered.iter().collect();
        assert_eq!(unique.len(), tools.len());
        assert_eq!((offered[1].as_str(), offered[5].as_str()), ("a-b", "plain"));
        assert_eq!(offered[4], "_2fast");
        for (tool, name) in tools.iter().zip(&offered) {
            assert_eq!(names.of_model(name), **tool);
            assert!(name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
            assert!(name.len() <= 64);
        }
        assert_eq!(names.of_model("made.up"), "made.up");
        assert_eq!(Names::new(["2fast"].into_iter(), Provider::OpenAi).for_model("2fast"), "2fast");
    }

    #[test]
    fn a_tool_is_never_taken_for_the_providers_own() {
        let tools = ["web_search", "web_search_tool"];
        let names = Names::new(tools.into_iter(), Provider::Anthropic);
        let offered: Vec<String> = tools.iter().map(|tool| names.for_model(tool)).collect();
        assert_ne!(offered[0], "web_search");
        assert_eq!(offered[1], "web_search_tool");
        for (tool, name) in tools.iter().zip(&offered) {
            assert_eq!(names.of_model(name), **tool);
        }
        let search = |provider| Names::new(["web_search"].into_iter(), provider);
        assert_eq!(search(Provider::OpenAi).for_model("web_search"), "web_search");
        assert_eq!(search(Provider::Anthropic).for_model("web_search"), "web_search_tool");
        let gemini = Names::new(["codeExecution"].into_iter(), Provider::Gemini);
        assert_eq!(gemini.for_model("codeExecution"), "codeExecution_tool");
        let other = Provider::Other(genai::adapter::AdapterKind::Groq);
        let other = Names::new(["code_execution", "retrieval", "plain"].into_iter(), other);
        assert_eq!(other.for_model("code_execution"), "code_execution_tool");
        assert_eq!(
            (other.for_model("retrieval"), other.for_model("plain")),
            ("retrieval_tool".into(), "plain".into())
        );
    }
}
