//! The real `haft serve`, started in a workspace on a free port.

use haft_server::keys::Scope;
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use testkit::{Finished, Program, Running, Workspace};

use crate::client;

/// A running `haft serve`. Ends with SIGTERM, and its exit code is checked, when the test lets go of it.
pub(crate) struct Served {
    /// The folder it runs in.
    pub(crate) workspace: Workspace,
    /// `http://127.0.0.1:PORT`.
    pub(crate) url: String,
    /// The text of an admin key, where one was created.
    pub(crate) admin: Option<String>,
    /// Its process.
    pub(crate) pid: u32,
    running: Option<Running>,
    client: reqwest::Client,
}

/// The arguments of the service: on a free port, which it prints.
pub(crate) const SERVE: [&str; 4] = ["--json", "serve", "--listen", "127.0.0.1:0"];

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// A header's value; empty where there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

impl Served {
    /// Starts it without any key.
    pub(crate) fn open(workspace: Workspace) -> Self {
        Self::start(workspace, None)
    }

    /// Creates an admin key and starts it. Requests are made with that key.
    pub(crate) fn with_admin(workspace: Workspace) -> Self {
        let key = create_key(&workspace, "me", Scope::Admin);
        Self::start(workspace, Some(key))
    }

    fn start(workspace: Workspace, admin: Option<String>) -> Self {
        let program = haft(&workspace, &SERVE);
        Self::run(workspace, admin, program)
    }

    /// Starts `program`, which is `haft` with the arguments [`SERVE`] or becomes it.
    pub(crate) fn run(workspace: Workspace, admin: Option<String>, program: Program) -> Self {
        let running = program.start();
        let greeting = greeting(&running);
        let url = greeting["listening"].as_str();
        let url = url.unwrap_or_else(|| panic!("it does not start: {greeting}")).to_owned();
        let client = client().build().unwrap();
        let pid = u32::try_from(greeting["pid"].as_u64().unwrap()).unwrap();
        Self { workspace, url, admin, pid, running: Some(running), client }
    }

    /// Creates several keys, then starts it. Requests are made with the first admin key, if there is one.
    pub(crate) fn with_keys(workspace: Workspace, keys: &[(&str, Scope)]) -> (Self, Vec<String>) {
        let texts: Vec<String> =
            keys.iter().map(|(name, scope)| create_key(&workspace, name, *scope)).collect();
        let admin = keys.iter().position(|(_, scope)| *scope == Scope::Admin);
        let admin = admin.map(|at| texts[at].clone());
        (Self::start(workspace, admin), texts)
    }

    /// A request with the admin key, if there is one.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        match &self.admin {
            Some(key) => request.header("x-api-key", key),
            None => request,
        }
    }

    /// A request with this key and no other.
    pub(crate) fn request_as(&self, key: &str, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).header("x-api-key", key)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.send(Method::POST, path, &[], body).await
    }

    pub(crate) async fn put(&self, path: &str, body: &str) -> Answer {
        self.send(Method::PUT, path, &[], body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        answer(self.request(Method::DELETE, path)).await
    }

    /// A request with a JSON body and more headers.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = self.request(method, path).body(body.to_owned());
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(request).await
    }

    /// Every entry of the execution log, in order.
    pub(crate) fn log(&self) -> Vec<Value> {
        let Ok(files) = std::fs::read_dir(self.workspace.path().join("logs")) else {
            return Vec::new();
        };
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
        files.sort();
        let text: String =
            files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The standard error so far.
    #[allow(dead_code, reason = "for tests of what it says while it runs")]
    pub(crate) fn stderr(&self) -> String {
        self.running.as_ref().map(Running::stderr_so_far).unwrap_or_default()
    }

    /// Sends SIGTERM and leaves it to end.
    pub(crate) fn terminate(&self) {
        self.running.as_ref().unwrap().terminate();
    }

    /// Ends it with SIGKILL, waits for that, and hands its workspace out.
    pub(crate) fn kill(mut self) -> Workspace {
        let running = self.running.take().unwrap();
        running.kill();
        assert_eq!(running.finish().code, 128 + 9);
        std::mem::replace(&mut self.workspace, Workspace::new())
    }

    /// Waits for its end, which something else brings about.
    pub(crate) fn ended(&mut self) -> Finished {
        self.running.take().unwrap().finish()
    }

    /// Ends it and starts it again in the same folder, with the same keys.
    pub(crate) fn restarted(mut self) -> Self {
        let running = self.running.take().unwrap();
        running.terminate();
        let finished = running.finish();
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        let workspace = std::mem::take(&mut self.workspace);
        Self::start(workspace, self.admin.take())
    }

    /// Ends it with SIGTERM and returns its exit; the workspace stays.
    pub(crate) fn end(mut self) -> Finished {
        let running = self.running.take().unwrap();
        running.terminate();
        running.finish()
    }
}

