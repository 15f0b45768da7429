//! Safety of loading: no work before validation, no secrets in messages, bounded resource use.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use haft::config::show::rows;
use haft::config::{Config, ConfigError, Dialect};
use haft::registry::{Discovered, connect_failure, no_tools, register};
use haft::{Runtime, StartError};
use testkit::Workspace;

use crate::config_support::{errors, load, native, server, warnings};

/// Proves S0-5, S0-89: an invalid configuration spawns nothing and connects nowhere.
#[tokio::test]
async fn an_invalid_configuration_starts_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let workspace = Workspace::new();
    let marker = workspace.path().join("marker");
    let text = format!(
        "servers:\n  spawns: {{command: touch, args: ['{marker}']}}\n  connects: {{url: 'http://127.0.0.1:{port}/mcp'}}\n  streams: {{url: 'ws://127.0.0.1:{port}/'}}\n  broken: {{mode: lenient, url: 'http://127.0.0.1:{port}/'}}\n",
        marker = marker.display()
    );
    workspace.write("haft.yaml", text);
    let refused = load(&workspace, &["haft.yaml"], &[]);
    assert!(errors(refused).contains("lenient"));
    assert!(!marker.exists());
    let connection = listener.accept();
    assert_eq!(connection.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(std::fs::read_dir(workspace.path()).unwrap().count(), 1);
}

/// Proves S0-89: loading a valid configuration does not start anything either.
#[test]
fn loading_starts_nothing() {
    let workspace = Workspace::new();
    let marker = workspace.path().join("marker");
    workspace
        .write("haft.yaml", server(&format!("command: touch\nargs: ['{}']", marker.display())));
    load(&workspace, &["haft.yaml"], &[]).unwrap();
    assert!(!marker.exists());
}

/// One canary for each way a secret can come in.
const CANARIES: [&str; 12] = [
    "canary-env-literal",
    "canary-env-variable",
    "canary-header-literal",
    "canary-header-variable",
    "canary-env-file",
    "canary-url-password",
    "canary-url-query",
    "canary-url-path-variable",
    "canary-url-user",
    "canary-argument",
    "canary-config",
    "canary-command",
];

const SECRETS: &str = "
defaults: {on_limit: wait}
servers:
  child:
    command: '${COMMAND}'
    args: ['--token', '${ARGUMENT}', '--key=${ARGUMENT}']
    env: {LITERAL: canary-env-literal, REFERENCE: '${ENV}'}
    env_file: secrets.env
    config: {texts: [canary-config, {deep: canary-config}]}
    headers: {X-Unused: canary-header-literal}
  far:
    url: 'https://user:canary-url-password@h.example/${URL_PATH}/mcp?key=canary-url-query&x'
    headers: {X-Key: canary-header-literal, Authorization: 'Bearer ${HEADER}'}
    args: [unused]
    required: true
  token:
    url: 'https://canary-url-user@h.example/mcp'
    start: lazy
    mode: strict
";

const VARIABLES: [(&str, &str); 5] = [
    ("COMMAND", "canary-command"),
    ("ARGUMENT", "canary-argument"),
    ("ENV", "canary-env-variable"),
    ("URL_PATH", "canary-url-path-variable"),
    ("HEADER", "canary-header-variable"),
];

fn secretive(extra: &str) -> Result<Config, ConfigError> {
    let workspace = Workspace::with(&[
        ("haft.yaml", &format!("{SECRETS}{extra}")),
        ("secrets.env", "FROM_FILE=canary-env-file\n"),
    ]);
    load(&workspace, &["haft.yaml"], &VARIABLES)
}

fn assert_clean(what: &str, text: &str) {
    for canary in CANARIES {
        assert!(!text.contains(canary), "`{canary}` is in {what}:\n{text}");
    }
}

