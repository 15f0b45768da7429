//! Several files, registries, and the files other tools already have.

use std::collections::HashMap;
use std::path::PathBuf;

use haft::config::model::LocalProgram;
use haft::config::{Config, Dialect, InputRequest, LoadOptions};
use serde_json::json;
use testkit::Workspace;

use crate::config_support::{args, env, errors, load, options, remote, stdio, value, warnings};

const TOOL: &str = r#"{"tools": [{"name": "greet", "description": "Greets.", "type": "local",
    "input_schema": {"type": "object"}, "config": {"script_path": "greet.py"}}]}"#;

/// Proves X-12: one process, one file of each kind, all of them in effect.
#[test]
fn files_of_different_formats_are_combined() {
    let workspace = Workspace::with(&[
        ("haft.yaml", "defaults: {max_concurrent: 3}\nservers: {n: {command: x}}"),
        (
            "box.yaml",
            "myai: {toolbox: {tools: [{name: t, timeout: 5}, {name: greet}], mcps: [{name: b, transport: sse, url: 'http://h/', mode: strict}]}}",
        ),
        ("bot.yaml", "mcp_servers: {m: {command: x}}"),
        ("tools.json", TOOL),
        ("agent.yaml", "name: a\ntools: [{name: a, type: mcp, command: x}]"),
        (".vscode/mcp.json", r#"{"servers": {"v": {"command": "x"}}}"#),
        (".mcp.json", r#"{"mcpServers": {"c": {"command": "x"}}}"#),
        ("config.toml", "[mcp_servers.d]\ncommand = 'x'"),
    ]);
    let files = [
        "haft.yaml",
        "box.yaml",
        "bot.yaml",
        "tools.json",
        "agent.yaml",
        ".vscode/mcp.json",
        ".mcp.json",
        "config.toml",
    ];
    let config = load(&workspace, &files, &[]).unwrap();
    let servers: String = config.servers.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(servers, "nbmavcd");
    assert_eq!(config.local[0].definition.name, "greet");
    assert_eq!(config.tools[0].name, "t");
    assert_eq!(value(&config, "defaults.max_concurrent"), json!(3));
    // Each keeps what its own format means.
    assert_eq!(value(&config, "servers.b.on_connect_failure"), json!("exit"));
    assert_eq!(value(&config, "servers.a.start"), json!("lazy"));
    assert_eq!(value(&config, "servers.n.start"), json!("eager"));
    assert_eq!(warnings(&config), "");
}

/// Proves X-12: the later file wins, with a warning that names both places.
#[test]
fn a_name_in_two_files_is_taken_from_the_later_one_with_a_warning() {
    let workspace = Workspace::with(&[
        (
            "haft.yaml",
            "servers:\n  same: {command: first, args: [kept-nowhere]}\n  other: {command: o}\ntools: [{name: t, timeout: 1}]\n",
        ),
        ("more.yaml", "servers: {}\ndefaults: {}\ntools: [{name: t, max_instances: 2}]\n"),
        (".mcp.json", r#"{"mcpServers": {"same": {"command": "second"}}}"#),
        ("one/tools.json", TOOL),
        ("two/tools.json", TOOL),
    ]);
    let files = ["haft.yaml", "more.yaml", ".mcp.json", "one/tools.json", "two/tools.json"];
    let config = load(&workspace, &files, &[]).unwrap();
    let names: Vec<_> = config.servers.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["same", "other"]);
    assert_eq!(stdio(&config.servers[0]).command.expose(), "second");
    assert!(args(&config.servers[0]).is_empty(), "replaced as a whole");
    assert_eq!(config.servers[0].dialect, Dialect::Claude);
    assert_eq!(config.local[0].tools_dir, workspace.path().join("two"));
    assert_eq!(config.tools.len(), 1);
    insta::assert_snapshot!(warnings(&config));
}

/// Proves X-12: the same file twice is one file.
#[test]
fn a_file_given_twice_is_read_once() {
    let workspace =
        Workspace::with(&[("t/tools.json", TOOL), ("t/mcp.json", r#"{"mcp_servers": {}}"#)]);
    let config = load(&workspace, &["t", "t/tools.json"], &[]).unwrap();
    assert_eq!((config.files.len(), config.warnings.len()), (2, 0));
}

/// Proves S2-FR-001, S2-KE-02, S2-KE-01: the path upstream uses, and every field of an entry.
#[test]
fn tools_json_is_read_from_the_path_the_seed_names() {
    let entry = r#"{"tools": [{"name": "word_count", "description": "Counts words.", "type": "local",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "output_schema": {"type": "object"}, "parallel_capable": true, "timeout": 12,
        "config": {"script_path": "words.py", "entrypoint": "count"}}]}"#;
    let workspace = Workspace::with(&[("backend/src/tools/tools.json", entry)]);
    let config = load(&workspace, &["backend/src/tools/tools.json"], &[]).unwrap();
    let tool = &config.local[0];
    assert_eq!(tool.tools_dir, workspace.path().join("backend/src/tools"));
    assert_eq!(tool.definition.description, "Counts words.");
    assert_eq!(tool.definition.input_schema["properties"]["text"]["type"], "string");
    assert_eq!(tool.definition.output_schema, Some(json!({"type": "object"})));
    let program = LocalProgram::Python {
        script_path: "words.py".into(),
        entrypoint: "count".into(),
        requirements: Vec::new(),
    };
    assert_eq!(tool.program, program);
    assert_eq!(value(&config, "local.word_count.timeout"), json!("12s"));
    assert_eq!(value(&config, "local.word_count.parallel_capable"), json!(true));
}

/// Proves S2-KE-03.
#[test]
fn mcp_json_of_a_registry_may_be_empty_or_hold_servers() {
    let workspace = Workspace::with(&[
        ("a/mcp.json", r#"{"mcp_servers": {}}"#),
        (
            "b/mcp.json",
            r#"{"mcp_servers": {"f": {"command": "x", "args": ["-y"], "env": {"A": "1"}}, "r": {"url": "https://h/mcp"}}}"#,
        ),
    ]);
    assert!(load(&workspace, &["a/mcp.json"], &[]).unwrap().servers.is_empty());
    let config = load(&workspace, &["b/mcp.json"], &[]).unwrap();
    assert_eq!(args(&config.servers[0]), ["-y"]);
    assert_eq!(env(&config.servers[0]), [("A", Some("1"))]);
    assert_eq!(remote(&config.servers[1]).url.to_string(), "https://h/mcp");
}

/// Proves S2-Q-04, S2-EC-04, S2-EC-05, X-13: a configured registry must be whole.
#[test]
fn a_registry_with_a_missing_file_stops_the_start() {
    let workspace = Workspace::with(&[
        ("haft.yaml", "registry:\n  dir: shelf\n"),
        ("gone.yaml", "registry:\n  dir: nowhere\n"),
        ("shelf/README", ""),
        ("half/tools.json", TOOL),
    ]);
    let found: String = ["haft.yaml", "gone.yaml", "half", "tools.json", "mcp.json"]
        .iter()
        .map(|file| format!("-c {file}\n{}\n", errors(load(&workspace, &[file], &[]))))
        .collect();
    insta::assert_snapshot!(workspace.stable(&found));
}

/// Proves X-13: without a registry the other formats start.
#[test]
fn without_a_registry_its_files_are_not_missed() {
    let workspace = Workspace::with(&[("haft.yaml", "servers: {s: {command: x}}")]);
    let config = load(&workspace, &["haft.yaml"], &[]).unwrap();
    assert!(config.registry_dir.is_none() && config.local.is_empty());
}

/// Proves S2-EC-06, S2-EC-07, S2-FR-012 (the part in files), S2-Q-04: line and column of invalid
/// JSON, the path of a schema violation.
#[test]
fn broken_registry_files_say_where() {
    let good_tools = r#"{"tools": []}"#;
    let good_servers = r#"{"mcp_servers": {}}"#;
    let cases = [
        ("{\n  \"tools\": [\n    {\"name\": }\n  ]\n}", good_servers),
        (good_tools, "{\"mcp_servers\": {\n"),
        (
            "{\"tools\": [\n  {\"name\": \"a\", \"config\": {\"script_path\": \"a.py\"}}\n]}",
            good_servers,
        ),
        (good_tools, "{\"mcp_servers\": {\n  \"s\": {\"command\": 5}}}"),
        ("{\"tolls\": []}", "{\"servers\": {}}"),
        ("[]", "\"text\""),
    ];
    let mut found = String::new();
    for (tools, servers) in cases {
        let workspace = Workspace::with(&[("tools.json", tools), ("mcp.json", servers)]);
        found += &errors(load(&workspace, &["tools.json", "mcp.json"], &[]));
        found.push('\n');
    }
    insta::assert_snapshot!(found);
}

fn claude_home(workspace: &Workspace) -> String {
    let here = workspace.path().display();
    format!(
        r#"{{"mcpServers": {{"everywhere": {{"command": "x"}}}}, "projects": {{
            "{here}": {{"mcpServers": {{"here": {{"command": "x"}}}}}},
            "{here}/deeper": {{"mcpServers": {{"deeper": {{"command": "x"}}}}}}}}}}"#
    )
}

