//! Real servers behind `haft`, compared with the view of an official SDK.

use std::fs;

use serde_json::{Value, json};
use testkit::peers::{Address, CommandLine, Seen};
use testkit::{Finished, Program, Workspace, eventually};

/// In the environment of every server that Haft starts for a test, with the test's folder.
const SERVER_MARK: &str = "REAL_SERVER_OF";
/// The same for Haft and what it keeps for itself; servers do not inherit it.
const HAFT_MARK: &str = "REAL_HAFT_OF";
/// Tools whose answers contain the time, so that two answers differ in their numbers.
const TIMELY: [&str; 4] =
    ["get-resource-reference", "get_current_time", "convert_time", "get_file_info"];
/// Haft's name for the only server of a test.
const NAME: &str = "real";

/// A workspace whose only server is a real one.
pub(crate) struct Peer {
    pub(crate) workspace: Workspace,
}

impl Peer {
    /// Haft with nothing but the address.
    pub(crate) fn new(address: &Address) -> Self {
        Self::with(address, &json!({}))
    }

    /// Haft with more settings of the server.
    pub(crate) fn with(address: &Address, settings: &Value) -> Self {
        let workspace = Workspace::new();
        let mut server = entry(address, &workspace);
        // A server that fails is a failure of the test, and not one to try again.
        server["reconnect"] = json!({"attempts": 0});
        for (key, value) in settings.as_object().into_iter().flatten() {
            server[key] = value.clone();
        }
        workspace.write("haft.json", json!({"servers": {NAME: server}}).to_string());
        Self { workspace }
    }

    /// Runs a command that must leave nothing behind and has nothing to complain about.
    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        let haft = Program::new(env!("CARGO_BIN_EXE_haft"), &self.workspace);
        let finished = finish(haft.args(args).args(&["--log-level", "warning"]), &self.workspace);
        assert_eq!(finished.stderr, "", "{args:?}\n{}", finished.stdout);
        finished
    }

    /// The JSON output of a command.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let finished = self.run(&[args, &["--json"]].concat());
        serde_json::from_str(&finished.stdout)
            .unwrap_or_else(|error| panic!("{args:?} printed no JSON: {error}\n{finished:?}"))
    }

    /// The envelope of one call.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.json(&["call", tool, &arguments.to_string()])
    }

    /// Haft lists the tools the SDK's client saw, and gets the answers it got.
    pub(crate) fn assert_sees(&self, seen: &Seen, calls: &[(&str, Value)]) {
        self.assert_lists(seen);
        assert_eq!(seen.results.len(), calls.len());
        for ((tool, arguments), result) in calls.iter().zip(&seen.results) {
            assert_same_answer(tool, &self.call(tool, arguments), result);
        }
    }

    /// Haft lists the tools the SDK's client saw.
    pub(crate) fn assert_lists(&self, seen: &Seen) {
        let listed = self.json(&["tools", "list"]);
        let listed: Vec<Value> = listed.as_array().unwrap().iter().map(essence_of_listed).collect();
        let expected: Vec<Value> = seen.tools.iter().map(essence_of_wire).collect();
        assert!(!expected.is_empty(), "the SDK saw no tools");
        assert_eq!(listed, expected);
    }

    /// Which protocol version Haft agreed upon.
    pub(crate) fn protocol_version(&self) -> Value {
        self.json(&["servers", "show", NAME])["server"]["protocol_version"].clone()
    }
}

/// Runs Haft to its end. Its servers are gone by then; what watches over them follows.
pub(crate) fn finish(haft: Program, workspace: &Workspace) -> Finished {
    let folder = workspace.path().display().to_string();
    let finished = haft.env(HAFT_MARK, &folder).run();
    let servers = processes_with(&format!("{SERVER_MARK}={folder}"));
    assert!(servers.is_empty(), "servers are left: {servers:?}\n{finished:?}");
    let own = format!("{HAFT_MARK}={folder}");
    eventually("nothing of Haft is left", || processes_with(&own).is_empty().then_some(()));
    finished
}

/// The variable by which a server of this test is found again.
pub(crate) fn server_mark(workspace: &Workspace) -> (&'static str, String) {
    (SERVER_MARK, workspace.path().display().to_string())
}

