//! `haft tools cost`: how many tokens the definition of each tool takes in every request to a model.

use std::process::ExitCode;

use haft::ToolInfo;
use serde_json::json;

use super::{Global, print_json, tools};
use crate::terminal::{self, Paint};

/// Bytes of a token, as models split English text and JSON on average.
const BYTES_PER_TOKEN: usize = 4;

pub(super) fn run(global: &Global) -> anyhow::Result<ExitCode> {
    let (tools, _) = tools::ask(global)?;
    let mut costs: Vec<(usize, &ToolInfo)> = tools.iter().map(|it| (tokens(it), it)).collect();
    costs.sort_by(|(more, one), (less, other)| {
        less.cmp(more).then_with(|| one.name.cmp(&other.name))
    });
    let total: usize = costs.iter().map(|(tokens, _)| tokens).sum();
    if global.json {
        let tools: Vec<_> = costs
            .iter()
            .map(|(tokens, tool)| {
                json!({"tool": tool.name, "server": tool.source.server(), "tokens": tokens})
            })
            .collect();
        print_json(&json!({"tools": tools, "total": total}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = costs
        .iter()
        .map(|(tokens, tool)| vec![tool.name.clone(), tokens.to_string(), tools::source(tool)])
        .collect();
    if !rows.is_empty() {
        terminal::table(Paint::stdout(global.color), &["TOOL", "TOKENS", "SOURCE"], &rows);
    }
    terminal::line(&format!("about {total} tokens in every request that offers all of them"));
    Ok(ExitCode::SUCCESS)
}

/// The size of the definition that a model is sent.
fn tokens(tool: &ToolInfo) -> usize {
    let sent = json!({
        "name": tool.name, "description": tool.description, "parameters": tool.input_schema,
    });
    sent.to_string().len().div_ceil(BYTES_PER_TOKEN)
}
