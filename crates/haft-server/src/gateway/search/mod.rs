//! The surface `search`: three tools that find, describe and call all others, for toolboxes too large for a
//! model's context. What goes wrong is a result, so that a model can react to it.

mod offered;

use haft::config::choices::Surface;
use haft::mcp_server::{Peer, ToolRequest};
use haft::{RpcError, ToolDescription};
use haft_bounds::parse_error::describe;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::page::page;
use super::status;
use super::tools::Callers;
use super::{Gateway, INVALID_PARAMS, result, short_name};
pub(super) use offered::INSTRUCTIONS;
use offered::{CALL, DESCRIBE, FIND, LIMIT, LIMIT_MAX};

/// Largest part of a description on one line.
const LINE_CHARS_MAX: usize = 200;
/// Largest number of similar names in an error.
const NEAREST_MAX: usize = 3;
/// The longest query that is searched for.
const QUERY_BYTES_MAX: usize = 16 * 1024;

/// MCP: the client has to open an address first. Modern era: it lacks a capability. Both are for the client,
/// and no model could do anything about them.
const FOR_THE_CLIENT: [i64; 2] = [-32042, -32021];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    query: String,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Describe {
    #[serde(deserialize_with = "short_name")]
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    #[serde(deserialize_with = "short_name")]
    name: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

impl Gateway {
    /// The tools that `tools/list` shows here.
    pub(super) fn listed_tools(&self) -> Vec<ToolDescription> {
        match self.view.surface() {
            Surface::All => self.tools(Callers::Apps),
            Surface::Search => offered::tools(),
        }
    }

    pub(super) fn list_search_tools(
        &self,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, RpcError> {
        page(params, "tools", &self.listed_tools(), |tool| &tool.name)
    }

    pub(super) async fn call_search_tool(
        &self,
        tool: ToolRequest,
        peer: Peer,
    ) -> Result<Box<RawValue>, RpcError> {
        let ToolRequest { name, arguments } = tool;
        let arguments = arguments.as_deref();
        match name.as_str() {
            FIND => match understood(FIND, arguments) {
                Ok(asked) => self.find(asked).await,
                Err(problem) => failed(&problem),
            },
            DESCRIBE => match understood(DESCRIBE, arguments) {
                Ok(asked) => self.describe(asked).await,
                Err(problem) => failed(&problem),
            },
            CALL => match understood(CALL, arguments) {
                Ok(asked) => self.call(asked, peer).await,
                Err(problem) => failed(&problem),
            },
            _ => {
                let text = format!(
                    "Unknown tool: {name}; here are {FIND}, {DESCRIBE} and {CALL}, which calls the others"
                );
                Err(RpcError::new(INVALID_PARAMS, text))
            }
        }
    }

    async fn find(&self, asked: Find) -> Result<Box<RawValue>, RpcError> {
        let Find { query, limit } = asked;
        let limit = limit.unwrap_or(LIMIT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            return failed(&format!("`limit` is not between 1 and {LIMIT_MAX}"));
        }
        if query.trim().is_empty() {
            return failed("`query` is empty; describe the task in plain words");
        }
        if query.len() > QUERY_BYTES_MAX {
            return failed(&format!("`query` has more than {QUERY_BYTES_MAX} bytes; shorten it"));
        }
        self.wait_for_late().await;
        let shown = |server: Option<&str>, name: &str| self.view.shows_tool(server, name);
        let choices = self.runtime.choose_among(&query, limit, shown).await;
        let found: Vec<(String, String)> = choices
            .ranked
            .into_iter()
            .map(|it| {
                let tool = self.runtime.tool(&it.tool);
                (it.tool, tool.map(|tool| one_line(&tool.description)).unwrap_or_default())
            })
            .collect();
        let lines: Vec<String> = found
            .iter()
            .map(
                |(name, what)| {
                    if what.is_empty() { name.clone() } else { format!("{name}: {what}") }
                },
            )
            .collect();
        let text = match (lines.is_empty(), choices.fits) {
            (true, _) => "There are no tools.".to_owned(),
            (false, true) => format!(
                "Tools that fit, best first:\n{}\n\n{DESCRIBE} shows the arguments of one, {CALL} runs it.",
                lines.join("\n")
            ),
            (false, false) => format!(
                "No tool seems to fit. The nearest, in case one of them does:\n{}\n\nIf none does, try other words, or do without a tool.",
                lines.join("\n")
            ),
        };
        let tools: Vec<Value> = found
            .into_iter()
            .map(|(name, description)| json!({ "name": name, "description": description }))
            .collect();
        let missing = self.missing_servers();
        let text = match status::missing_line(&missing) {
            Some(line) => format!("{text}\n\n{line}"),
            None => text,
        };
        let mut found = json!({ "fits": choices.fits, "tools": tools });
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|server| server.name.as_str()).collect();
            found["missing_servers"] = json!(names);
        }
        told(&text, &found)
    }

    async fn describe(&self, asked: Describe) -> Result<Box<RawValue>, RpcError> {
        let find = || self.tools(Callers::Models).into_iter().find(|tool| tool.name == asked.name);
        let mut tool = find();
        if tool.is_none() {
            self.wait_for_late().await;
            tool = find();
        }
        let Some(tool) = tool else { return failed(&self.no_such_tool(&asked.name)) };
        match serde_json::to_value(&tool) {
            Ok(tool) => told(&format!("{tool:#}"), &tool),
            Err(error) => failed(&error.to_string()),
        }
    }

    async fn call(&self, asked: Call, peer: Peer) -> Result<Box<RawValue>, RpcError> {
        let Call { name, arguments } = asked;
        match self.run(name.clone(), arguments.map(Into::into), peer, Callers::Models).await {
            Ok(answer) => Ok(answer),
            Err(error) if FOR_THE_CLIENT.contains(&error.code) => Err(error),
            Err(error) if self.has(&name) => failed(&format!("`{name}` failed: {}", error.message)),
            Err(_) => failed(&self.no_such_tool(&name)),
        }
    }

    /// The same for a hidden tool, so that its existence is not revealed.
    fn no_such_tool(&self, name: &str) -> String {
        let tools = self.tools(Callers::Models);
        let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let mut near = Vec::new();
        while near.len() < NEAREST_MAX
            && let Some(nearest) = haft_text::nearest(name, names.iter().copied())
        {
            near.push(format!("`{nearest}`"));
            names.retain(|name| *name != nearest);
        }
        let hint =
            if near.is_empty() { String::new() } else { format!(" Near: {}.", near.join(", ")) };
        format!("There is no tool `{name}`.{hint} {FIND} finds tools by what they do.")
    }
}

/// The arguments of one of the three tools; otherwise an error for the model.
fn understood<T: DeserializeOwned>(tool: &str, arguments: Option<&RawValue>) -> Result<T, String> {
    serde_json::from_str(arguments.map_or("{}", RawValue::get)).map_err(|error| {
        let problem = describe(&error);
        // A model does not count the columns of what it sent.
        let problem = problem.split(" at line ").next().unwrap_or_default();
        format!("the arguments of `{tool}` are invalid: {problem}")
    })
}

fn told(text: &str, structured: &Value) -> Result<Box<RawValue>, RpcError> {
    let content = json!([{ "type": "text", "text": text }]);
    result(&json!({ "content": content, "structuredContent": structured, "isError": false }))
}

fn failed(text: &str) -> Result<Box<RawValue>, RpcError> {
    result(&json!({ "content": [{ "type": "text", "text": text }], "isError": true }))
}

fn one_line(description: &str) -> String {
    let line = description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}
