//! The meaning of a server's entry: defaults of each format, environment, limits.

use std::time::Duration;

use haft::config::choices::{ConnectFailure, InheritEnv, Mode, Start};
use haft::config::model::{Config, Endpoint, Origin, Setting};
use haft::config::{ConfigError, Dialect};
use serde_json::json;
use testkit::Workspace;

use crate::config_support::{args, env, errors, load, native, row, server, stdio, value, warnings};

/// One server in each format, named `s`, with nothing but its endpoint.
const SMALLEST: [(&str, &str, Dialect); 13] = [
    ("haft.yaml", "servers: {s: {command: x}}", Dialect::Native),
    (
        "box.yaml",
        "myai: {toolbox: {mcps: [{name: s, transport: http, url: 'http://h/mcp', mode: strict}]}}",
        Dialect::Toolbox,
    ),
    ("mcp.json", r#"{"mcp_servers": {"s": {"command": "x"}}}"#, Dialect::McpServers),
    ("agent.yaml", "name: a\ntools: [{name: s, type: mcp, command: x}]", Dialect::AgentYaml),
    (".vscode/mcp.json", r#"{"servers": {"s": {"command": "x"}}}"#, Dialect::Vscode),
    (".mcp.json", r#"{"mcpServers": {"s": {"command": "x"}}}"#, Dialect::Claude),
    (".cursor/mcp.json", r#"{"mcpServers": {"s": {"command": "x"}}}"#, Dialect::Cursor),
    ("config.toml", "[mcp_servers.s]\ncommand = 'x'", Dialect::Codex),
    ("config.yaml", "extensions: {s: {type: stdio, cmd: x, enabled: true}}", Dialect::Goose),
    ("lang.json", r#"{"s": {"command": "x", "transport": "stdio"}}"#, Dialect::Langchain),
    (
        ".mcphost.json",
        r#"{"mcpServers": {"s": {"type": "local", "command": ["x"]}}}"#,
        Dialect::Mcphost,
    ),
    (
        "inspector.json",
        r#"{"mcpServers": {"s": {"command": "x", "requestTimeout": 60000}}}"#,
        Dialect::Inspector,
    ),
    ("haft.json", r#"{"servers": {"s": {"command": "x", "mode": "dynamic"}}}"#, Dialect::Native),
];

fn smallest(file: &str, text: &str) -> Config {
    load(&Workspace::with(&[(file, text)]), &[file], &[]).unwrap()
}

/// Proves X-1, X-2, X-3: the default of each format, and the origin of each value.
#[test]
fn defaults_depend_on_the_format_and_say_so() {
    for (file, text, dialect) in SMALLEST {
        let config = smallest(file, text);
        assert_eq!(config.files[0].dialect, dialect, "{file}");
        let server = &config.servers[0];
        let (failure, start) = match dialect {
            Dialect::Toolbox => (ConnectFailure::Exit, Start::Eager),
            Dialect::AgentYaml => (ConnectFailure::Skip, Start::Lazy),
            _ => (ConnectFailure::Skip, Start::Eager),
        };
        let of_format = Origin::Format(dialect);
        let failure = Setting { value: failure, origin: of_format.clone() };
        assert_eq!(server.on_connect_failure, failure, "{file}");
        assert_eq!(server.start, Setting { value: start, origin: of_format }, "{file}");
        let reconnect = &server.reconnect;
        assert_eq!(reconnect.attempts, Setting::default(3), "{file}");
        assert_eq!(reconnect.base, Setting::default(Duration::from_millis(500)), "{file}");
        assert_eq!(reconnect.factor, Setting::default(2.0), "{file}");
        assert_eq!(reconnect.max, Setting::default(Duration::from_secs(30)), "{file}");
        assert_eq!(server.mode.value == Mode::Strict, dialect == Dialect::Toolbox, "{file}");
    }
}

/// Proves X-1: `required: true` means `exit` for that server only, and contradicts `skip`.
#[test]
fn a_required_server_ends_the_start_and_the_others_do_not() {
    let text = "servers:\n  a: {command: x, required: true}\n  b: {command: x}\n  c: {command: x, required: false}\n  d: {command: x, on_connect_failure: exit}\n";
    let config = native(text, &[]).unwrap();
    let found: Vec<_> = config.servers.iter().map(|it| it.on_connect_failure.value).collect();
    assert_eq!(
        found,
        [ConnectFailure::Exit, ConnectFailure::Skip, ConnectFailure::Skip, ConnectFailure::Exit]
    );
    let both = server("command: x\nrequired: true\non_connect_failure: skip");
    insta::assert_snapshot!(errors(native(&both, &[])));
}

/// Proves X-2: strict and lazy is possible but worth a warning; the other pairs are not.
#[test]
fn a_strict_server_that_starts_lazily_is_warned_about() {
    let config = native(&server("command: x\nmode: strict\nstart: lazy"), &[]).unwrap();
    insta::assert_snapshot!(warnings(&config));
    for pair in ["mode: strict\nstart: eager", "mode: dynamic\nstart: lazy"] {
        let config = native(&server(&format!("command: x\n{pair}")), &[]).unwrap();
        assert_eq!(warnings(&config), "", "{pair}");
    }
}

/// Proves X-3: every part of `reconnect` can be set; zero attempts is seed 1's behaviour (S1-21).
#[test]
fn reconnect_takes_what_is_set_and_keeps_the_rest() {
    let text = server("command: x\nreconnect: {attempts: 0, factor: 1.5}");
    let config = native(&text, &[]).unwrap();
    assert_eq!(value(&config, "servers.one.reconnect.attempts"), json!(0));
    assert_eq!(value(&config, "servers.one.reconnect.factor"), json!(1.5));
    assert_eq!(value(&config, "servers.one.reconnect.base"), json!("500ms"));
    assert_eq!(value(&config, "servers.one.reconnect.max"), json!("30s"));
    let crossed = server("command: x\nreconnect: {base: 60s}");
    insta::assert_snapshot!(errors(native(&crossed, &[])));
}

/// Proves X-4, S0-10, S3-US6-1, S3-US7-1, S3-US8-1.
#[test]
fn transports_have_synonyms_and_addresses_imply_one() {
    let words = [
        ("http", "http"),
        ("streamable_http", "http"),
        ("streamable-http", "http"),
        ("sse", "sse"),
    ];
    for (word, transport) in words {
        let config =
            native(&server(&format!("transport: {word}\nurl: http://h/mcp")), &[]).unwrap();
        assert_eq!(config.servers[0].endpoint.transport(), transport, "{word}");
    }
    for word in ["ws", "websocket"] {
        let config = native(&server(&format!("transport: {word}\nurl: ws://h/mcp")), &[]).unwrap();
        assert!(matches!(config.servers[0].endpoint, Endpoint::Websocket(_)), "{word}");
    }
    for (line, transport) in
        [("url: https://h/mcp", "http"), ("url: wss://h/mcp", "websocket"), ("command: x", "stdio")]
    {
        let config = native(&server(line), &[]).unwrap();
        assert_eq!(config.servers[0].endpoint.transport(), transport, "{line}");
    }
}

/// Proves X-5, S0-9: the same effective value whichever spelling is used.
#[test]
fn every_spelling_of_a_duration_means_the_same() {
    for spelling in ["P0DT0H0M30S", "PT30S", "30", "30.0", "30s", "30000ms", "0.5m", "'30'"] {
        let text = format!("defaults: {{tool_timeout: {spelling}}}");
        let config = native(&text, &[]).unwrap();
        assert_eq!(config.defaults.tool_timeout.value, Duration::from_secs(30), "{spelling}");
        assert_eq!(value(&config, "defaults.tool_timeout"), json!("30s"), "{spelling}");
    }
}

/// Proves S3-FR-012, S3-Q-01.
#[test]
fn request_timeout_is_sixty_seconds_unless_said_and_always_above_zero() {
    let config = native(&server("command: x"), &[]).unwrap();
    assert_eq!(config.servers[0].request_timeout.value, Duration::from_mins(1));
    let config = native(&server("command: x\nrequest_timeout: 7"), &[]).unwrap();
    assert_eq!(config.servers[0].request_timeout.value, Duration::from_secs(7));
    assert_eq!(row(&config, "servers.one.request_timeout").from, "haft.yaml:4:22");
    let agent = "name: a\ntools: [{name: s, type: mcp, command: x, request_timeout: 5}]";
    let config = smallest("agent.yaml", agent);
    assert_eq!(config.servers[0].request_timeout.value, Duration::from_secs(5));
    for bad in ["0", "-1", "PT0S", "-5s"] {
        let text = server(&format!("command: x\nrequest_timeout: {bad}"));
        let text = errors(native(&text, &[]));
        assert!(text.contains("servers.one.request_timeout"), "{text}");
        assert!(text.contains(&format!("`{bad}` is not a usable duration")), "{text}");
    }
}

/// Proves S3-US2-3, S3-FR-009, S3-FR-008, S1-11: relative to the file, and `env` wins.
#[test]
fn env_file_lies_beside_its_file_and_env_wins_over_it() {
    let lines = "# comment\nexport A=from-file\nB='two words'\nC=\"x#y\" # note\n\nD=\n";
    let native =
        "servers: {s: {command: x, env_file: keys.env, env: {A: from-env, E: 5, D: null}}}";
    let workspace = Workspace::with(&[
        ("deep/haft.yaml", native),
        ("deep/keys.env", lines),
        ("keys.env", "A=wrong folder"),
        (
            "deep/agent.yaml",
            "name: a\ntools: [{name: s, type: mcp, command: x, envFile: keys.env}]",
        ),
        (
            "deep/.vscode/mcp.json",
            r#"{"servers": {"s": {"command": "x", "envFile": "${workspaceFolder}/keys.env"}}}"#,
        ),
    ]);
    let of = |file| load(&workspace, &[file], &[]).unwrap();
    let config = of("deep/haft.yaml");
    let expected = [
        ("B", Some("two words")),
        ("C", Some("x#y")),
        ("A", Some("from-env")),
        ("E", Some("5")),
        ("D", None),
    ];
    assert_eq!(env(&config.servers[0]), expected);
    for file in ["deep/agent.yaml", "deep/.vscode/mcp.json"] {
        assert_eq!(env(&of(file).servers[0])[0], ("A", Some("from-file")), "{file}");
    }
}

/// Proves S3-FR-009: an env file that cannot be used is an error that names it.
#[test]
fn an_unusable_env_file_is_named() {
    let text = "servers:\n  a: {command: x, env_file: gone.env}\n  b: {command: x, env_file: bad.env}\n  c: {command: x, env_file: folder}\n  d: {command: x, env_file: bytes.env}\n";
    let workspace =
        Workspace::with(&[("haft.yaml", text), ("bad.env", "A=1\nnonsense\n"), ("folder/x", "")]);
    workspace.write("bytes.env", b"A=\xff\n");
    let text = errors(load(&workspace, &["haft.yaml"], &[]));
    insta::assert_snapshot!(workspace.stable(&text));
}

/// Proves S1-11 (the part in files): `cwd` is relative to the file, and defaults to its folder.
#[test]
fn a_servers_folder_is_relative_to_its_file() {
    let workspace = Workspace::with(&[
        ("deep/haft.yaml", "servers: {a: {command: x, cwd: data}, b: {command: x}}"),
        ("deep/agent.yaml", "name: a\ntools: [{name: c, type: mcp, command: x}]"),
    ]);
    let config = load(&workspace, &["deep/haft.yaml", "deep/agent.yaml"], &[]).unwrap();
    let folders: Vec<_> = config.servers.iter().map(|it| stdio(it).cwd.clone()).collect();
    let deep = workspace.path().join("deep");
    assert_eq!(folders, [Some(deep.join("data")), Some(deep.clone()), Some(deep)]);
}

/// Proves S3-US2-4.
#[test]
fn known_encodings_are_accepted_and_unknown_ones_refused() {
    for (spelling, name) in [
        ("utf-8", "UTF-8"),
        ("UTF8", "UTF-8"),
        ("utf_8", "UTF-8"),
        ("latin-1", "windows-1252"),
        ("shift_jis", "Shift_JIS"),
        ("utf-16le", "UTF-16LE"),
    ] {
        let config = native(&server(&format!("command: x\nencoding: {spelling}")), &[]).unwrap();
        assert_eq!(stdio(&config.servers[0]).encoding.value, name, "{spelling}");
    }
    let config = native(&server("command: x"), &[]).unwrap();
    assert_eq!(stdio(&config.servers[0]).encoding, Setting::default("UTF-8"));
    insta::assert_snapshot!(errors(native(&server("command: x\nencoding: klingon"), &[])));
}

/// Proves S3-FR-011, S3-US2-2 (the part in files).
#[test]
fn config_is_passed_through_as_written() {
    let text = server(
        "command: x\nconfig: {allowed_directories: ['./data', '${DIR}'], deep: {n: 1.50, yes: true, none: null}}",
    );
    let config = native(&text, &[("DIR", "/d")]).unwrap();
    let expected = json!({
        "allowed_directories": ["./data", "/d"],
        "deep": {"n": 1.5, "yes": true, "none": null},
    });
    assert_eq!(config.servers[0].config.as_ref().unwrap().expose(), &expected);
}

/// Proves X-14 (the part in files).
#[test]
fn inherit_env_is_safe_unless_said() {
    for (line, expected) in [
        ("", InheritEnv::Safe),
        ("inherit_env: safe", InheritEnv::Safe),
        ("inherit_env: all", InheritEnv::All),
        ("inherit_env: none", InheritEnv::None),
    ] {
        let config = native(&server(&format!("command: x\n{line}")), &[]).unwrap();
        assert_eq!(stdio(&config.servers[0]).inherit_env.value, expected, "{line}");
    }
    insta::assert_snapshot!(errors(native(&server("command: x\ninherit_env: some"), &[])));
}

fn mcp_servers(entry: &str) -> Result<Config, ConfigError> {
    let text = format!("mcp_servers:\n  s: {entry}\n");
    load(&Workspace::with(&[("bot.yaml", &text)]), &["bot.yaml"], &[])
}

/// Proves S1-9, S1-10: stdio by default, and omitted values are empty.
#[test]
fn seed_1_servers_are_stdio_with_empty_defaults() {
    let config = mcp_servers("{command: x}").unwrap();
    let stdio = stdio(&config.servers[0]);
    assert!(stdio.args.is_empty() && stdio.env.is_empty() && stdio.cwd.is_none());
    let config = mcp_servers("{command: '', transport: http, url: 'http://h/sse'}").unwrap();
    assert_eq!(config.servers[0].endpoint.transport(), "http");
    let config = mcp_servers("{command: x, args: [a], env: null, cwd: null, url: ''}").unwrap();
    assert_eq!(args(&config.servers[0]), ["a"]);
}

/// Proves S1-8, S1-10, S1-23, S3-FR-026: wrong types, empty commands and addresses, unknown words.
#[test]
fn seed_1_servers_that_cannot_work_are_refused() {
    let entries = [
        "{}",
        "{command: ''}",
        "{transport: http}",
        "{transport: http, url: ''}",
        "{transport: ftp, url: 'ftp://h'}",
        "{command: [x]}",
        "{command: x, args: a}",
        "{command: x, env: [A]}",
        "{command: x, cwd: 5}",
        "just-a-text",
    ];
    let found: String =
        entries.iter().map(|entry| format!("{entry}\n{}\n", errors(mcp_servers(entry)))).collect();
    insta::assert_snapshot!(found);
}

/// Proves S0-12 on the side of the configuration: left out means none, a list names what to fetch.
#[test]
fn prompts_are_none_unless_named() {
    let toolbox = |prompts: &str| {
        let text = format!(
            "mcps: [{{name: s, transport: http, url: 'http://h/mcp', mode: strict{prompts}}}]"
        );
        let workspace = Workspace::with(&[("box.yaml", text.as_str())]);
        load(&workspace, &["box.yaml"], &[]).unwrap().servers.remove(0).prompts.value
    };
    assert_eq!(toolbox(""), Vec::<String>::new());
    assert_eq!(toolbox(", prompts: []"), Vec::<String>::new());
    assert_eq!(toolbox(", prompts: [p]"), ["p"]);
}

/// `local` and `builtin` stand for the tools that run here, in every format.
#[test]
fn the_names_of_local_and_builtin_tools_are_reserved() {
    let spellings = [
        ("{s:", "{NAME:"),
        ("name: s,", "name: NAME,"),
        ("\"s\":", "\"NAME\":"),
        (".s]", ".NAME]"),
    ];
    for (file, text, dialect) in SMALLEST {
        for name in ["local", "builtin", "Local"] {
            let renamed = spellings
                .iter()
                .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
                .replace("NAME", name);
            assert_ne!(renamed, text, "{dialect}");
            let error = load(&Workspace::with(&[(file, &renamed)]), &[file], &[]).unwrap_err();
            let problem = &error.problems[0];
            assert!(problem.problem.contains("may not be named"), "{dialect}: {error}");
            assert!(
                problem.remedy.to_string().contains(&format!("rename it in `{file}`")),
                "{dialect}: {error}"
            );
        }
    }
}
