//! Configuration from Rust: the same model and the same checks as a file.

use haft::config::show::rows;
use haft::config::{Config, ConfigError};
use haft::{ConfigBuilder, ServerBuilder};

/// Every value and its path, without the places in a file.
fn shown(config: &Config) -> Vec<(String, String)> {
    rows(config).into_iter().map(|row| (row.path, row.value.to_string())).collect()
}

fn problems(error: &ConfigError) -> Vec<String> {
    error.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn a_built_configuration_equals_one_from_a_file() {
    let time = ServerBuilder::command("uvx")
        .args(["mcp-server-time"])
        .env("TZ", "UTC")
        .set("start", "lazy")
        .set("reconnect.attempts", 3);
    let remote = ServerBuilder::url("https://example.com/mcp")
        .header("Authorization", "Bearer t0ken")
        .set("mode", "dynamic");
    let built = ConfigBuilder::new()
        .folder("/var/lib/agent")
        .set("defaults.max_concurrent", 20)
        .set("agent.model", "openai::gpt-5")
        .server("time", time)
        .server("remote", remote)
        .tool("get_current_time", [("timeout", "5s"), ("approval", "ask")])
        .build()
        .unwrap();
    let file = Config::from_yaml(
        "
log: {dir: /var/lib/agent/logs}
state_dir: /var/lib/agent/state
defaults: {max_concurrent: 20}
agent: {model: 'openai::gpt-5'}
servers:
  time:
    command: uvx
    args: [mcp-server-time]
    env: {TZ: UTC}
    start: lazy
    reconnect: {attempts: 3}
  remote:
    url: https://example.com/mcp
    headers: {Authorization: Bearer t0ken}
    mode: dynamic
tools:
  - {name: get_current_time, timeout: 5s, approval: ask}
",
    )
    .unwrap();
    assert_eq!(shown(&built), shown(&file));
    let secret = shown(&built).into_iter().find(|(_, value)| value.contains("t0ken"));
    assert_eq!(secret, None, "a header is shown masked");
}

#[test]
fn every_problem_is_reported_at_once() {
    let error = ConfigBuilder::new()
        .set("defaults.max_concurent", 20)
        .set("defaults.queue_max", "many")
        .server("both", ServerBuilder::command("x").set("url", "http://localhost/mcp"))
        .tool("a", [("timeout", "soon")])
        .build()
        .unwrap_err();
    let text = problems(&error).join("\n");
    for part in ["max_concurent", "did you mean", "queue_max", "both", "soon"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.starts_with("ConfigBuilder:") && !text.contains("haft.yaml"), "{text}");
}

#[test]
fn strings_are_literal() {
    let server = ServerBuilder::command("${HOME}/server").env("TOKEN", "${HAFT_NO_SUCH_VARIABLE}");
    let config = ConfigBuilder::new().server("s", server).build().unwrap();
    let command = shown(&config).into_iter().find(|(path, _)| path == "servers.s.command").unwrap();
    assert!(command.1.contains("${HOME}/server"), "{command:?}");
}

#[test]
fn a_value_that_cannot_be_serialized_is_a_problem_and_not_a_panic() {
    let keys = std::collections::BTreeMap::from([(vec![1], 1)]);
    let error = ConfigBuilder::new().set("defaults.max_concurrent", keys).build().unwrap_err();
    assert!(error.to_string().contains("max_concurrent"), "{error}");
}