/// Proves X-15: Claude keeps servers for each folder; those of the current one count.
#[test]
fn claudes_project_servers_are_those_of_the_current_folder() {
    let workspace = Workspace::new();
    workspace.write("home/.claude.json", claude_home(&workspace));
    std::fs::create_dir(workspace.path().join("deeper")).unwrap();
    let names = |folder: &str| {
        let mut options = options(&workspace, &[], &[]);
        options.files = vec![workspace.path().join("home/.claude.json")];
        options.cwd = workspace.path().join(folder);
        let config = Config::load(&options).unwrap();
        let names: Vec<_> = config.servers.iter().map(|it| it.name.clone()).collect();
        names.join(",")
    };
    assert_eq!(names(""), "everywhere,here");
    assert_eq!(names("deeper"), "everywhere,deeper");
    assert_eq!(names("home"), "everywhere");
}

const INPUTS: &str = r#"{"inputs": [
    {"id": "api-key", "type": "promptString", "description": "The key", "password": true},
    {"id": "region", "type": "promptString", "description": "Where"}],
  "servers": {"s": {"command": "x", "args": ["${input:region}"], "env": {"KEY": "${input:api-key}"}}}}"#;

/// Proves S3-REF-1: an input is answered by `--input`, by its variable, or by a person, in that order.
#[test]
fn vs_codes_inputs_are_answered() {
    let workspace = Workspace::with(&[(".vscode/mcp.json", INPUTS)]);
    let asked = std::sync::Mutex::new(Vec::new());
    let ask = |request: &InputRequest| {
        asked.lock().unwrap().push(request.clone());
        Some("asked".to_owned())
    };
    let run = |inputs: &[(&str, &str)], variables: &[(&str, &str)]| {
        let map = |pairs: &[(&str, &str)]| -> HashMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
        };
        let config = Config::load(&LoadOptions {
            files: vec![PathBuf::from(".vscode/mcp.json")],
            inputs: map(inputs),
            environment: map(variables),
            ask: Some(&ask),
            cwd: workspace.path().to_path_buf(),
            ..LoadOptions::default()
        });
        let config = config.unwrap();
        let key = env(&config.servers[0])[0].1.unwrap().to_owned();
        (args(&config.servers[0])[0].to_owned(), key)
    };
    let both = |region: &str, key: &str| (region.to_owned(), key.to_owned());
    let variables = [("INPUT_API_KEY", "variable"), ("INPUT_REGION", "variable")];
    assert_eq!(run(&[("region", "option")], &variables), both("option", "variable"));
    assert!(asked.lock().unwrap().is_empty());
    assert_eq!(run(&[], &variables[..1]), both("asked", "variable"));
    assert_eq!(run(&[("region", "option")], &[]), both("option", "asked"));
    let requests = asked.lock().unwrap();
    let request = InputRequest {
        id: "api-key".into(),
        description: "The key".into(),
        password: true,
        options: Vec::new(),
        default: None,
    };
    assert_eq!(requests.last(), Some(&request));
}