/// Proves S3-SC-005 and the canary row of the attacks.
#[tokio::test]
async fn no_secret_appears_in_any_text() {
    let config = secretive("").unwrap();
    assert_eq!(config.servers.len(), 3);
    assert_clean("Debug of the configuration", &format!("{config:?}"));
    assert_clean("the resolved view", &serde_json::to_string(&rows(&config)).unwrap());
    assert!(!config.warnings.is_empty());
    assert_clean("the warnings", &warnings(&config));
    assert_clean("Debug of the warnings", &format!("{:?}", config.warnings));
    for server in &config.servers {
        assert_clean("T2", &connect_failure(&server.name, &server.endpoint, "refused"));
        assert_clean("T3", &no_tools(&server.name, &server.endpoint));
        assert_clean("the server's entry", &format!("{:?}", haft::ServerInfo::configured(server)));
    }
    let found = Discovered {
        local: Vec::new(),
        servers: config.servers.iter().map(|it| (it.name.clone(), Vec::new())).collect(),
    };
    let registration = register(&config, &found, None);
    assert_eq!(registration.records.len(), 3);
    assert_clean("what registration says", &format!("{:?}", registration.records));
    let Err(error) = Runtime::builder(config).dry_run().start().await else {
        panic!("a required server cannot be reached");
    };
    assert!(matches!(error, StartError::Connect { .. }));
    assert_clean("the error of the start", &format!("{error} {error:?} {:?}", error.remedy()));
}

/// Proves S3-SC-005: nor when the configuration is refused.
#[test]
fn no_secret_appears_in_an_error() {
    let broken = [
        // A variable with an invalid value for its key.
        server("command: x\nmode: ${ENV}"),
        server("command: x\nrequest_timeout: ${ENV}"),
        server("command: x\nencoding: ${ENV}"),
        server("command: x\nenv_file: ${ENV}"),
        server("transport: ${ENV}\nurl: http://h/"),
        server("url: ${ENV}"),
        server("url: 'ftp://${ENV}@h/${URL_PATH}?k=${ARGUMENT}'"),
        server("url: 'https://${ENV}:x@h h/'"),
        server("command: x\nconfig: ${ENV}"),
        server("command: x\nargs: ${ENV}"),
        server("command: x\ntool_prefix: ${ENV}"),
        "registry: {dir: '${ENV}'}".into(),
        // A literal that does not fit.
        server("url: 'ftp://u:canary-url-password@h/?k=canary-url-query'"),
        server("url: 'http://u:canary-url-password@h:99999/?k=canary-url-query'"),
        server("url: 'http://h/\nheaders: {X-Key: canary-header-literal}"),
        server("url: http://h/\nheaders: {X-Key: \"canary-header-literal\\n\"}"),
        server("url: http://h/\nheaders: {X-Key: [canary-header-literal]}"),
        server("command: x\nenv: {K: [canary-env-literal]}"),
        server("command: x\nenv: {'A=B': canary-env-literal}"),
    ];
    for text in broken {
        let error = native(&text, &VARIABLES).expect_err(&text);
        assert_clean(&format!("the error about {text}"), &format!("{error} {error:?}"));
    }
    let error = secretive("nonsense: true\n").unwrap_err();
    assert_clean("the error beside secrets", &format!("{error} {error:?}"));
}

/// Proves S3-SC-005 for the files of other tools.
#[test]
fn no_secret_of_another_tools_file_appears() {
    let files = [
        (
            ".mcp.json",
            r#"{"mcpServers": {"s": {"type": "http", "url": "https://h/?k=canary-url-query", "headers": {"A": "Bearer ${ENV}"}}}}"#,
        ),
        (
            "config.toml",
            "[mcp_servers.s]\nurl = 'https://u:canary-url-password@h/'\nbearer_token_env_var = 'ENV'\n[mcp_servers.t]\ncommand = 'x'\nenv_vars = ['ENV']\nenv = {A = 'canary-env-literal'}\n",
        ),
        (
            ".vscode/mcp.json",
            r#"{"inputs": [{"id": "i", "type": "promptString"}], "servers": {"s": {"command": "x", "args": ["${input:i}"], "env": {"A": "${input:i}"}}}}"#,
        ),
        (
            "agent.yaml",
            "name: a\ntools: [{name: s, type: mcp, command: x, args: ['${ENV}'], env: {A: '${ENV}'}}]",
        ),
        (
            "tools.json",
            r#"{"tools": [{"name": "t", "description": "d", "type": "local", "input_schema": {"type": "object"}, "config": {"command": ["${ENV}"], "args": ["${ENV}"]}}]}"#,
        ),
    ];
    for (file, text) in files {
        let workspace = Workspace::with(&[(file, text)]);
        let variables = [("ENV", "canary-env-variable"), ("INPUT_I", "canary-argument")];
        let config = load(&workspace, &[file], &variables).unwrap();
        let shown = serde_json::to_string(&rows(&config)).unwrap();
        assert_clean(file, &format!("{config:?} {shown} {}", warnings(&config)));
    }
}

