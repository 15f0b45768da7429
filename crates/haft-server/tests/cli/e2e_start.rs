//! Starts with real servers: what stops them, with which text and exit code.

use serde_json::{Value, json};
use testkit::fixture::messages;
use testkit::{Finished, Workspace};

use super::e2e_support::{mcp, native, serve, stdio, toolbox};
use crate::run;

const LIST: [&str; 5] = ["-c", "toolbox.yaml", "tools", "list", "--json"];

fn list(workspace: &Workspace) -> Finished {
    run(workspace, &LIST)
}

/// The names of the tools and whose settings each has.
fn listed(finished: &Finished) -> Vec<(String, String)> {
    let tools: Vec<Value> = serde_json::from_str(&finished.stdout).unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    tools.iter().map(|it| (word(&it["name"]), word(&it["config_origin"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, origin)| ((*name).into(), (*origin).into())).collect()
}

/// Proves S0-10, S0-24, S0-25, S0-59, S0-91: strict and dynamic servers over streamable HTTP, local tools
/// before them, each of which the toolbox should list.
#[test]
fn a_mixed_toolbox_starts() {
    let workspace = crate::toolbox();
    let strict = serve(&workspace, "strict", json!({"tools": ["text"]}));
    let dynamic = serve(&workspace, "dynamic", json!({"tools": ["empty", "stats"]}));
    let mcps = [mcp("s", &strict.url, "strict"), mcp("d", &dynamic.url, "dynamic")];
    toolbox(&workspace, &["text", "stats"], &mcps);
    let finished = run(&workspace, &[&["-c", "haft.yaml"], &LIST[..]].concat());
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let local = ["greet", "echo", "fail", "wait"].map(|name| (name, "explicit"));
    let remote = [("text", "explicit"), ("empty", "default"), ("stats", "merged")];
    assert_eq!(listed(&finished), pairs(&[&local[..], &remote[..]].concat()));
    // An entry of `tools.json` is a configuration of its own; the toolbox's document wants it listed all the same.
    let unlisted = [("greet", 2, 0), ("echo", 5, 1), ("fail", 6, 2), ("wait", 7, 3)].map(|(name, line, at)| {
        format!(
            "WARNING: tools/tools.json:{line}:3: tools[{at}]: tool `{name}` of `tools/tools.json` is not listed in \
             `toolbox.tools` of `toolbox.yaml`; add `- name: {name}` to `toolbox.tools`, or delete the tool\n"
        )
    });
    let info =
        "INFO: Tool 'empty' from MCP 'd' not explicitly configured, using default configuration\n";
    assert_eq!(finished.stderr, format!("{}{info}", unlisted.concat()));
    assert_eq!(messages(&workspace.path().join("strict.facts"), "initialize").len(), 1);
}

/// Proves S0-60, S0-61, S0-68: only strict, then the same switched to dynamic.
#[test]
fn a_toolbox_of_one_mode_starts() {
    let workspace = Workspace::new();
    let server = serve(&workspace, "one", json!({"tools": ["echo", "text"]}));
    toolbox(&workspace, &["echo", "text"], &[mcp("one", &server.url, "strict")]);
    let strict = list(&workspace);
    assert_eq!((strict.code, strict.stderr.as_str()), (0, ""));
    toolbox(&workspace, &["echo"], &[mcp("one", &server.url, "strict")]);
    assert_eq!(list(&workspace).code, 4);
    toolbox(&workspace, &["echo"], &[mcp("one", &server.url, "dynamic")]);
    let dynamic = list(&workspace);
    assert_eq!(listed(&dynamic), pairs(&[("echo", "merged"), ("text", "default")]));
}

/// Proves S0-27, S0-42, S0-52, S0-58, S0-64: T1 as one record at ERROR, exit code 4.
#[test]
fn a_strict_violation_ends_the_start() {
    let workspace = Workspace::new();
    let server = serve(&workspace, "one", json!({"tools": ["echo", "text"]}));
    toolbox(&workspace, &["echo", "sum"], &[mcp("one", &server.url, "strict")]);
    let finished = list(&workspace);
    assert_eq!(finished.code, 4);
    let expected = "ERROR: Tool 'text' from MCP server 'one' is not configured in the toolbox.\n\n\
         MCP Server: one\nMode: strict\nMissing Tool: text\n\nConfigured tools: [echo, sum]\n\n\
         To resolve:\n1. Add the tool to myai.toolbox.tools in your configuration, OR\n\
         2. Change the MCP server mode to 'dynamic' and provide default_tool_config\n";
    assert!(finished.stderr.contains(expected), "{}", finished.stderr);
}

/// Proves S0-29, S0-45, S0-58, S0-66, S0-67: T6 and T3 are warnings; the start continues.
#[test]
fn missing_tools_are_warnings() {
    let workspace = Workspace::new();
    let empty = serve(&workspace, "empty", json!({"tools": 0}));
    let one = serve(&workspace, "one", json!({"tools": ["echo"]}));
    let mcps = [mcp("empty", &empty.url, "dynamic"), mcp("one", &one.url, "strict")];
    toolbox(&workspace, &["echo"], &mcps);
    let finished = list(&workspace);
    let nothing = format!("WARNING: MCP server 'empty' at {} returned no tools\n", empty.url);
    assert_eq!((finished.code, finished.stderr), (0, nothing));
    let entry = json!({"myai": {"toolbox": {
        "tools": [{"name": "echo"}, {"name": "gone", "mcp": "one"}], "mcps": [mcps[1]],
    }}});
    workspace.write("toolbox.yaml", entry.to_string());
    let finished = list(&workspace);
    let gone =
        "WARNING: Tool 'gone' was configured but is no longer available from MCP server 'one'\n";
    assert_eq!((finished.code, finished.stderr.as_str()), (0, gone));
    assert_eq!(listed(&finished), pairs(&[("echo", "explicit")]));
}

/// Proves S0-43, S0-44, S0-52, S0-58, S0-63, S3-FR-021: T2 whole, with the address and the cause,
/// for each way in which a connection can fail; exit code 3.
#[test]
fn each_failed_connection_ends_the_start() {
    let workspace = Workspace::new();
    let five_hundred = json!({"faults": [{"do": {"answer": {"status": 500}}}]});
    let broken = serve(&workspace, "broken", five_hundred);
    let stalled = serve(&workspace, "stalled", json!({"faults": [{"do": "stall"}]}));
    let plain = serve(&workspace, "plain", json!({}));
    let refused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let cases = [
        ("a refused port", format!("http://{refused}/mcp"), &["refused"][..]),
        (
            "an unknown host",
            "http://no-such-host.invalid/mcp".to_owned(),
            &["no-such-host.invalid"],
        ),
        ("no TLS there", plain.url.replace("http:", "https:"), &["TLS"]),
        ("HTTP 500", broken.url.clone(), &["500"]),
        ("silence", stalled.url.clone(), &["did not answer within 500ms", "connect_timeout"]),
    ];
    for (what, url, causes) in cases {
        let mut server = mcp("one", &url, "strict");
        server["connect_timeout"] = json!(if what == "silence" { "500ms" } else { "10s" });
        toolbox(&workspace, &[], &[server]);
        let finished = list(&workspace);
        assert_eq!(finished.code, 3, "{what}: {}", finished.stderr);
        let text = finished.stderr.strip_prefix("ERROR: ").unwrap_or_default();
        let (first, rest) = text.split_once("\nError: ").unwrap_or_default();
        assert_eq!(first, format!("Failed to connect to MCP server 'one' at {url}"), "{what}");
        let (cause, rest) = rest.split_once("\n\n").unwrap_or_default();
        for part in causes {
            assert!(cause.contains(part), "{what}: {cause}");
        }
        let last = "The application cannot start without connecting to all configured MCP servers.";
        assert!(rest.starts_with(last), "{what}: {rest}");
    }
}

/// Proves S0-36, S0-38: the memory of `call`, not of `tools list`, decides what is new.
#[test]
fn new_tools_are_reported_in_the_next_run() {
    let workspace = Workspace::new();
    let call = |tools: Value| {
        native(&workspace, &json!({"one": stdio(&workspace, "one", json!({ "tools": tools }))}));
        let finished = run(&workspace, &["call", "echo"]);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        finished.stderr
    };
    assert!(!call(json!(["echo"])).contains("New tool"));
    let notifications = "INFO: New tool 'text' discovered from MCP server 'one', registering with default configuration\n";
    assert!(call(json!(["echo", "text"])).contains(notifications));
    assert!(!call(json!(["echo", "text"])).contains("New tool"));
}

/// Proves S1-16, S1-17, X-1: other formats skip what they cannot reach; `required` is for one.
#[test]
fn other_formats_skip_what_they_cannot_reach() {
    let workspace = Workspace::new();
    let missing = json!({"command": "nope-not-here"});
    let one = stdio(&workspace, "one", json!({"tools": ["echo"]}));
    let file = |required: bool| {
        let mut missing = missing.clone();
        if required {
            missing["required"] = json!(true);
        }
        native(&workspace, &json!({"missing": missing, "one": one}));
    };
    file(false);
    let finished = run(&workspace, &["call", "echo", "n=1", "--log-level", "warning"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    let warning = "WARNING: mcp: server 'missing' failed to connect: ";
    assert!(finished.stderr.starts_with(warning) && finished.stderr.contains("`nope-not-here`"));
    file(true);
    let finished = run(&workspace, &["call", "echo", "n=1"]);
    assert_eq!(finished.code, 3);
    let text = "ERROR: Failed to connect to MCP server 'missing' at nope-not-here\nError: ";
    assert!(finished.stderr.contains(text), "{}", finished.stderr);
}

/// Proves S0-5: with one mistake in the file nothing is connected and nothing is started.
#[test]
fn an_invalid_file_reaches_no_server() {
    let workspace = Workspace::new();
    let server = serve(&workspace, "one", json!({}));
    let mut mistaken = mcp("two", &server.url, "strict");
    mistaken["mode"] = json!("lenient");
    toolbox(&workspace, &[], &[mcp("one", &server.url, "dynamic"), mistaken]);
    assert_eq!(list(&workspace).code, 2);
    assert!(testkit::fixture::events(&workspace.path().join("one.facts"), "connection").is_empty());
}
