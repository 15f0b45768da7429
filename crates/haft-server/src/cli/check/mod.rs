//! `haft check`.

mod connect;
mod notes;
mod rules;

use std::process::ExitCode;

use clap::Args;
use haft::Config;
use haft::config::model::Origin;
use haft::config::{ConfigError, Place, Problem, Severity};
use haft_text::printable;
use serde_json::{Value, json};

use super::{EXIT_CONFIG, Global, count, load, print_json};
use crate::terminal::{self, Paint};
use notes::Note;

#[derive(Debug, Args)]
#[command(
    after_help = "Without --connect nothing is started. With it, exit code 3 means that a server could not be reached, and 4 that a tool is not configured where it must be."
)]
pub(super) struct CheckArgs {
    /// Also connect every server and register its tools; calls and writes nothing
    #[arg(long)]
    connect: bool,
}

pub(super) fn run(global: &Global, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let loaded = load::load(global).map(with_model).and_then(with_sandboxes);
    if !global.json {
        let config = loaded?;
        if args.connect {
            summarize(global, &config);
            return connect::run(global, config);
        }
        let is_wrong = rules::print(Paint::stderr(global.color), &rules::of_files(&config));
        if is_wrong {
            return Ok(ExitCode::from(EXIT_CONFIG));
        }
        summarize(global, &config);
        return Ok(ExitCode::SUCCESS);
    }
    match loaded {
        Ok(config) => {
            let mut report = report(&config);
            let code = if args.connect {
                connect::run_as_json(global, config, &mut report)?
            } else {
                add_rules(&mut report, &rules::of_files(&config))
            };
            print_json(&report)?;
            Ok(code)
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

/// Adds problems of rules to a report. Returns the exit code.
fn add_rules(report: &mut Value, problems: &[Problem]) -> ExitCode {
    if let Value::Array(all) = &mut report["problems"] {
        all.extend(problems.iter().map(|problem| json!(problem)));
    }
    if !rules::has_errors(problems) {
        return ExitCode::SUCCESS;
    }
    report["valid"] = json!(false);
    ExitCode::from(EXIT_CONFIG)
}

/// A model that could not be asked is worth a warning: everything else works without.
fn with_model(mut config: Config) -> Config {
    if let Some(model) = &config.agent.model
        && let Err(error) = haft_agent::model::open(&config.agent)
    {
        let place = match &model.origin {
            Origin::Explicit(place) | Origin::ServerDefault(_, place) => place.clone(),
            Origin::Implied(_) | Origin::Format(_) | Origin::Default => Place::whole("agent.model"),
        };
        config.warnings.push(Problem {
            severity: Severity::Warning,
            place,
            problem: error.message,
            remedy: error.remedy.unwrap_or_default().into(),
        });
    }
    config
}

/// A sandbox that this machine cannot enforce is an error: its program does not start.
fn with_sandboxes(mut config: Config) -> anyhow::Result<Config> {
    let mut problems = haft::sandbox::problems(&config);
    if problems.is_empty() {
        return Ok(config);
    }
    problems.append(&mut config.warnings);
    Err(ConfigError { problems }.into())
}

fn report(config: &Config) -> Value {
    let files: Vec<_> = config
        .files
        .iter()
        .map(|file| json!({"file": file.name, "format": file.dialect}))
        .collect();
    json!({
        "valid": true,
        "files": files,
        "servers": config.servers.len(),
        "tools": config.tools.len(),
        "local_tools": config.local.len(),
        "problems": config.warnings,
        "notes": notes::unpinned_packages(config),
    })
}

fn summarize(global: &Global, config: &Config) {
    let paint = Paint::stderr(global.color);
    for problem in config.warnings.iter().filter(|it| it.severity == Severity::Warning) {
        terminal::warning(paint, &problem.to_string(), &problem.remedy.to_string());
    }
    let paint = Paint::stdout(global.color);
    for file in &config.files {
        terminal::line(&format!("{} ({})", file.name, file.dialect));
    }
    for Note { place, text, remedy } in notes::unpinned_packages(config) {
        terminal::line(&format!("{} {place}: {}", paint.dim("note:"), printable(&text)));
        terminal::line(&format!("  {} {}", paint.good("help:"), printable(&remedy)));
    }
    let parts = [
        count(config.servers.len(), "server"),
        count(config.local.len(), "local tool"),
        count(config.tools.len(), "tool setting"),
        count(config.warnings.len(), "warning"),
    ];
    terminal::line(&format!("{} {}", paint.good("valid:"), parts.join(", ")));
}
