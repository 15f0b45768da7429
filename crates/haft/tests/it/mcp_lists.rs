//! Lists of servers besides tools and after the start: prompts, resources, unusual names, changing
//! lists.

use haft::{Content, Message, ResourceInfo, ServerState, Status, ToolCall};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use testkit::LogCapture;

use super::mcp_support::{Stage, answer, call, names};
use super::support::until;

fn arguments(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

/// Proves S3-US4-2, S3-US3-6, S3-FR-014, S0-12: prompts are listed and become messages with roles
/// and converted content.
#[tokio::test]
async fn prompts_are_listed_and_become_messages() {
    let stage = Stage::new();
    let messages = json!([
        {"role": "user", "content": {"type": "text", "text": "Look:"}},
        {"role": "assistant", "content": {"type": "image", "data": "AAEC", "mimeType": "image/png"}},
    ]);
    let prompts = json!([
        {"name": "picture", "description": "Shows one.", "arguments": [{"name": "of", "required": true}], "messages": messages},
        {"name": "plain"},
    ]);
    let scenario = json!({"prompts": prompts, "page_size": 1, "tools": ["echo"]});
    let runtime = stage.start([stage.stdio("one", scenario, json!({}))], json!({})).await;
    let listed = json!(runtime.prompts());
    assert_eq!(listed[0]["server"], json!("one"));
    assert_eq!(listed[0]["name"], json!("picture"));
    assert_eq!(listed[0]["description"], json!("Shows one."));
    assert_eq!(listed[0]["arguments"][0]["name"], json!("of"));
    assert_eq!(listed[1]["name"], json!("plain"), "of the second page");
    let got = runtime.prompt("one", "picture", &arguments(&json!({"of": "a cat"}))).await.unwrap();
    let image = Content::Image { data: "AAEC".into(), mime_type: "image/png".into() };
    let expected = [
        Message { role: "user".into(), content: vec![Content::text("Look:")] },
        Message { role: "assistant".into(), content: vec![image] },
    ];
    assert_eq!(got, expected);
    let asked = stage.messages("one", "prompts/get").remove(0);
    assert_eq!(asked["params"]["arguments"], json!({"of": "a cat"}));
    let missing = runtime.prompt("one", "picture", &arguments(&json!({}))).await.unwrap_err();
    assert!(missing.to_string().contains("missing argument"), "{missing}");
}

/// Proves S3-FR-014, S1-26: with `load_prompts: false` no list is requested.
#[tokio::test]
async fn prompts_are_left_alone_where_they_are_not_wanted() {
    let stage = Stage::new();
    let server = stage.stdio("one", json!({}), json!({"load_prompts": false}));
    let runtime = stage.start([server], json!({})).await;
    assert!(runtime.prompts().is_empty());
    assert!(stage.messages("one", "prompts/list").is_empty());
}

/// Proves S0-12: `prompts: [p]` keeps those; one that is missing is a WARNING and not fatal.
#[tokio::test]
async fn named_prompts_are_fetched_and_a_missing_one_is_a_warning() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let server =
        stage.stdio("one", json!({"tools": ["echo"]}), json!({"prompts": ["plain", "gone"]}));
    let runtime = stage.start([server], json!({})).await;
    let listed: Vec<String> = runtime.prompts().into_iter().map(|it| it.name).collect();
    assert_eq!(listed, ["plain"]);
    let expected = "WARNING: MCP server 'one': it has no prompt `gone`, which `prompts` asks for";
    assert_eq!(heard.from("WARNING"), [expected]);
    assert_eq!(runtime.servers()[0].state, ServerState::Degraded);
    assert_eq!(call(&runtime, "echo", json!({})).await.status, Status::Success);
}

