//! A request that a scripted model got, and what tests look for in it, whatever the format.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Format;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct AskedModel {
    pub(super) format: Format,
    /// The path, with what follows `?`.
    pub path: String,
    /// Its headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body; null if it was not JSON.
    pub body: Value,
}

/// A tool that the model was offered.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// Its name as the model sees it.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The schema of its arguments.
    pub schema: Value,
    /// True if the service is to hold the model to the schema.
    pub strict: bool,
}

/// The result of a call, as the model received it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToldResult {
    /// The call; empty where the format has no ids.
    pub call_id: String,
    /// All its strings, joined by line ends.
    pub text: String,
    /// The whole content of the message.
    pub content: Value,
    /// True if it is marked as a failure; false in formats without such a mark.
    pub is_error: bool,
}

impl AskedModel {
    /// The messages, as the format has them. OpenAI's and Ollama's begin with the system's.
    pub fn messages(&self) -> &[Value] {
        let key = if self.format == Format::Gemini { "contents" } else { "messages" };
        self.body[key].as_array().map_or(&[], Vec::as_slice)
    }

    /// The system prompt.
    pub fn system(&self) -> Option<String> {
        match self.format {
            Format::OpenAi | Format::Ollama => {
                let first = self.messages().first()?;
                (first["role"] == "system").then(|| text_of(&first["content"]))
            }
            Format::Anthropic => Some(&self.body["system"]).filter(|it| !it.is_null()).map(text_of),
            Format::Gemini => {
                let parts = &self.body["systemInstruction"]["parts"];
                Some(parts).filter(|it| !it.is_null()).map(text_of)
            }
        }
    }

    /// The tools it was offered, in order. Each has a schema: one without is the provider's own, and would be run
    /// there.
    pub fn tools(&self) -> Vec<OfferedTool> {
        let tools = match self.format {
            Format::Gemini => &self.body["tools"][0]["functionDeclarations"],
            Format::OpenAi | Format::Anthropic | Format::Ollama => &self.body["tools"],
        };
        let tools = tools.as_array().map_or(&[][..], Vec::as_slice);
        let tool = |it: &Value| {
            let (it, schema) = match self.format {
                Format::OpenAi | Format::Ollama => (&it["function"], "parameters"),
                Format::Anthropic => (it, "input_schema"),
                Format::Gemini => (it, "parametersJsonSchema"),
            };
            assert!(it[schema].is_object(), "a tool of the provider's own: {it}");
            OfferedTool {
                name: it["name"].as_str().unwrap_or_default().to_owned(),
                description: it["description"].as_str().unwrap_or_default().to_owned(),
                schema: it[schema].clone(),
                strict: it["strict"] == true,
            }
        };
        tools.iter().map(tool).collect()
    }

    /// The names of the tools it was offered, in order.
    pub fn tool_names(&self) -> Vec<String> {
        self.tools().into_iter().map(|tool| tool.name).collect()
    }

    /// The results of all calls so far, in order.
    pub fn results(&self) -> Vec<ToldResult> {
        let messages = self.messages().iter();
        match self.format {
            Format::OpenAi | Format::Ollama => {
                let told = messages.filter(|it| it["role"] == "tool");
                told.map(|it| ToldResult::new(&it["tool_call_id"], &it["content"], false)).collect()
            }
            Format::Anthropic => {
                let blocks = messages.filter_map(|it| it["content"].as_array()).flatten();
                let told = blocks.filter(|it| it["type"] == "tool_result");
                told.map(|it| {
                    ToldResult::new(&it["tool_use_id"], &it["content"], it["is_error"] == true)
                })
                .collect()
            }
            Format::Gemini => {
                let parts = messages.filter_map(|it| it["parts"].as_array()).flatten();
                let told = parts.map(|it| &it["functionResponse"]).filter(|it| !it.is_null());
                told.map(|it| ToldResult::new(&it["id"], &it["response"]["content"], false))
                    .collect()
            }
        }
    }

    /// The text of the last result; empty where there is none.
    pub fn last_result(&self) -> String {
        self.results().pop().map(|result| result.text).unwrap_or_default()
    }

    /// The text of the last message of a person; empty where there is none.
    pub fn last_user_text(&self) -> String {
        let said = self.messages().iter().rev().filter(|it| it["role"] == "user");
        let content = if self.format == Format::Gemini { "parts" } else { "content" };
        said.map(|it| text_of(&it[content])).find(|text| !text.is_empty()).unwrap_or_default()
    }
}

impl ToldResult {
    fn new(call_id: &Value, content: &Value, is_error: bool) -> Self {
        Self {
            call_id: call_id.as_str().unwrap_or_default().to_owned(),
            text: text_of(content),
            content: content.clone(),
            is_error,
        }
    }
}

/// The text of a message's content, which is a string or a list of blocks.
fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}
