//! Helpers for the tests of the configuration.

use std::path::PathBuf;

use haft::config::model::{Endpoint, RemoteEndpoint, ServerConfig, StdioEndpoint};
use haft::config::show::{Row, rows};
use haft::config::{Config, ConfigError, LoadOptions, Masked, Secret, Severity};
use serde_json::Value;
use testkit::Workspace;

/// Loads files of a workspace with exactly these variables.
pub fn load(
    workspace: &Workspace,
    files: &[&str],
    environment: &[(&str, &str)],
) -> Result<Config, ConfigError> {
    Config::load(&options(workspace, files, environment))
}

pub fn options(
    workspace: &Workspace,
    files: &[&str],
    environment: &[(&str, &str)],
) -> LoadOptions<'static> {
    LoadOptions {
        files: files.iter().map(PathBuf::from).collect(),
        environment: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        cwd: workspace.path().to_path_buf(),
        ..LoadOptions::default()
    }
}

/// Loads one native file.
pub fn native(text: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    load(&Workspace::with(&[("haft.yaml", text)]), &["haft.yaml"], environment)
}

/// A native server with these lines in its entry.
pub fn server(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {}\n", line.trim_start())).collect();
    format!("servers:\n  one:\n{lines}")
}

pub fn stdio(server: &ServerConfig) -> &StdioEndpoint {
    match &server.endpoint {
        Endpoint::Stdio(stdio) => stdio,
        other => panic!("{other:?} is not stdio"),
    }
}

pub fn remote(server: &ServerConfig) -> &RemoteEndpoint {
    match &server.endpoint {
        Endpoint::Http(remote) | Endpoint::Sse(remote) | Endpoint::Websocket(remote) => remote,
        Endpoint::Stdio(_) => panic!("stdio is not remote"),
    }
}

/// The variables a server gets, values exposed.
pub fn env(server: &ServerConfig) -> Vec<(&str, Option<&str>)> {
    let variables = stdio(server).env.iter();
    variables.map(|(name, value)| (name.as_str(), value.as_ref().map(Secret::expose))).collect()
}

pub fn args(server: &ServerConfig) -> Vec<&str> {
    stdio(server).args.iter().map(Masked::expose).collect()
}

/// The effective value at a path, as shown.
pub fn value(config: &Config, path: &str) -> Value {
    row(config, path).value
}

pub fn row(config: &Config, path: &str) -> Row {
    let found = rows(config).into_iter().find(|row| row.path == path);
    found.unwrap_or_else(|| panic!("no row `{path}`"))
}

/// Every error with its remedy, one a line.
pub fn errors(result: Result<Config, ConfigError>) -> String {
    let error = result.expect_err("the configuration is refused");
    let lines = error.problems.iter().filter(|it| it.severity == Severity::Error);
    lines.map(|it| format!("{it}\n  help: {}\n", it.remedy)).collect()
}

/// Every warning with its remedy, one a line.
pub fn warnings(config: &Config) -> String {
    let lines = config.warnings.iter();
    lines.map(|it| format!("{it}\n  help: {}\n", it.remedy)).collect()
}
