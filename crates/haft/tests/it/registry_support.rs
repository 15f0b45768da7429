//! Helpers for the tests of registration: short forms to write a configuration and to read a
//! result.

use std::path::PathBuf;
use std::sync::Arc;

use haft::ToolDefinition;
use haft::config::model::CompiledSchemas;
use haft::config::{Config, ConfigError, LoadOptions};
use haft::registry::{
    Discovered, KnownTools, Level, LocalDiscovery, Record, RegisteredTool, Registration,
    ToolSource, register,
};
use serde_json::json;

/// A toolbox file with these `tools` and `mcps`, each in YAML's short form.
pub fn toolbox(tools: &str, mcps: &[String]) -> Config {
    let mcps = mcps.join(", ");
    load(&format!("myai: {{toolbox: {{tools: [{tools}], mcps: [{mcps}]}}}}"))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Loads a toolbox file.
pub fn load(text: &str) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().expect("a folder for the file");
    std::fs::write(folder.path().join("toolbox.yaml"), text).expect("the file is written");
    Config::load(&LoadOptions {
        files: vec![PathBuf::from("toolbox.yaml")],
        cwd: folder.path().to_path_buf(),
        ..LoadOptions::default()
    })
}

/// A native file.
pub fn native(text: &str) -> Config {
    Config::from_yaml(text).unwrap_or_else(|error| panic!("{error}"))
}

/// An entry of `mcps`.
pub fn strict(name: &str) -> String {
    format!("{{name: {name}, url: 'http://{name}/mcp', transport: streamable_http, mode: strict}}")
}

/// An entry of `mcps` with its `default_tool_config`.
pub fn dynamic(name: &str, default: &str) -> String {
    format!(
        "{{name: {name}, url: 'http://{name}/mcp', transport: streamable_http, mode: dynamic, \
         default_tool_config: {default}}}"
    )
}

pub fn definition(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        title: None,
        description: format!("What {name} does."),
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: None,
        icons: None,
    }
}

/// A Rust function: a local tool without its own settings.
pub fn function(name: &str) -> LocalDiscovery {
    LocalDiscovery {
        definition: definition(name).into(),
        settings: None,
        schemas: CompiledSchemas::default(),
    }
}

/// The discovered functions, then servers with the names of their tools.
pub fn found(functions: &[&str], servers: &[(&str, &[&str])]) -> Discovered {
    Discovered {
        local: functions.iter().map(|name| function(name)).collect(),
        servers: servers
            .iter()
            .map(|(server, tools)| {
                let tools = tools.iter().map(|name| definition(name)).collect();
                ((*server).to_owned(), tools)
            })
            .collect(),
    }
}

/// Registers what servers have, without a memory of earlier runs.
pub fn first_run(config: &Config, servers: &[(&str, &[&str])]) -> Registration {
    register(config, &found(&[], servers), None)
}

/// Registers what servers have, with the memory of an earlier run.
pub fn next_run(config: &Config, servers: &[(&str, &[&str])], known: &KnownTools) -> Registration {
    register(config, &found(&[], servers), Some(known))
}

/// The records as the plain log shows them.
pub fn log(registration: &Registration) -> Vec<String> {
    let line = |record: &Record| {
        let level = match record.level {
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
        };
        format!("{level}: {}", record.text)
    };
    registration.records.iter().map(line).collect()
}

/// The records of this level or a worse one.
pub fn log_from(level: &str, registration: &Registration) -> Vec<String> {
    let rank = |line: &str| {
        ["DEBUG", "INFO", "WARNING", "ERROR"].iter().position(|level| line.starts_with(level))
    };
    let mut lines = log(registration);
    lines.retain(|line| rank(line) >= rank(level));
    lines
}

/// One line per tool: `name (own name) of source: settings, origin`.
pub fn offered(registration: &Registration) -> Vec<String> {
    let line = |tool: &Arc<RegisteredTool>| {
        let source = match &tool.source {
            ToolSource::Local => "local".to_owned(),
            ToolSource::Mcp { mcp_name, mcp_mode } => format!("{mcp_mode} {mcp_name}"),
        };
        let own = if tool.definition.name == tool.name {
            String::new()
        } else {
            format!(" ({})", tool.definition.name)
        };
        let settings = &tool.effective;
        format!(
            "{}{own} of {source}: {} at once, {:?}, {:?}",
            tool.name, settings.max_instances.value, settings.timeout.value, settings.origin
        )
    };
    registration.tools.iter().map(line).collect()
}

/// The names under which tools are offered, each with its server's.
pub fn names(registration: &Registration) -> Vec<(String, String)> {
    let tools = registration.tools.iter();
    tools.map(|tool| (tool.name.clone(), source(tool))).collect()
}

/// Each tool's server with the name that server gives it.
pub fn own_names(registration: &Registration) -> Vec<(String, String)> {
    let tools = registration.tools.iter();
    tools.map(|tool| (source(tool), tool.definition.name.clone())).collect()
}

fn source(tool: &RegisteredTool) -> String {
    match &tool.source {
        ToolSource::Local => "local".to_owned(),
        ToolSource::Mcp { mcp_name, .. } => mcp_name.clone(),
    }
}

/// For comparing with the borrowed form of what [`names`] gives.
pub fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, source)| ((*name).to_owned(), (*source).to_owned())).collect()
}