/// Proves S3-SC-005: what the log must hide is known to it.
#[test]
fn the_log_learns_every_secret() {
    let secrets = secretive("").unwrap().secrets();
    let is_known = |canary: &str| secrets.iter().any(|secret| secret.contains(canary));
    let unknown: Vec<_> = CANARIES
        .iter()
        // Values of `config` are settings as often as secrets, and hiding `./data` everywhere would
        // make the log useless.
        .filter(|canary| **canary != "canary-config" && **canary != "canary-url-path-variable")
        .filter(|canary| !is_known(canary))
        .collect();
    assert_eq!(unknown, Vec::<&&str>::new());
}

/// Longest that refusing a hostile file may take, in a build without optimization on a busy machine.
const REFUSED_WITHIN: Duration = Duration::from_mins(1);

fn refused(file: &str, text: &str, format: Option<Dialect>) -> ConfigError {
    let workspace = Workspace::with(&[(file, text)]);
    let mut options = crate::config_support::options(&workspace, &[file], &[]);
    options.format = format;
    let start = Instant::now();
    let error = Config::load(&options).expect_err(file);
    assert!(start.elapsed() < REFUSED_WITHIN, "{file} took {:?}", start.elapsed());
    assert!(error.problems.len() <= 1000, "{file}: {} problems", error.problems.len());
    error
}

/// Proves the bomb row of the attacks: aliases.
#[test]
fn a_billion_laughs_are_refused() {
    let mut text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        text += &format!("a{level}: &a{level} [{}]\n", vec![before; 9].join(", "));
    }
    let error = refused("haft.yaml", &text, None);
    assert!(error.to_string().contains("aliases expanded"), "{error}");
}

/// Proves the bomb row of the attacks: aliases that add up to a depth no single value has.
#[test]
fn nesting_by_aliases_is_refused() {
    use std::fmt::Write as _;
    let mut text = format!("a0: &a0 {}{}\n", "[".repeat(60), "]".repeat(60));
    for level in 1..100 {
        let (open, close) = ("[".repeat(60), "]".repeat(60));
        writeln!(text, "a{level}: &a{level} {open}*a{}{close}", level - 1).unwrap();
    }
    let error = refused("haft.yaml", &text, None);
    assert!(error.to_string().contains("nested deeper than 64 levels"), "{error}");
}

/// Proves the bomb row of the attacks: nesting of megabytes, in each syntax.
#[test]
fn megabytes_of_nesting_are_refused() {
    let deep = |open: &str, bytes: usize| open.repeat(bytes / open.len());
    for (file, text) in [
        ("list.yaml", deep("[", 4_000_000)),
        ("map.yaml", format!("servers: {}", deep("{a: ", 4_000_000))),
        ("dashes.yaml", deep("- ", 1_000_000)),
        ("list.json", deep("[", 10_000_000)),
        ("map.json", deep("{\"a\":", 10_000_000)),
        ("list.toml", format!("mcp_servers = {}", deep("[", 4_000_000))),
    ] {
        let error = refused(file, &text, None);
        let text = error.to_string();
        assert!(text.len() < 2000, "{file}: a message of {} bytes", text.len());
    }
}