/// Proves S3-REF-1: an input's default answers for it, and its options bound the answer.
#[test]
fn an_inputs_default_and_options_count() {
    let text = r#"{"inputs": [{"id": "region", "type": "pickString", "description": "Region",
        "options": ["eu", {"label": "America", "value": "us"}], "default": "eu"}],
        "servers": {"t": {"command": "x", "args": ["${input:region}"]}}}"#;
    let workspace = Workspace::with(&[(".vscode/mcp.json", text)]);
    let files = [".vscode/mcp.json"];
    let region = |variables: &[(&str, &str)]| {
        load(&workspace, &files, variables).map(|config| args(&config.servers[0])[0].to_owned())
    };
    assert_eq!(region(&[]).unwrap(), "eu");
    assert_eq!(region(&[("INPUT_REGION", "us")]).unwrap(), "us");
    let error = region(&[("INPUT_REGION", "moon")]).unwrap_err().to_string();
    assert!(error.contains("the value of the input `region` is none of its options"), "{error}");
    assert!(error.contains("use one of `eu`, `us`"), "{error}");
}

/// Proves S3-REF-1: an input without an answer, and one that is not defined, name the remedy.
#[test]
fn an_input_without_an_answer_says_how_to_give_one() {
    let undefined = r#"{"servers": {"t": {"command": "x", "args": ["${input:nobody}"]}}}"#;
    let workspace =
        Workspace::with(&[(".vscode/mcp.json", INPUTS), ("other/.vscode/mcp.json", undefined)]);
    let files = [".vscode/mcp.json", "other/.vscode/mcp.json"];
    insta::assert_snapshot!(errors(load(&workspace, &files, &[])));
}

