//! `haft tools list|show|search|call|new|cost`.

use std::process::ExitCode;

use clap::Subcommand;
use haft::registry::ToolSource;
use haft::{ServerInfo, ServerState, ToolInfo};
use haft_text::{printable, printable_json};

use super::config::plain;
use super::service::{self, Reply, Request};
use super::toolbox::{self, Purpose, Toolbox};
use super::{
    EXIT_RUNTIME, Failure, Global, block_on, call, load, print_json, select, tools_cost, tools_new,
    trusted_configuration,
};
use crate::terminal::{self, Paint};

#[derive(Debug, Subcommand)]
pub(super) enum ToolsCommand {
    /// List the tools that are offered
    List,
    /// Show one tool: description, schemas, settings
    Show {
        /// The tool's name
        #[arg(value_parser = super::parse_name)]
        name: String,
    },
    /// Rank the tools for a request in plain words (`haft select` is short for this)
    Search(select::SelectArgs),
    /// Call a tool (`haft call` is short for this)
    Call(call::CallArgs),
    /// Make a local tool: a script with type hints, and its entry in haft.yaml
    New(tools_new::NewArgs),
    /// Estimate the tokens that each tool's definition takes in a request to a model
    #[command(after_help = "Examples:
  haft tools cost                     the most expensive tools first
  haft tools cost --json

A token is taken for four bytes of JSON, which is close for English descriptions.")]
    Cost,
}

pub(super) fn run(global: &Global, command: ToolsCommand) -> anyhow::Result<ExitCode> {
    match command {
        ToolsCommand::List => list(global)?,
        ToolsCommand::Show { name } => show(global, &find(global, &name)?)?,
        ToolsCommand::Search(args) => return select::run(global, &args),
        ToolsCommand::Call(args) => return call::run(global, &args),
        ToolsCommand::New(args) => return tools_new::run(global, &args),
        ToolsCommand::Cost => return tools_cost::run(global),
    }
    Ok(ExitCode::SUCCESS)
}

/// One tool, or an error that names the nearest one.
pub(super) fn find(global: &Global, name: &str) -> anyhow::Result<ToolInfo> {
    let (tools, servers) = ask(global)?;
    let near = haft_text::nearest(name, tools.iter().map(|tool| tool.name.as_str()));
    let mut remedy = near.map_or_else(
        || "`haft tools list` shows every tool".to_owned(),
        |near| format!("did you mean `{near}`? `haft tools list` shows every tool"),
    );
    for server in servers.iter().filter(|server| toolbox::failed(server)) {
        let why = format!("; `{}` may have it and could not be asked", server.name);
        remedy.push_str(&why);
    }
    if let Some(why) = load::without_file(global) {
        remedy = format!("{remedy}; {why}");
    }
    tools.into_iter().find(|tool| tool.name == name).ok_or_else(|| {
        Failure::new(EXIT_RUNTIME, format!("no tool is named `{name}`"), remedy).into()
    })
}

/// The tools of the running service, or of a toolbox that writes nothing, and the servers they may come from.
pub(super) fn ask(global: &Global) -> anyhow::Result<(Vec<ToolInfo>, Vec<ServerInfo>)> {
    match service::ask(global, &Request::Tools)? {
        None => {}
        Some(Reply::Tools { tools, servers }) => return Ok((tools, servers)),
        Some(_) => return Err(service::unexpected()),
    }
    let config = trusted_configuration(global)?;
    block_on(async {
        let toolbox = Toolbox::open(config, Purpose::DryRun).await?;
        let ask = async |runtime: &haft::Runtime| {
            runtime.discover().await;
            Ok((with_unapproved(runtime), runtime.servers()))
        };
        toolbox.work(ask).await
    })
}

/// The tools, with those that the lock file does not approve.
pub(super) fn with_unapproved(runtime: &haft::Runtime) -> Vec<ToolInfo> {
    runtime.tools().into_iter().chain(runtime.unapproved_tools()).collect()
}

