//! `haft config show` and `haft config schema`.

use std::process::ExitCode;

use clap::Subcommand;
use haft::Config;
use haft::config::show;
use serde_json::Value;

use super::{Global, configuration, print_json};
use crate::terminal::{self, Paint};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Every effective value and where it came from; secrets are masked
    Show,
    /// The JSON Schema of haft.yaml, for editors
    #[command(after_help = "Example: haft config schema > haft.schema.json, then put
# yaml-language-server: $schema=haft.schema.json
into the first line of haft.yaml")]
    Schema,
}

pub(super) fn run(global: &Global, command: &ConfigCommand) -> anyhow::Result<ExitCode> {
    match command {
        ConfigCommand::Schema => print_json(&Config::json_schema())?,
        ConfigCommand::Show => {
            let rows = show::rows(&configuration(global)?);
            if global.json {
                print_json(&rows)?;
            } else {
                let cells: Vec<Vec<String>> = rows
                    .into_iter()
                    .map(|row| vec![row.path, plain(&row.value), row.from])
                    .collect();
                terminal::table(Paint::stdout(global.color), &["SETTING", "VALUE", "FROM"], &cells);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A string without its quotes, anything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}
