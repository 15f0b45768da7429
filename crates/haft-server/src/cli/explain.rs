//! `haft explain`: every effective value and who set it.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::config::plain;
use super::{Global, print_json, tools};
use crate::terminal::{self, Paint};

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The tool's name
    #[arg(value_parser = super::parse_name)]
    tool: String,
}

pub(super) fn run(global: &Global, args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let tool = tools::find(global, &args.tool)?;
    if global.json {
        print_json(&json!({
            "tool": tool.name,
            "source": tool.source,
            "config_origin": tool.config_origin,
            "config": tool.config,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = Paint::stdout(global.color);
    let origin = json!(tool.config_origin);
    terminal::line(&format!(
        "{} ({}), configuration: {}",
        paint.bold(&tool.name),
        tools::source(&tool),
        plain(&origin)
    ));
    let rows: Vec<Vec<String>> = tool
        .config
        .iter()
        .map(|setting| vec![setting.key.to_owned(), plain(&setting.value), setting.from.clone()])
        .collect();
    terminal::table(paint, &["SETTING", "VALUE", "FROM"], &rows);
    Ok(ExitCode::SUCCESS)
}