/// Proves S2-US4-1, S2-US4-2, S2-US4-T, S3-US3-6: listed with their templates, and read.
#[tokio::test]
async fn resources_are_listed_and_read() {
    let stage = Stage::new();
    let scenario = json!({"page_size": 1, "tools": ["echo"]});
    let runtime = stage.start([stage.stdio("one", scenario, json!({}))], json!({})).await;
    assert_eq!(stage.messages("one", "initialize").len(), 1, "connected at start");
    let listed = runtime.resources("one").await.unwrap();
    let uris: Vec<&str> = listed
        .iter()
        .map(|info| match info {
            ResourceInfo::Resource { resource, .. } => resource.uri.as_str(),
            ResourceInfo::Template { template, .. } => template.uri_template.as_str(),
        })
        .collect();
    assert_eq!(uris, ["test://static-text", "test://static-binary", "test://template/{id}/data"]);
    let resource = |uri: &str, mime: &str, text: Option<&str>, data: Option<&str>| {
        let (text, data) = (text.map(Into::into), data.map(Into::into));
        let about = haft::ResourceAbout::default();
        Content::Resource { uri: uri.into(), mime_type: Some(mime.into()), text, data, about }
    };
    let read = async |uri: &str| runtime.read_resource("one", uri).await.unwrap().remove(0);
    assert_eq!(
        read("test://static-text").await,
        resource("test://static-text", "text/plain", Some("This is a text resource."), None)
    );
    assert_eq!(
        read("test://static-binary").await,
        resource("test://static-binary", "application/octet-stream", None, Some("AAEC/w=="))
    );
    assert_eq!(
        read("test://template/7/data").await,
        resource("test://template/7/data", "text/plain", Some("data of 7"), None)
    );
    let missing = runtime.read_resource("one", "test://nothing").await.unwrap_err();
    assert!(missing.to_string().starts_with("MCP error: "), "{missing}");
    assert!(runtime.resources("nobody").await.is_err());
}

/// Proves S3-US4-3, S3-FR-015: offered with dashes, called by its own name; two names that become
/// one are a WARNING and get distinct names.
#[tokio::test]
async fn odd_names_are_offered_with_dashes_and_called_by_their_own() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let tools = json!([tool("a b/c!"), tool("x.y"), tool("x y"), tool("größe")]);
    let runtime =
        stage.start([stage.stdio("one", json!({ "tools": tools }), json!({}))], json!({})).await;
    assert_eq!(names(&runtime), ["a-b-c-", "x-y", "x-y-887fcea6", "gr--e"]);
    assert_eq!(runtime.tool("a-b-c-").unwrap().original_name.as_deref(), Some("a b/c!"));
    for tool in names(&runtime) {
        assert_eq!(call(&runtime, &tool, json!({})).await.status, Status::Success, "{tool}");
    }
    let calls = stage.messages("one", "tools/call");
    let called: Vec<&str> = calls.iter().filter_map(|it| it["params"]["name"].as_str()).collect();
    assert_eq!(called, ["a b/c!", "x.y", "x y", "größe"]);
    let warnings = heard.from("WARNING");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("'x.y'") && warnings[0].contains("'x y'"), "{warnings:?}");
}

/// Proves S3-US4-4, S3-FR-016, S0-36, S0-83: added and removed without a restart, announced with
/// T7; a notification during a call causes no deadlock.
#[tokio::test]
async fn tools_come_and_go_while_the_toolbox_runs() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let sleeping = runtime.call(ToolCall::new("sleep", &json!({"ms": 300})));
    let (slept, added) =
        tokio::join!(sleeping, call(&runtime, "add_tool", json!({"name": "fresh"})));
    assert_eq!((slept.status, added.status), (Status::Success, Status::Success));
    until(|| runtime.tool("fresh").is_some()).await;
    assert_eq!(answer(&runtime, "fresh", json!({"n": 1})).await, json!({"n": 1}));
    let news = "INFO: New tool 'fresh' discovered from MCP server 'one', registering with default configuration";
    assert_eq!(heard.count(news), 1);
    call(&runtime, "remove_tool", json!({"name": "fresh"})).await;
    until(|| runtime.tool("fresh").is_none()).await;
    let gone = call(&runtime, "fresh", json!({})).await;
    assert_eq!(gone.error.unwrap().code, haft::Code::UnknownTool);
    assert_eq!(stage.starts("one"), 1);
}

/// Proves S3-FR-016: a changed list of prompts is fetched again.
#[tokio::test]
async fn prompts_come_while_the_toolbox_runs() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    call(&runtime, "add_prompt", json!({"name": "fresh"})).await;
    until(|| runtime.prompts().iter().any(|prompt| prompt.name == "fresh")).await;
}