/// Proves S3-US1-1, S3-US1-2, S3-FR-001 (the part in files).
#[test]
fn an_agents_server_shorthand_is_npx() {
    let text = "name: a\ntools:\n  - {name: files, type: mcp, server: '@modelcontextprotocol/server-filesystem', args: [./data]}\n  - {name: memory, type: mcp, command: npx, args: ['-y', '@modelcontextprotocol/server-memory']}\n";
    let workspace = Workspace::with(&[
        ("agent.yaml", text),
        (
            "bad/agent.yaml",
            "name: a\ntools:\n  - name: files\n    type: mcp\n    server: @scope/package\n",
        ),
    ]);
    let config = load(&workspace, &["agent.yaml"], &[]).unwrap();
    let [files, memory] = &config.servers[..] else { panic!() };
    assert_eq!(stdio(files).command.expose(), "npx");
    assert_eq!(args(files), ["-y", "@modelcontextprotocol/server-filesystem", "./data"]);
    assert_eq!(args(memory), ["-y", "@modelcontextprotocol/server-memory"]);
    insta::assert_snapshot!(errors(load(&workspace, &["bad/agent.yaml"], &[])));
}

/// Proves S0-24 for a toolbox beside a registry: the warning names both files, and the start continues.
#[test]
fn a_local_tool_that_the_toolbox_does_not_list_is_a_warning() {
    let tools = r#"{"tools": [
        {"name": "listed", "description": "d", "type": "local", "input_schema": {"type": "object"}, "config": {"script_path": "t.py"}},
        {"name": "unlisted", "description": "d", "type": "local", "input_schema": {"type": "object"}, "config": {"script_path": "t.py"}}]}"#;
    let toolbox = "myai: {toolbox: {tools: [{name: listed}], mcps: []}}\n";
    let other = "tools: [{name: unlisted, timeout: 5s}]\n";
    let workspace =
        Workspace::with(&[("tools.json", tools), ("toolbox.yaml", toolbox), ("haft.yaml", other)]);
    let config = load(&workspace, &["haft.yaml", "toolbox.yaml", "tools.json"], &[]).unwrap();
    let warnings: Vec<_> =
        config.warnings.iter().filter(|it| it.problem.contains("not listed")).collect();
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert_eq!(
        warning.problem,
        "tool `unlisted` of `tools.json` is not listed in `toolbox.tools` of `toolbox.yaml`"
    );
    assert_eq!(
        warning.remedy.to_string(),
        "add `- name: unlisted` to `toolbox.tools`, or delete the tool"
    );
    assert_eq!(config.local.len(), 2);
    let alone = load(&workspace, &["haft.yaml", "tools.json"], &[]).unwrap();
    assert!(alone.warnings.iter().all(|it| !it.problem.contains("not listed")));
}
