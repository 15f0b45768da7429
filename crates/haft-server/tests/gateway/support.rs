//! A client that speaks line by line, so that a test sees every byte.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::fixture::Fixture;
use testkit::{TRUSTED, WITHOUT_BUILTINS, WITHOUT_STATUS, Workspace};

/// Time limit of a message on a busy machine.
const WAIT_MAX: Duration = testkit::DEADLINE;

/// `haft mcp` and the two pipes to it.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Client {
    /// Starts `haft mcp` in a workspace.
    pub(crate) fn start(workspace: &Workspace) -> Self {
        Self::start_with(workspace, &[])
    }

    /// Starts `haft mcp` with these arguments.
    pub(crate) fn start_with(workspace: &Workspace, args: &[&str]) -> Self {
        Self::spawn(workspace, args, &[WITHOUT_BUILTINS, WITHOUT_STATUS])
    }

    /// Starts `haft mcp` as it is out of the box, with everything that Haft brings itself.
    pub(crate) fn start_unchanged(workspace: &Workspace) -> Self {
        Self::spawn(workspace, &[], &[])
    }

    fn spawn(workspace: &Workspace, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter().copied();
        let mut child = Command::new(env!("CARGO_BIN_EXE_haft"))
            .arg("mcp")
            .args(args)
            .current_dir(workspace.path())
            .env_remove("HAFT_CONFIG")
            .envs(variables)
            .envs([TRUSTED])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { input: child.stdin.take(), child, lines }
    }

    /// The same, with `initialize` behind it.
    pub(crate) fn connect(workspace: &Workspace) -> Self {
        Self::connect_with(workspace, &[])
    }

    /// The same, with these arguments. The client can answer questions to its user.
    pub(crate) fn connect_with(workspace: &Workspace, args: &[&str]) -> Self {
        let mut client = Self::start_with(workspace, args);
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = client.ask(&json!("hello"), "initialize", &params);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// Sends one line as it is.
    pub(crate) fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Sends one message.
    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends a request without waiting for its answer.
    pub(crate) fn request(&mut self, id: &Value, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// The next line that comes, whatever it is.
    pub(crate) fn any_line(&self) -> String {
        self.lines.recv_timeout(WAIT_MAX).expect("a message in time")
    }

    /// The next line. Notifications of changed tools may come at any time: servers connect while the client already
    /// works.
    pub(crate) fn line(&self) -> String {
        loop {
            let line = self.any_line();
            if !line.contains("notifications/tools/list_changed") {
                return line;
            }
        }
    }

    /// The next message that comes.
    pub(crate) fn next(&self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// The answer to a request. Notifications before it are passed over.
    pub(crate) fn ask(&mut self, id: &Value, method: &str, params: &Value) -> Value {
        self.request(id, method, params);
        loop {
            let message = self.next();
            if message["id"] == *id {
                return message;
            }
            assert!(message["method"].is_string(), "an answer to something else: {message}");
        }
    }

    /// Calls a tool and gives its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let mut answer = self.ask(&json!(1), "tools/call", &params);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// Every tool's name, from all pages.
    pub(crate) fn tools(&mut self) -> Vec<String> {
        let (mut names, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
            let answer = self.ask(&json!("list"), "tools/list", &params);
            let tools = answer["result"]["tools"].as_array();
            let tools = tools.unwrap_or_else(|| panic!("no page of tools: {answer}"));
            names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
            cursor = answer["result"]["nextCursor"].as_str().map(ToOwned::to_owned);
            if cursor.is_none() {
                return names;
            }
        }
    }

    /// Closes our side and waits for the end; its exit code.
    pub(crate) fn close(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().unwrap().code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A server that runs the fixture.
pub(crate) fn server(scenario: &Value) -> Value {
    json!({
        "command": Fixture::path(),
        "args": Fixture::stdio_args(scenario),
        "reconnect": {"attempts": 0},
    })
}

/// A workspace with one local tool, `greet`, and these servers.
pub(crate) fn workspace(servers: &Value) -> Workspace {
    let config = json!({"registry": {"dir": "tools"}, "servers": servers});
    let tools = json!({"tools": [{
        "name": "greet", "description": "Greets.", "type": "local",
        "input_schema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
        "config": {"script_path": "greet.py"},
    }]});
    Workspace::with(&[
        ("haft.json", &config.to_string()),
        ("tools/tools.json", &tools.to_string()),
        ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
        (
            "tools/greet.py",
            "def run(args):\n    return {'greeting': f\"Hello, {args['name']}!\"}\n",
        ),
    ])
}