/// Proves the bomb row of the attacks: a million keys, unknown or repeated, on one line or on many.
#[test]
fn a_million_keys_are_refused() {
    use std::fmt::Write as _;
    let mut line = String::from("{\"servers\": {\"s\": {\"command\": \"x\"");
    for key in 0..400_000 {
        write!(line, ", \"k{key}\": 1").unwrap();
    }
    line += "}}}";
    refused("haft.json", &line, None);

    let mut lines = String::from("defaults:\n");
    for key in 0..1_000_000 {
        writeln!(lines, "  k{key}: 1").unwrap();
    }
    refused("haft.yaml", &lines, None);

    let mut servers = String::from("{\"mcp_servers\": {\"k\": {}");
    for key in 0..100_000 {
        write!(servers, ", \"k{key}\": {{\"command\": \"x\"}}").unwrap();
    }
    servers += ", \"last\": {}}}";
    refused("mcp.json", &servers, None);

    let values = format!(
        "{{\"servers\": {{\"s\": {{\"command\": \"x\", \"args\": [1{}]}}}}}}",
        ",1".repeat(6_000_000)
    );
    let error = refused("haft.json", &values, None);
    assert!(error.to_string().contains("more than 100000 values and keys"), "{error}");
}

/// The native file, or the environment, sets the limit for the registry's files.
#[test]
fn the_limit_on_values_of_a_registry_is_a_setting() {
    let entry = r#"{"name": "a", "description": "A.", "type": "local", "input_schema": {"examples": [VALUES]}, "config": {"command": ["cat"]}}"#;
    let tools = |values: usize| {
        let values = vec!["0"; values].join(",");
        format!(r#"{{"tools": [{}]}}"#, entry.replace("VALUES", &values))
    };
    let with = |limits: &str, values: usize| {
        Workspace::with(&[
            ("haft.yaml", &format!("registry: {{dir: tools}}\n{limits}")),
            ("tools/tools.json", &tools(values)),
            ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
        ])
    };
    let refused = |workspace: &Workspace, environment: &[(&str, &str)]| {
        errors(load(workspace, &["haft.yaml"], environment))
    };
    let text = refused(&with("", 100_000), &[]);
    assert!(
        text.contains("tools/tools.json") && text.contains("more than 100000 values"),
        "{text}"
    );
    assert!(text.contains("limits.message_nodes_max"), "{text}");
    let raised = with("limits: {message_nodes_max: 200000}", 100_000);
    load(&raised, &["haft.yaml"], &[]).unwrap();
    let text = refused(&with("limits: {message_nodes_max: 2000}", 3_000), &[]);
    assert!(text.contains("more than 2000 values"), "{text}");
    let text = refused(&with("", 3_000), &[("HAFT__LIMITS__MESSAGE_NODES_MAX", "2000")]);
    assert!(text.contains("more than 2000 values"), "{text}");
    let text = refused(&with("limits: {message_nodes_max: 10}", 0), &[]);
    assert!(text.contains("too few for a message") && text.contains("1000 or more"), "{text}");
}

/// Proves the bomb row of the attacks: a file that never ends, and one that is too big.
#[test]
fn files_without_end_are_refused() {
    let workspace = Workspace::new();
    let zero = load(&workspace, &["/dev/zero"], &[]);
    assert!(errors(zero).contains("more than"));
    workspace.write("haft.yaml", server("command: x\nenv_file: /dev/zero"));
    let text = errors(load(&workspace, &["haft.yaml"], &[]));
    assert!(text.contains("`/dev/zero` cannot be read: it is not a file"), "{text}");
    workspace.write("big.yaml", " ".repeat(17 * 1024 * 1024));
    assert!(errors(load(&workspace, &["big.yaml"], &[])).contains("more than"));
}

/// Proves the terminal row of the attacks: a name cannot forge a line of a message.
#[test]
fn names_in_messages_are_made_printable() {
    let text =
        "{\"servers\": {\"a\\nERROR: forged\\u001b[31m\": {\"comand\": \"x\", \"x\\ny\": 1}}}";
    let workspace = Workspace::with(&[("haft.json", text)]);
    let error = load(&workspace, &["haft.json"], &[]).unwrap_err();
    for line in error.to_string().lines() {
        assert!(!line.starts_with("ERROR") && !line.contains('\u{1b}'), "{line}");
        assert!(line.starts_with("haft.json:") || line.starts_with("  help:"), "{line}");
    }
}
