//! `haft check --connect`: does every server answer, and is every tool configured?

use std::process::ExitCode;

use haft::config::Problem;
use haft::registry::{Level, Record};
use haft::{Config, ServerInfo, ServerState};
use haft_text::printable;
use serde_json::{Value, json};

use super::rules;
use crate::cli::toolbox::{self, Purpose, Toolbox};
use crate::cli::trust::Trusted;
use crate::cli::{EXIT_CONFIG, EXIT_CONNECT, EXIT_STRICT, Global, block_on, count};
use crate::terminal::{self, Paint};

/// The result of connecting and registering.
struct Report {
    servers: Vec<ServerInfo>,
    /// Errors and warnings of the registration.
    problems: Vec<Record>,
    /// Problems of the rules with the tools.
    rules: Vec<Problem>,
}

pub(super) fn run(global: &Global, config: Config) -> anyhow::Result<ExitCode> {
    let report = connect(global, config)?;
    let paint = Paint::stdout(global.color);
    for server in &report.servers {
        print(paint, server);
    }
    for problem in &report.problems {
        problem.emit();
    }
    rules::print(Paint::stderr(global.color), &report.rules);
    Ok(report.exit_code())
}

/// Adds what came of it to `checked`.
pub(super) fn run_as_json(
    global: &Global,
    config: Config,
    checked: &mut Value,
) -> anyhow::Result<ExitCode> {
    let report = connect(global, config)?;
    let server = |server: &ServerInfo| {
        let is_failed = toolbox::failed(server);
        let mut shown = json!(server);
        shown["ok"] = json!(!is_failed);
        shown["remedy"] = json!(is_failed.then(|| toolbox::remedy_and_more(server)));
        shown
    };
    let record = |record: &Record| json!({"level": word(record.level), "text": record.text});
    checked["connections"] = report.servers.iter().map(server).collect();
    super::add_rules(checked, &report.rules);
    checked["registration"] = report.problems.iter().map(record).collect();
    Ok(report.exit_code())
}

fn connect(global: &Global, config: Config) -> anyhow::Result<Report> {
    let config = Trusted::require(global, config)?;
    block_on(async {
        let toolbox = Toolbox::open(config, Purpose::Inspect).await?;
        let look = async |runtime: &haft::Runtime| {
            let is_problem = |record: &Record| match record.level {
                Level::Warning | Level::Error => true,
                Level::Debug | Level::Info => false,
            };
            let problems = runtime.registration().into_iter().filter(is_problem).collect();
            let rules = rules::of_tools(&runtime.config(), &runtime.tools());
            Ok(Report { servers: runtime.servers(), problems, rules })
        };
        toolbox.work(look).await
    })
}

impl Report {
    fn exit_code(&self) -> ExitCode {
        if self.servers.iter().any(toolbox::failed) {
            return ExitCode::from(EXIT_CONNECT);
        }
        if rules::has_errors(&self.rules) {
            return ExitCode::from(EXIT_CONFIG);
        }
        let is_refused = self.problems.iter().any(|problem| problem.level == Level::Error);
        if is_refused { ExitCode::from(EXIT_STRICT) } else { ExitCode::SUCCESS }
    }
}

fn print(paint: Paint, server: &ServerInfo) {
    let name = paint.bold(&server.name);
    if toolbox::failed(server) {
        let reason = printable(toolbox::reason(server)).into_owned();
        terminal::line(&format!("{name}: {} {reason}", paint.bad("failed:")));
        let remedy = toolbox::remedy_and_more(server);
        terminal::line(&format!("  {} {}", paint.good("help:"), printable(&remedy)));
        return;
    }
    if server.state == ServerState::Disabled {
        terminal::line(&format!("{name}: {}", paint.dim("disabled")));
        return;
    }
    let has = [
        count(server.tools.unwrap_or_default(), "tool"),
        count(server.prompts.unwrap_or_default(), "prompt"),
    ];
    let gap = server.reason.as_deref().map(|reason| format!(", but {}", printable(reason)));
    let has = format!("{}{}", has.join(", "), gap.unwrap_or_default());
    terminal::line(&format!("{name}: {} {has}", paint.good("ok,")));
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Debug => "DEBUG",
        Level::Info => "INFO",
        Level::Warning => "WARNING",
        Level::Error => "ERROR",
    }
}
