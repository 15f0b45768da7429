//! Sets of requests with known answers, as `haft eval` reads them.

use haft::select::ToolText;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Tool {
    name: String,
    description: String,
    parameters: Value,
    server: Option<String>,
    #[serde(default)]
    examples: Vec<String>,
}

/// One request.
#[derive(Deserialize)]
pub struct Row {
    pub query: String,
    /// `tool`, `none` or `ask_human`.
    pub action: String,
    /// The right tools.
    pub gold: Value,
    /// `tune` or `judge`, where the set has two halves.
    #[serde(default)]
    pub half: String,
}

pub fn tools(text: &str) -> Vec<ToolText> {
    let tool = |tool: Tool| ToolText {
        name: tool.name,
        server: tool.server,
        title: None,
        description: tool.description,
        input_schema: tool.parameters,
        examples: tool.examples,
    };
    lines(text).into_iter().map(tool).collect()
}

pub fn rows(text: &str) -> Vec<Row> {
    lines(text)
}

fn lines<'a, T: Deserialize<'a>>(text: &'a str) -> Vec<T> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