fn list(global: &Global) -> anyhow::Result<()> {
    let (tools, servers) = ask(global)?;
    if global.json {
        return print_json(&tools);
    }
    if tools.is_empty() {
        terminal::line(&format!("no tools: {}", why_none(&servers)));
        return Ok(());
    }
    let rows: Vec<Vec<String>> = tools
        .iter()
        .map(|tool| {
            let setting = |key| tool.setting(key).map(plain).unwrap_or_default();
            let first_line = tool.description.lines().next().unwrap_or_default();
            let mark = match (&tool.blocked, &tool.name_warning) {
                (Some(_), _) => " (blocked)",
                (None, Some(_)) => " (!)",
                (None, None) => "",
            };
            vec![
                format!("{}{mark}", tool.name),
                source(tool),
                setting("timeout"),
                setting("max_instances"),
                first_line.to_owned(),
            ]
        })
        .collect();
    let head = ["TOOL", "SOURCE", "TIMEOUT", "AT ONCE", "DESCRIPTION"];
    terminal::table(Paint::stdout(global.color), &head, &rows);
    Ok(())
}

/// Why there is no tool at all.
fn why_none(servers: &[ServerInfo]) -> String {
    if servers.is_empty() {
        return "add some to tools.json, or servers to the configuration".to_owned();
    }
    let reasons: Vec<String> = servers
        .iter()
        .map(|server| match (server.state, server.tools) {
            (ServerState::Disabled, _) => format!("`{}` is disabled", server.name),
            (_, Some(0)) => format!("`{}` offers none", server.name),
            (_, Some(_)) => format!("none of `{}` is offered", server.name),
            (_, None) => {
                let reason = toolbox::reason(server);
                format!("`{}` could not be asked: {}", server.name, printable(reason))
            }
        })
        .collect();
    reasons.join("; ")
}

pub(super) fn source(tool: &ToolInfo) -> String {
    match &tool.source {
        ToolSource::Local if tool.kind == haft::record::RecordSource::Builtin => {
            "builtin".to_owned()
        }
        ToolSource::Local => "local".to_owned(),
        ToolSource::Mcp { mcp_name, mcp_mode } => format!("{} ({mcp_mode})", printable(mcp_name)),
    }
}

fn show(global: &Global, tool: &ToolInfo) -> anyhow::Result<()> {
    if global.json {
        return print_json(tool);
    }
    let paint = Paint::stdout(global.color);
    terminal::line(&format!("{} ({})", paint.bold(&tool.name), source(tool)));
    if let Some(reason) = &tool.name_warning {
        terminal::line(&format!("its name may mislead: {}", printable(reason)));
    }
    if let Some(blocked) = &tool.blocked {
        let why = match blocked.approved {
            Some(_) => "its definition differs from haft.lock; this is the approved one",
            None => "it is not in haft.lock",
        };
        terminal::line(&format!("{} {why}; `haft lock diff` explains it", paint.bad("blocked:")));
    }
    if let Some(title) = &tool.title {
        terminal::line(&printable(title));
    }
    terminal::line(&haft_text::printable_block(&tool.description));
    if let Some(program) = &tool.program {
        let program = program.to_string();
        terminal::line(&format!("\n{}\n{}", paint.dim("runs"), printable_json(&program)));
    }
    let pretty = |schema| {
        let text = serde_json::to_string_pretty(schema).unwrap_or_default();
        printable_json(&text).into_owned()
    };
    terminal::line(&format!("\n{}\n{}", paint.dim("input schema"), pretty(&tool.input_schema)));
    if let Some(schema) = &tool.output_schema {
        terminal::line(&format!("\n{}\n{}", paint.dim("output schema"), pretty(schema)));
    }
    metadata(paint, tool);
    terminal::line(&format!("\n{}", paint.dim("settings")));
    for setting in &tool.config {
        terminal::line(&format!("{}: {}", setting.key, plain(&setting.value)));
    }
    Ok(())
}

/// Prints the metadata that clients receive beside name and schemas.
fn metadata(paint: Paint, tool: &ToolInfo) {
    if let Some(annotations) = tool.annotations.as_ref().filter(|it| !it.is_empty()) {
        terminal::line(&format!("\n{}", paint.dim("annotations")));
        for (key, value) in annotations.iter() {
            terminal::line(&format!("{}: {}", printable(key), printable(&plain(value))));
        }
    }
    let icons = tool.icons.as_deref().unwrap_or_default();
    if !icons.is_empty() {
        terminal::line(&format!("\n{}", paint.dim("icons")));
        for icon in icons {
            let text = serde_json::to_string(icon).unwrap_or_default();
            terminal::line(&printable_json(&text));
        }
    }
}