/// `list_changed: ignore`: the notice changes nothing.
#[tokio::test]
async fn changes_may_be_ignored() {
    let stage = Stage::new();
    let server = stage.stdio("one", json!({}), json!({"list_changed": "ignore"}));
    let other = stage.stdio("two", json!({"tools": ["annotated"]}), json!({}));
    let runtime = stage.start([server, other], json!({})).await;
    let before = stage.messages("one", "tools/list").len();
    call(&runtime, "add_tool", json!({"name": "fresh"})).await;
    // This request follows the notification, which therefore has been handled.
    runtime.ping("one").await.unwrap();
    assert!(runtime.tool("fresh").is_none());
    assert_eq!(stage.messages("one", "tools/list").len(), before);
}

/// A storm of notices leads to a few refreshes, and calls continue meanwhile.
#[tokio::test]
async fn a_storm_of_notices_is_gathered() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let before = stage.messages("one", "tools/list").len();
    assert_eq!(call(&runtime, "storm", json!({"count": 500})).await.status, Status::Success);
    call(&runtime, "add_tool", json!({"name": "fresh"})).await;
    until(|| runtime.tool("fresh").is_some()).await;
    let refreshes = stage.messages("one", "tools/list").len() - before;
    assert!(refreshes < 10, "{refreshes} refreshes");
}

/// Proves X-8: an unconfigured tool that a strict server adds later is refused with T1 at ERROR;
/// everything else continues.
#[tokio::test]
async fn a_strict_server_cannot_add_a_tool_later() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let scenario = json!({"tools": ["add_tool", "echo"]});
    let server = stage.stdio("one", scenario, json!({"mode": "strict"}));
    let tools = json!({"tools": [{"name": "add_tool"}, {"name": "echo"}, {"name": "planned"}]});
    let runtime = stage.start([server], tools).await;
    call(&runtime, "add_tool", json!({"name": "unplanned"})).await;
    until(|| heard.from("ERROR").len() == 1).await;
    let error = heard.from("ERROR").remove(0);
    assert!(
        error.starts_with("ERROR: Tool 'unplanned' from MCP server 'one' is not configured in the toolbox.\n\nMCP Server: one\nMode: strict\nMissing Tool: unplanned\n\nConfigured tools: [add_tool, echo, planned]"),
        "{error}"
    );
    call(&runtime, "add_tool", json!({"name": "planned"})).await;
    until(|| runtime.tool("planned").is_some()).await;
    assert_eq!(names(&runtime), ["add_tool", "echo", "planned"]);
    assert_eq!(heard.from("ERROR").len(), 1, "said once");
}

/// Proves S3-SC-008: a server whose prompts cannot be listed keeps its tools and names the setting.
#[tokio::test]
async fn a_server_without_a_list_of_prompts_keeps_its_tools() {
    let broken = json!({"errors_on": {"prompts/list": {"code": -32603, "message": "no prompts"}}});
    let cases = [(broken, "no prompts"), (json!({"silent_on": ["prompts/list"]}), "within 50ms")];
    for (scenario, cause) in cases {
        let stage = Stage::new();
        let settings = json!({"request_timeout": "50ms", "protocol": "legacy"});
        let runtime = stage.start([stage.stdio("one", scenario, settings)], json!({})).await;
        let info = &runtime.servers()[0];
        assert_eq!(info.state, ServerState::Degraded, "{info:?}");
        let reason = info.reason.as_deref().unwrap();
        assert!(reason.contains(cause) && reason.contains("load_prompts: false"), "{reason}");
        assert!(names(&runtime).contains(&"echo".to_owned()));
        assert_eq!(answer(&runtime, "echo", json!({"n": 1})).await, json!({"n": 1}));
    }
}

/// Proves S3-SC-008: a server whose resources cannot be listed keeps its tools.
#[tokio::test]
async fn a_server_without_a_list_of_resources_keeps_its_tools() {
    let broken = json!({"errors_on": {"resources/list": {"code": -32603, "message": "none"}}});
    for scenario in [broken, json!({"silent_on": ["resources/list"]})] {
        let stage = Stage::new();
        let settings = json!({"request_timeout": "50ms"});
        let runtime = stage.start([stage.stdio("one", scenario, settings)], json!({})).await;
        assert!(runtime.all_resources(|_| true).await.is_empty());
        assert_eq!(answer(&runtime, "echo", json!({"n": 1})).await, json!({"n": 1}));
    }
}
