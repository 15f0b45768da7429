//! Profiles: parts of the toolbox, each with its own endpoint.

use serde_json::{Value, json};
use testkit::fixture::events;
use testkit::{Program, Workspace, eventually};

use crate::endpoint::{Served, configure};
use crate::support::{Client, server, workspace};

/// Two servers with tools, prompts and resources, one local tool, and profiles.
pub(crate) fn toolbox(profiles: &Value) -> Workspace {
    let own = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let having = |name: &str, tools: &[&str]| {
        server(&json!({
            "tools": tools.iter().map(|tool| own(tool)).collect::<Vec<_>>(),
            "prompts": [{"name": format!("{name}_prompt")}],
            "resources": [{"name": format!("{name}_notes"), "uri": format!("test://{name}"), "text": name}],
        }))
    };
    let workspace = workspace(&json!({
        "files": having("files", &["read_file", "write_file"]),
        "mail": having("mail", &["read_mail", "send_mail"]),
    }));
    configure(&workspace, &json!({"profiles": profiles}));
    workspace
}

/// A call of a hidden tool leaves its entry in the log like any other, so that probing is visible.
#[test]
fn a_call_of_a_hidden_tool_is_logged() {
    let workspace = toolbox(&json!({"files": {"servers": ["files"]}}));
    let mut client = Client::connect_with(&workspace, &["--profile", "files"]);
    assert_eq!(client.tools().len(), 2);
    for hidden in ["send_mail", "nothing"] {
        let answer = client.ask(&json!(1), "tools/call", &json!({"name": hidden}));
        assert_eq!(answer["error"]["message"], format!("Unknown tool: {hidden}"));
    }
    let log = Program::new(env!("CARGO_BIN_EXE_haft"), &workspace).args(&["log", "--json"]).run();
    let entry = |tool: &str| {
        let lines = log.stdout.lines().filter(|line| line.contains(&format!("\"{tool}\"")));
        lines.filter(|line| line.contains("UnknownTool")).count()
    };
    assert_eq!((entry("send_mail"), entry("nothing")), (1, 1), "{}", log.stdout);
}

/// A profile of servers: their tools, prompts and resources, and nothing of the others, in no list and by no
/// name.
#[test]
fn a_profile_of_servers_hides_everything_of_the_others() {
    let workspace = toolbox(&json!({"files": {"servers": ["files"]}}));
    let mut client = Client::connect_with(&workspace, &["--profile", "files"]);
    assert_eq!(client.tools(), ["read_file", "write_file"]);
    let mut list = |method: &str, field: &str, key: &str| -> Vec<Value> {
        let mut answer = client.ask(&json!(1), method, &json!({}));
        let list = answer["result"][field].take();
        list.as_array().unwrap().iter().map(|it| it[key].clone()).collect()
    };
    assert_eq!(list("prompts/list", "prompts", "name"), ["files_prompt"]);
    assert_eq!(list("resources/list", "resources", "uri"), ["test://files"]);
    assert!(client.call("read_file", &json!({}))["content"].is_array());

    for hidden in ["send_mail", "greet", "nothing"] {
        let params = json!({"name": hidden, "arguments": {"name": "you"}});
        let answer = client.ask(&json!(2), "tools/call", &params);
        let message = format!("Unknown tool: {hidden}");
        assert_eq!(answer["error"], json!({"code": -32602, "message": message}));
    }
    let prompt = client.ask(&json!(3), "prompts/get", &json!({"name": "mail_prompt"}));
    assert_eq!(prompt["error"]["code"], -32602, "{prompt}");
    let reference = json!({"ref": {"type": "ref/prompt", "name": "mail_prompt"},
        "argument": {"name": "a", "value": ""}});
    let completion = client.ask(&json!(4), "completion/complete", &reference);
    assert_eq!(completion["error"]["code"], -32602, "{completion}");
    // Also right after the start, when no server is connected yet.
    let mut early = Client::connect_with(&workspace, &["--profile", "files"]);
    let answer = early.ask(&json!(1), "tools/call", &json!({"name": "send_mail"}));
    assert_eq!(answer["error"]["message"], "Unknown tool: send_mail");
}

