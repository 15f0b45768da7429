//! Strict and dynamic servers at start: registration, log records, and violations.

use haft::registry::connect_failure;
use haft::{ConnectFailed, ServerState, StartError, Status};
use serde_json::{Value, json};
use testkit::LogCapture;

use super::mcp_support::{Stage, call, names, with};

/// T1 for the tool `text` of the server `one`.
fn unconfigured(configured: &str) -> String {
    format!(
        "Tool 'text' from MCP server 'one' is not configured in the toolbox.\n\n\
         MCP Server: one\nMode: strict\nMissing Tool: text\n\n\
         Configured tools: [{configured}]\n\n\
         To resolve:\n\
         1. Add the tool to myai.toolbox.tools in your configuration, OR\n\
         2. Change the MCP server mode to 'dynamic' and provide default_tool_config"
    )
}

fn entries(tools: &[&str]) -> Value {
    let entries: Vec<Value> = tools.iter().map(|name| json!({ "name": name })).collect();
    json!({ "tools": entries })
}

/// A dynamic server's own default.
fn dynamic() -> Value {
    json!({"mode": "dynamic", "default_tool_config": {"max_instances": 10, "timeout": "45s"}})
}

/// Proves S0-25, S0-27, S0-42, S0-52, S0-58, S0-64: the whole text, as an error and at ERROR; the
/// process of the server is gone.
#[tokio::test]
async fn one_unconfigured_tool_of_a_strict_server_stops_the_start() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let scenario = json!({"tools": ["echo", "text"]});
    let server = stage.stdio("one", scenario, json!({"mode": "strict"}));
    let refused = stage.builder([server], entries(&["echo", "other"])).start().await;
    let Err(StartError::Strict { texts }) = refused else { panic!("started") };
    assert_eq!(texts, [unconfigured("echo, other")]);
    assert_eq!(heard.from("ERROR"), [format!("ERROR: {}", unconfigured("echo, other"))]);
    assert_eq!(stage.messages("one", "initialize").len(), 1, "it was connected to know");
    assert!(!testkit::is_running(stage.pids("one")[0]));
}

/// Proves S0-4: a default on a strict server does not replace its list.
#[tokio::test]
async fn a_default_does_not_help_a_strict_server() {
    let stage = Stage::new();
    let settings = with(dynamic(), json!({"mode": "strict"}));
    let server = stage.stdio("one", json!({"tools": ["text"]}), settings);
    let refused = stage.builder([server], json!({})).start().await;
    let Err(StartError::Strict { texts }) = refused else { panic!("started") };
    assert_eq!(texts, [unconfigured("")]);
}

/// Proves S0-25, S0-26, S0-28, S0-60, S1-30: every page is fetched, each tool has its own limits.
#[tokio::test]
async fn a_strict_server_registers_every_page_with_explicit_settings() {
    let stage = Stage::new();
    let scenario = json!({"tools": ["echo", "text", "empty", "fail", "sleep"], "page_size": 2});
    let server = stage.stdio("one", scenario, json!({"mode": "strict"}));
    let tools = json!({"tools": [
        {"name": "echo", "max_instances": 20, "timeout": "PT1M"}, {"name": "text", "timeout": 7},
        {"name": "empty"}, {"name": "fail"}, {"name": "sleep"},
    ]});
    let runtime = stage.start([server], tools).await;
    assert_eq!(names(&runtime), ["echo", "text", "empty", "fail", "sleep"]);
    assert_eq!(stage.messages("one", "tools/list").len(), 3);
    let echo = runtime.tool("echo").unwrap();
    assert_eq!(echo.setting("max_instances"), Some(&json!(20)));
    assert_eq!(echo.setting("timeout"), Some(&json!("60s")));
    let text = runtime.tool("text").unwrap();
    assert_eq!(text.setting("max_instances"), Some(&json!(5)));
    assert_eq!(text.setting("timeout"), Some(&json!("7s")));
    assert_eq!(json!(runtime.tools())[0]["config_origin"], json!("explicit"));
}