/// The line that `haft --json serve` prints when it listens.
pub(crate) fn greeting(running: &Running) -> Value {
    let mut text = String::new();
    loop {
        text += &running.line();
        if let Ok(greeting) = serde_json::from_str(&text) {
            return greeting;
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        if std::thread::panicking() {
            // The test may be failing for its own reason; the process is killed.
            eprintln!("--- stderr of haft serve\n{}", running.stderr_so_far());
            return;
        }
        running.terminate();
        let finished = running.finish();
        assert_eq!(finished.code, 0, "{}", finished.stderr);
    }
}

/// Sends a request and reads the whole answer.
pub(crate) async fn answer(request: RequestBuilder) -> Answer {
    let response = tokio::time::timeout(testkit::DEADLINE, request.send()).await;
    let response = response.expect("an answer in time").unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Answer { status, headers, text: response.text().await.unwrap() }
}

/// Creates a key as a person would, and hands out its text.
pub(crate) fn create_key(workspace: &Workspace, name: &str, scope: Scope) -> String {
    let scope = scope.to_string();
    let args = ["--json", "keys", "create", "--scope", &scope, "--name", name];
    let finished = haft(workspace, &args).run();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let created: Value = serde_json::from_str(&finished.stdout).unwrap();
    created["key"].as_str().unwrap().to_owned()
}

/// The command `haft`, about to be run.
pub(crate) fn haft(workspace: &Workspace, args: &[&str]) -> Program {
    Program::new(env!("CARGO_BIN_EXE_haft"), workspace).args(args)
}

/// A workspace with `haft.yaml` and a registry of local tools: `greet` (a script that may run several times
/// at once), `echo` (a command), `fail`, and `wait`, which writes `started` and waits for a minute.
pub(crate) fn toolbox() -> Workspace {
    Workspace::with(&[
        ("haft.yaml", "registry: {dir: tools}\npolicy: {allowed_commands: [\"cat\"]}\n"),
        ("tools/tools.json", TOOLS_JSON),
        ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
        (
            "tools/greet.py",
            "def run(args):\n    return {'greeting': f\"Hello, {args['name']}!\"}\n",
        ),
        ("tools/hello_world.py", "def run(args):\n    return {}\n"),
        ("tools/fail.py", "def run(args):\n    raise ValueError('the cause')\n"),
        ("tools/wait.py", WAIT_PY),
    ])
}

const TOOLS_JSON: &str = r#"{"tools": [
  {"name": "greet", "description": "Greets by name.", "type": "local",
   "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false},
   "output_schema": {"type": "object"}, "parallel_capable": true, "config": {"script_path": "greet.py"}},
  {"name": "echo", "description": "Gives its arguments back.", "type": "local", "input_schema": {"type": "object"}, "config": {"command": ["cat"]}},
  {"name": "fail", "description": "Fails.", "type": "local", "input_schema": {"type": "object"}, "config": {"script_path": "fail.py"}},
  {"name": "wait", "description": "Waits for a minute.", "type": "local", "input_schema": {"type": "object"}, "timeout": "2m", "config": {"script_path": "wait.py"}}
]}"#;

const WAIT_PY: &str =
    "import time\n\ndef run(args):\n    open('started', 'w').close()\n    time.sleep(60)\n";