/// Asserts that the answer of an SDK's client and Haft's envelope agree.
pub(crate) fn assert_same_answer(tool: &str, envelope: &Value, answer: &Value) {
    let status = &envelope["status"];
    if let Some(message) = answer["error"]["message"].as_str() {
        assert_eq!(status, "error", "{tool}: {envelope}");
        let found = envelope["error"]["message"].as_str().unwrap_or_default();
        // The TypeScript SDK puts the code before the server's own words.
        let message = match message.split_once(": ") {
            Some((prefix, rest)) if prefix.starts_with("MCP error ") => rest,
            _ => message,
        };
        assert!(found.contains(message), "{tool}: {found:?} without {message:?}");
        return;
    }
    let result = &answer["result"];
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let content: Vec<Value> = blocks.iter().map(as_content).collect();
    let expected = json!({
        "status": if result["isError"] == true { "error" } else { "success" },
        "content": content,
        "data": result["structuredContent"],
    });
    let found = json!({"status": status, "content": envelope["content"], "data": envelope["data"]});
    if TIMELY.contains(&tool) {
        assert_eq!(without_numbers(&found), without_numbers(&expected), "{tool}");
    } else {
        assert_eq!(found, expected, "{tool}: {}", envelope["error"]);
    }
}

/// The value as a string in which every number is `0`.
fn without_numbers(value: &Value) -> String {
    let mut text = value.to_string();
    text = text.chars().map(|it| if it.is_ascii_digit() { '0' } else { it }).collect();
    while text.contains("00") {
        text = text.replace("00", "0");
    }
    text
}

/// The processes with a string in their environment, with their command lines.
fn processes_with(text: &str) -> Vec<String> {
    let folders = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let has_text =
        |environment: &[u8]| environment.split(|byte| *byte == 0).any(|it| it == text.as_bytes());
    // One that ends while we look has no environment any more.
    let found = folders.filter(|it| fs::read(it.join("environ")).is_ok_and(|it| has_text(&it)));
    found
        .map(|it| fs::read_to_string(it.join("cmdline")).unwrap_or_default().replace('\0', " "))
        .collect()
}

/// A server as `haft.json` describes it.
fn entry(address: &Address, workspace: &Workspace) -> Value {
    match address {
        Address::Stdio(CommandLine { program, args, env }) => {
            let mut variables: serde_json::Map<String, Value> =
                env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            let (name, value) = server_mark(workspace);
            variables.insert(name.to_owned(), json!(value));
            json!({"command": program, "args": args, "env": variables})
        }
        Address::Http(url) => json!({"transport": "http", "url": url}),
        Address::Sse(url) => json!({"transport": "sse", "url": url}),
        Address::WebSocket(url) => json!({"transport": "websocket", "url": url}),
    }
}

fn essence_of_listed(tool: &Value) -> Value {
    json!({
        "name": tool["name"],
        "description": tool["description"],
        "input": tool["input_schema"],
        "output": tool["output_schema"],
    })
}

fn essence_of_wire(tool: &Value) -> Value {
    let description = tool["description"].as_str().unwrap_or_default();
    json!({
        "name": tool["name"],
        "description": description,
        "input": tool["inputSchema"],
        "output": tool["outputSchema"],
    })
}

/// A block of the protocol in the kinds Haft has.
fn as_content(block: &Value) -> Value {
    let content = |kind: &str, from: &Value, keys: &[(&str, &str)]| {
        let mut content = json!({"type": kind});
        for (key, name) in keys {
            if let Some(value) = from.get(key) {
                content[name] = value.clone();
            }
        }
        content
    };
    let bytes = [("data", "data"), ("mimeType", "mime_type")];
    let resource = [("uri", "uri"), ("mimeType", "mime_type"), ("text", "text"), ("blob", "data")];
    let link = [
        ("uri", "uri"),
        ("mimeType", "mime_type"),
        ("name", "name"),
        ("title", "title"),
        ("description", "description"),
        ("size", "size"),
    ];
    match block["type"].as_str().unwrap() {
        "text" => content("text", block, &[("text", "text")]),
        "image" => content("image", block, &bytes),
        "audio" => content("audio", block, &bytes),
        "resource_link" => content("resource", block, &link),
        "resource" => content("resource", &block["resource"], &resource),
        other => panic!("no real server sends content of kind {other}"),
    }
}