/// Proves S0-29, S0-30, S0-35, S0-48, S0-67: in either mode an entry whose tool is gone is only a
/// WARNING.
#[tokio::test]
async fn a_configured_tool_that_is_gone_is_a_warning() {
    for mode in [json!({"mode": "strict"}), dynamic()] {
        let stage = Stage::new();
        let (heard, _guard) = LogCapture::start();
        let server = stage.stdio("one", json!({"tools": ["echo"]}), mode);
        let tools = json!({"tools": [{"name": "echo"}, {"name": "gone", "mcp": "one"}]});
        let runtime = stage.start([server], tools).await;
        assert_eq!(
            heard.from("WARNING"),
            [
                "WARNING: Tool 'gone' was configured but is no longer available from MCP server 'one'"
            ]
        );
        assert_eq!(names(&runtime), ["echo"]);
        assert_eq!(call(&runtime, "echo", json!({})).await.status, Status::Success);
    }
}

/// Proves S0-31, S0-32, S0-33, S0-34, S0-39, S0-47, S0-61: merged with an entry, otherwise the
/// default and one INFO line.
#[tokio::test]
async fn a_dynamic_server_merges_entries_and_uses_its_default_for_the_rest() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let scenario = json!({"tools": ["echo", "text", "empty"], "page_size": 1});
    let server = stage.stdio("one", scenario, dynamic());
    let tools = json!({"tools": [{"name": "text", "max_instances": 20}]});
    let runtime = stage.start([server], tools).await;
    let limits: Vec<_> = runtime
        .tools()
        .into_iter()
        .map(|tool| {
            let setting = |key| tool.setting(key).unwrap().clone();
            let origin = json!(tool)["config_origin"].clone();
            json!([tool.name, setting("max_instances"), setting("timeout"), origin])
        })
        .collect();
    let expected = json!([
        ["echo", 10, "45s", "default"],
        ["text", 20, "45s", "merged"],
        ["empty", 10, "45s", "default"],
    ]);
    assert_eq!(json!(limits), expected);
    let line = |tool| {
        format!(
            "DEBUG: Tool '{tool}' from MCP 'one' not explicitly configured, using default configuration"
        )
    };
    assert_eq!(defaults_and_news(&heard), [line("echo"), line("empty")]);
}

/// The lines about tools without an entry, and about new ones. Outside toolbox files the first kind is for debugging.
fn defaults_and_news(heard: &LogCapture) -> Vec<String> {
    let texts = ["not explicitly configured", "New tool"];
    let mut lines = heard.from("DEBUG");
    lines.retain(|line| texts.iter().any(|text| line.contains(text)));
    lines
}

/// Proves S0-36, S0-37, S0-38, S0-47: the first run announces nothing; the second one logs T7 for
/// the new tool, and registers it with the default.
#[tokio::test]
async fn a_tool_that_came_since_the_last_run_is_announced() {
    let stage = Stage::new();
    let run = async |tools: Value| {
        let (heard, _guard) = LogCapture::start();
        let server = stage.stdio("one", json!({ "tools": tools }), dynamic());
        let runtime = stage.start([server], json!({})).await;
        runtime.shutdown(std::time::Duration::ZERO).await;
        (defaults_and_news(&heard), runtime)
    };
    let default = |tool| {
        format!(
            "DEBUG: Tool '{tool}' from MCP 'one' not explicitly configured, using default configuration"
        )
    };
    assert_eq!(run(json!(["echo"])).await.0, [default("echo")]);
    let (heard, runtime) = run(json!(["echo", "text"])).await;
    let news = "INFO: New tool 'text' discovered from MCP server 'one', registering with default \
                configuration";
    assert_eq!(heard, [default("echo"), news.to_owned(), default("text")]);
    assert_eq!(runtime.tool("text").unwrap().setting("max_instances"), Some(&json!(10)));
    let (heard, _) = run(json!(["echo", "text"])).await;
    assert_eq!(heard, [default("echo"), default("text")], "nothing is new twice");
}

/// Proves S0-45, S0-48, S0-66, S3-FR-021: T3 with the command line, and nothing else.
#[tokio::test]
async fn a_server_without_tools_is_a_warning() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let server = stage.stdio("one", json!({"tools": 0}), json!({"mode": "strict"}));
    let config = stage.config([server], json!({}));
    let endpoint = config.servers[0].endpoint.to_string();
    let runtime = haft::Runtime::start(config).await.unwrap();
    let expected = format!("WARNING: MCP server 'one' at {endpoint} returned no tools");
    assert_eq!(heard.from("WARNING"), [expected]);
    assert_eq!(runtime.servers()[0].state, ServerState::Ready);
}

