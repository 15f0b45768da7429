//! The environment of a server process: command line, folder, variables, settings, encoding.

use std::collections::BTreeMap;

use haft::config::LoadOptions;
use haft::{Config, Runtime};
use serde_json::{Value, json};
use testkit::fixture::{Fixture, events};

use super::mcp_support::{Stage, answer, with};

/// The environment that a server process saw at its start.
fn start_of(stage: &Stage, server: &str) -> Value {
    events(&stage.facts(server), "start").remove(0)
}

/// The environment a server got, without the mark by which its descendants are found.
fn environment(stage: &Stage, server: &str) -> BTreeMap<String, String> {
    let start = start_of(stage, server);
    let variables = start["env"].as_object().unwrap().iter();
    let mut variables: BTreeMap<String, String> =
        variables.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect();
    assert!(variables.remove("HAFT_TREE").is_some(), "every child carries the mark");
    variables
}

/// Variables of this very process.
fn own(passes: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    std::env::vars().filter(|(name, _)| passes(name)).collect()
}

const SAFE: [&str; 19] = [
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];

/// Proves S1-2, S1-11, S3-US1-2, S3-FR-004: exactly that argv, in that folder.
#[tokio::test]
async fn a_server_gets_its_command_line_and_its_folder() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("home of it")).unwrap();
    let (name, mut server) =
        stage.stdio("one", json!({"tools": ["echo"]}), json!({"cwd": stage.path("home of it")}));
    let args = server["args"].as_array_mut().unwrap();
    args.extend([json!("--flag"), json!("a b"), json!(""), json!("$HOME *")]);
    let args = args.clone();
    stage.start([(name, server)], json!({})).await;
    let started = start_of(&stage, "one");
    let mut expected = vec![json!(Fixture::path())];
    expected.extend(args);
    assert_eq!(started["argv"], Value::Array(expected), "no shell has touched it");
    assert_eq!(started["cwd"], json!(stage.path("home of it")));
}

/// Proves X-14, S3-FR-008, S1-11: the safe subset, the entries of `env`, the marker, and nothing
/// else.
#[tokio::test]
async fn the_environment_is_the_safe_subset_and_what_is_said() {
    let stage = Stage::new();
    let env = json!({"API_KEY": "value", "TERM": "changed", "SHELL": null});
    stage.start([stage.stdio("one", json!({}), json!({ "env": env }))], json!({})).await;
    let mut expected = own(|name| SAFE.contains(&name) && name != "SHELL");
    expected.insert("API_KEY".into(), "value".into());
    expected.insert("TERM".into(), "changed".into());
    assert_eq!(environment(&stage, "one"), expected);
}

/// Proves X-14: `inherit_env` all and none.
#[tokio::test]
async fn the_environment_may_be_inherited_whole_or_not_at_all() {
    let stage = Stage::new();
    let server = |name, inherit: &str| {
        stage.stdio(name, json!({}), json!({"inherit_env": inherit, "env": {"A": "1"}}))
    };
    stage.start([server("all", "all"), server("none", "none")], json!({})).await;
    let mut expected = own(|_| true);
    expected.insert("A".into(), "1".into());
    expected.remove("HAFT_TREE");
    assert_eq!(environment(&stage, "all"), expected);
    assert_eq!(environment(&stage, "none"), BTreeMap::from([("A".into(), "1".into())]));
}

/// Proves S3-US2-1, S3-US2-3, S3-US2-T, S3-FR-009, S3-FR-010: `${VAR}` is resolved; `envFile` lies
/// beside the configuration and `env` wins over it.
#[tokio::test]
async fn variables_and_env_files_reach_the_server() {
    for key in ["envFile", "env_file"] {
        let stage = Stage::new();
        stage
            .workspace
            .write("sub/.env", "# a comment\nFROM_FILE=file\nBOTH=file\nQUOTED=\"a b\"\n");
        let settings = json!({
            key: ".env", "inherit_env": "none",
            "env": {"API_KEY": "${MY_API_KEY}", "BOTH": "env"},
        });
        let (name, server) = stage.stdio("one", json!({}), settings);
        let file = json!({"servers": {name: server}}).to_string();
        stage.workspace.write("sub/haft.yaml", file);
        let options = LoadOptions {
            files: vec!["sub/haft.yaml".into()],
            environment: std::iter::once(("MY_API_KEY".into(), "the key".into())).collect(),
            cwd: stage.workspace.path().to_path_buf(),
            ..LoadOptions::default()
        };
        let config = Config::load(&options).unwrap_or_else(|error| panic!("{error}"));
        Runtime::start(config).await.unwrap();
        let expected =
            [("API_KEY", "the key"), ("BOTH", "env"), ("FROM_FILE", "file"), ("QUOTED", "a b")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(environment(&stage, "one"), BTreeMap::from(expected), "{key}");
    }
}

/// Proves S3-US2-2, S3-FR-011: as `MCP_CONFIG` and inside `initialize`, the same.
#[tokio::test]
async fn the_servers_own_settings_reach_it_in_both_ways() {
    let stage = Stage::new();
    let config = json!({"allowed_directories": ["/a", "/b"], "depth": 3});
    stage.start([stage.stdio("one", json!({}), json!({ "config": config }))], json!({})).await;
    let variable = environment(&stage, "one").remove("MCP_CONFIG").unwrap();
    assert_eq!(serde_json::from_str::<Value>(&variable).unwrap(), config);
    let initialize = stage.messages("one", "initialize").remove(0);
    assert_eq!(initialize["params"]["capabilities"]["experimental"]["config"], config);
}

/// Proves S3-US2-4, S3-FR-004: both directions, with a letter that differs in every encoding.
#[tokio::test]
async fn an_encoding_holds_in_both_directions() {
    for encoding in ["utf-8", "latin-1", "shift_jis"] {
        let stage = Stage::new();
        let word = if encoding == "shift_jis" { "日本語" } else { "Grüße, çà" };
        let scenario = json!({"encoding": encoding, "tools": ["echo"]});
        let server = stage.stdio("one", scenario, json!({ "encoding": encoding }));
        let runtime = stage.start([server], json!({})).await;
        let arguments = json!({ "word": word });
        assert_eq!(answer(&runtime, "echo", arguments.clone()).await, arguments, "{encoding}");
        let got = stage.messages("one", "tools/call").remove(0);
        assert_eq!(got["params"]["arguments"], arguments, "{encoding}: the server understood");
    }
}

/// Proves S3-EC-7: one program under two names is two processes; both answer.
#[tokio::test]
async fn one_program_under_two_names_is_two_sessions() {
    let stage = Stage::new();
    let prefix = || json!({"tool_prefix": "server"});
    let (_, server) = stage.stdio("one", json!({"tools": ["stats"]}), prefix());
    let twin = with(server.clone(), prefix());
    let runtime = stage.start([("one", server), ("twin", twin)], json!({})).await;
    let first = answer(&runtime, "one__stats", json!({})).await;
    let second = answer(&runtime, "twin__stats", json!({})).await;
    assert_ne!(first["pid"], second["pid"]);
    assert_eq!((&first["initialize"], &second["initialize"]), (&json!(1), &json!(1)));
}
