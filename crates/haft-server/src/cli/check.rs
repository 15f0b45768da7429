//! `haft check`.

use std::process::ExitCode;

use haft::Config;
use haft::config::{ConfigError, Severity};
use serde_json::json;

use super::{EXIT_CONFIG, Global, count, load, print_json};
use crate::console::{self, Paint};

pub(super) fn run(global: &Global) -> anyhow::Result<ExitCode> {
    let loaded = load::load(global);
    if !global.json {
        let config = loaded?;
        summarize(global, &config);
        return Ok(ExitCode::SUCCESS);
    }
    match loaded {
        Ok(config) => {
            let files: Vec<_> = config
                .files
                .iter()
                .map(|(file, dialect)| json!({"file": file, "format": dialect}))
                .collect();
            print_json(&json!({
                "valid": true,
                "files": files,
                "servers": config.servers.len(),
                "tools": config.tools.len(),
                "local_tools": config.local.len(),
                "problems": config.warnings,
            }))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            let Some(ConfigError { problems }) = error.downcast_ref::<ConfigError>() else {
                return Err(error);
            };
            print_json(&json!({"valid": false, "problems": problems}))?;
            Ok(ExitCode::from(EXIT_CONFIG))
        }
    }
}

fn summarize(global: &Global, config: &Config) {
    let paint = Paint::stderr(global.color);
    for problem in config.warnings.iter().filter(|it| it.severity == Severity::Warning) {
        console::warning(paint, &problem.to_string(), &problem.remedy);
    }
    let paint = Paint::stdout(global.color);
    for (file, dialect) in &config.files {
        console::line(&format!("{file} ({dialect})"));
    }
    let parts = [
        count(config.servers.len(), "server"),
        count(config.local.len(), "local tool"),
        count(config.tools.len(), "tool setting"),
        count(config.warnings.len(), "warning"),
    ];
    console::line(&format!("{} {}", paint.good("valid:"), parts.join(", ")));
}