/// Servers, tools and exclusions work together, by name and by pattern.
#[test]
fn patterns_select_servers_and_tools() {
    let workspace = toolbox(&json!({
        "readers": {"tools": ["read_*", "greet"]},
        "both": {"servers": ["ma*", "local"], "tools": ["*mail", "greet"], "exclude_tools": ["send*"]},
        "local": {"servers": ["local"]},
        "but": {"exclude_tools": ["*_file"]},
        "everything": {},
    }));
    let served = Served::start(&workspace);
    let tools = |profile: &str| served.open(&format!("/mcp/{profile}"), None).tools();
    assert_eq!(tools("readers"), ["greet", "read_file", "read_mail"]);
    assert_eq!(tools("both"), ["greet", "read_mail"]);
    assert_eq!(tools("local"), ["greet"]);
    assert_eq!(tools("but"), ["greet", "read_mail", "send_mail"]);
    assert_eq!(tools("everything").len(), 5);
    assert_eq!(served.open("/mcp", None).tools().len(), 5);
    // A profile with tools and without servers means those tools, and not the other tools of their servers.
    let prompts = |profile: &str| {
        served.open(&format!("/mcp/{profile}"), None).names("prompts/list", "prompts")
    };
    assert_eq!(prompts("readers"), [""; 0]);
    assert_eq!(prompts("both"), ["mail_prompt"]);
    assert_eq!(prompts("local"), [""; 0]);
    assert_eq!(prompts("but"), ["files_prompt", "mail_prompt"]);
}

#[test]
fn an_unknown_profile_is_reported_with_the_known_ones() {
    let workspace = toolbox(&json!({"reader": {"tools": ["read_*"]}, "all-mail": {}}));
    let served = Served::start(&workspace);
    let problem = |path: &str| {
        let answer = served.initialize(path, None);
        assert_eq!(answer.status, 404);
        format!(
            "{}; {}",
            answer.body["detail"].as_str().unwrap(),
            answer.body["remedy"].as_str().unwrap()
        )
    };
    assert_eq!(problem("/mcp/raeder"), "there is no profile `raeder`; did you mean `/mcp/reader`?");
    assert_eq!(
        problem("/mcp/zzz"),
        "there is no profile `zzz`; there are `/mcp/reader`, `/mcp/all-mail`, and `/mcp` for the whole toolbox"
    );
    let run = |args: &[&str]| Program::new(env!("CARGO_BIN_EXE_haft"), &workspace).args(args).run();
    let finished = run(&["mcp", "--profile", "raeder"]);
    assert_eq!(finished.code, 2);
    insta::assert_snapshot!(finished.stderr, @r"
    error: there is no profile `raeder`
      help: did you mean `reader`?
    ");
    assert_eq!(run(&["mcp", "--surface", "some"]).code, 2);
}

/// Sessions belong to their endpoint.
#[test]
fn a_session_is_of_one_endpoint_only() {
    let workspace = toolbox(&json!({"reader": {"tools": ["read_*"]}}));
    let served = Served::start(&workspace);
    let session = served.open("/mcp/reader", None);
    assert!(session.is_open());
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(served.post("/mcp", None, Some(&session.id), &ping).status, 404);
}

/// The modern era has no sessions, and the same view.
#[test]
fn the_modern_era_sees_the_same_part() {
    let workspace = toolbox(&json!({"reader": {"tools": ["read_*"]}}));
    let served = Served::start(&workspace);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
    ];
    let answer = served.request("POST", "/mcp/reader", &headers, &message.to_string());
    let names: Vec<&Value> =
        answer.body["result"]["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["read_file", "read_mail"]);
}

/// Only servers that the profile can show are started, also when the files are loaded again.
#[test]
fn a_profile_starts_only_servers_that_it_can_show() {
    let workspace = Workspace::new();
    let having = |name: &str, tool: &str| {
        let facts = workspace.path().join(format!("{name}.facts"));
        server(
            &json!({"facts": facts, "tools": [{"name": tool, "inputSchema": {"type": "object"}}]}),
        )
    };
    let configure = |profile: &Value| {
        let servers =
            json!({"files": having("files", "read_file"), "mail": having("mail", "send_mail")});
        let config = json!({"servers": servers, "profiles": {"part": profile}});
        workspace.write("haft.json", config.to_string());
    };
    let starts =
        |name: &str| events(&workspace.path().join(format!("{name}.facts")), "start").len();
    configure(&json!({"tools": ["files/*"]}));
    let mut client = Client::connect_with(&workspace, &["--profile", "part"]);
    assert_eq!(client.tools(), ["read_file"]);
    let answer = client.ask(&json!(1), "tools/call", &json!({"name": "send_mail"}));
    assert_eq!(answer["error"]["message"], "Unknown tool: send_mail");
    assert_eq!((starts("files"), starts("mail")), (1, 0));

    configure(&json!({"servers": ["files", "mail"]}));
    eventually("the tools of the other server", || {
        (client.tools() == ["read_file", "send_mail"]).then_some(())
    });
    assert_eq!((starts("files"), starts("mail")), (1, 1));
}