/// Proves S0-43, S0-52, S0-63, S3-US5-1, S3-FR-021, X-1: T2 with the command, at ERROR, and no
/// toolbox; `required: true` sets it for one server.
#[tokio::test]
async fn a_server_that_must_be_there_stops_the_start() {
    for switch in [json!({"on_connect_failure": "exit"}), json!({"required": true})] {
        let stage = Stage::new();
        let (heard, _guard) = LogCapture::start();
        let missing = with(json!({"command": "nope-not-here", "args": ["--x"]}), switch);
        let refused =
            stage.builder([("one", missing), stage.plain("two")], json!({})).start().await;
        let Err(StartError::Connect { failed }) = refused else { panic!("started") };
        let [ConnectFailed { server, text }] = &failed[..] else { panic!("{failed:?}") };
        assert_eq!(server, "one");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Failed to connect to MCP server 'one' at nope-not-here --x");
        assert!(lines[1].starts_with("Error: ") && lines[1].contains("`nope-not-here`"), "{text}");
        let error = lines[1].strip_prefix("Error: ").unwrap();
        assert_eq!(*text, connect_failure("one", &"nope-not-here --x", error));
        assert_eq!(heard.from("ERROR"), [format!("ERROR: {text}")]);
    }
}

/// Proves S0-43, S0-86: of several servers that must be there and are not, each is named.
#[tokio::test]
async fn every_server_that_stops_the_start_is_named() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let missing = |command: &str| json!({"command": command, "on_connect_failure": "exit"});
    let servers = [("one", missing("nope-1")), stage.plain("two"), ("three", missing("nope-3"))];
    let refused = stage.builder(servers, json!({})).start().await;
    let Err(error @ StartError::Connect { .. }) = refused else { panic!("started") };
    let text = error.to_string();
    for line in ["MCP server 'one' at nope-1", "MCP server 'three' at nope-3"] {
        assert!(text.contains(&format!("Failed to connect to {line}")), "{text}");
    }
    let remedy = "set `on_connect_failure: skip` for `one` and `three` to start without them";
    assert_eq!(error.remedy().as_deref(), Some(remedy));
    assert_eq!(heard.from("ERROR").len(), 2);
}

/// Proves S1-16, S1-17, X-1: one WARNING with the cause; the other server's tools work.
#[tokio::test]
async fn a_server_that_may_be_missing_is_skipped() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let missing = json!({"command": "nope-not-here", "on_connect_failure": "skip"});
    let two = stage.stdio("two", json!({"tools": ["echo"]}), json!({}));
    let runtime = stage.start([("one", missing), two], json!({})).await;
    let warnings = heard.from("WARNING");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let start = "WARNING: mcp: server 'one' failed to connect: ";
    assert!(warnings[0].starts_with(start) && warnings[0].contains("nope-not-here"));
    assert_eq!(names(&runtime), ["echo"]);
    assert_eq!(call(&runtime, "echo", json!({})).await.status, Status::Success);
    let states: Vec<_> = runtime.servers().iter().map(|it| it.state).collect();
    assert_eq!(states, [ServerState::Unavailable, ServerState::Ready]);
}

/// Proves S0-59, S0-62, S0-68, S1-1: local, strict and dynamic tools in one registry; the very
/// same server switched to dynamic starts with what it refused before.
#[tokio::test]
async fn local_strict_and_dynamic_tools_live_in_one_registry() {
    let stage = Stage::new();
    let local = || {
        let schema = json!({"type": "object"});
        haft::FunctionTool::new("here", "Runs here.", schema, async |_, _| {
            Ok(haft::ToolOutput::from_text("local"))
        })
    };
    let servers = |mode: Value| {
        [
            stage.stdio("one", json!({"tools": ["text", "echo"]}), mode),
            stage.stdio("two", json!({"tools": ["empty"]}), dynamic()),
        ]
    };
    let strict = stage.builder(servers(json!({"mode": "strict"})), entries(&["here", "echo"]));
    let refused = strict.tool(local()).start().await;
    assert!(matches!(refused, Err(StartError::Strict { .. })));
    let switched = stage.builder(servers(dynamic()), entries(&["here", "echo"]));
    let runtime = switched.tool(local()).start().await.unwrap();
    assert_eq!(names(&runtime), ["here", "text", "echo", "empty"]);
    assert_eq!(runtime.tool("text").unwrap().setting("max_instances"), Some(&json!(10)));
    for tool in names(&runtime) {
        assert_eq!(call(&runtime, &tool, json!({})).await.status, Status::Success, "{tool}");
    }
}
