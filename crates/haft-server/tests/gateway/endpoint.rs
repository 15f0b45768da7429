//! `haft serve` and a client that speaks plain HTTP to it, one connection for each request.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};
use testkit::{Program, Running, Workspace};

use crate::served::{SERVE, greeting};

/// A running `haft serve`. Ends when it is dropped.
pub(crate) struct Served {
    address: String,
    running: Option<Running>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The session that was opened.
    pub(crate) session: Option<String>,
    /// Null where there is no body.
    pub(crate) body: Value,
}

/// A session of the legacy era at an endpoint.
pub(crate) struct Session<'a> {
    served: &'a Served,
    path: String,
    key: Option<String>,
    pub(crate) id: String,
}

impl Served {
    pub(crate) fn start(workspace: &Workspace) -> Self {
        let program = Program::new(env!("CARGO_BIN_EXE_haft"), workspace);
        let running = program.args(&SERVE).start();
        let greeting = greeting(&running);
        let url = greeting["listening"].as_str().unwrap();
        Self { address: url.strip_prefix("http://").unwrap().to_owned(), running: Some(running) }
    }

    /// Sends a request and leaves the rest of the answer to be read: its status, headers, and that rest.
    fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, Vec<(String, String)>, BufReader<TcpStream>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(testkit::DEADLINE)).unwrap();
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        for (name, value) in headers {
            write!(text, "{name}: {value}\r\n").unwrap();
        }
        write!(text, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = BufReader::new(stream);
        let mut line = String::new();
        answer.read_line(&mut line).unwrap();
        let status = line[9..12].parse().unwrap();
        let mut headers = Vec::new();
        loop {
            line.clear();
            answer.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        (status, headers, answer)
    }

    /// Sends a request and reads the whole answer.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let (status, headers, mut rest) = self.send(method, path, headers, body);
        let mut body = String::new();
        rest.read_to_string(&mut body).unwrap();
        let session = headers.into_iter().find(|(name, _)| name == "mcp-session-id");
        Answer {
            status,
            session: session.map(|(_, id)| id),
            body: serde_json::from_str(&body).unwrap_or_default(),
        }
    }

    /// Sends one message to an endpoint.
    pub(crate) fn post(
        &self,
        path: &str,
        key: Option<&str>,
        session: Option<&str>,
        message: &Value,
    ) -> Answer {
        let mut headers =
            vec![("Content-Type", "application/json"), ("Accept", "application/json")];
        headers.extend(key.map(|key| ("X-API-Key", key)));
        headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
        self.request("POST", path, &headers, &message.to_string())
    }

    /// Asks for a session.
    pub(crate) fn initialize(&self, path: &str, key: Option<&str>) -> Answer {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        self.post(path, key, None, &message)
    }

    /// Opens a session.
    pub(crate) fn open(&self, path: &str, key: Option<&str>) -> Session<'_> {
        let answer = self.initialize(path, key);
        let id = answer.session.unwrap_or_else(|| panic!("no session: {}", answer.body));
        Session { served: self, path: path.to_owned(), key: key.map(ToOwned::to_owned), id }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let running = self.running.take().unwrap();
        running.terminate();
        if std::thread::panicking() {
            // The test may be failing for its own reason.
            eprintln!("--- stderr of haft serve\n{}", running.stderr_so_far());
            return;
        }
        assert_eq!(running.finish().code, 0);
    }
}

impl Session<'_> {
    /// Sends a request.
    pub(crate) fn request(&self, method: &str, params: &Value) -> Answer {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.served.post(&self.path, self.key.as_deref(), Some(&self.id), &message)
    }

    /// Returns true if it is still there.
    pub(crate) fn is_open(&self) -> bool {
        self.request("ping", &json!({})).status == 200
    }

    /// Returns true if it is still there, found out in a way that does not count as using it.
    pub(crate) fn is_known(&self) -> bool {
        let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.served.post(&self.path, self.key.as_deref(), Some(&self.id), &message).status == 202
    }

    /// The names of what a list shows, in their order.
    pub(crate) fn names(&self, method: &str, field: &str) -> Vec<String> {
        let answer = self.request(method, &json!({}));
        let list = answer.body["result"][field].as_array();
        let list = list.unwrap_or_else(|| panic!("no list: {}", answer.body));
        list.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The names of its tools.
    pub(crate) fn tools(&self) -> Vec<String> {
        self.names("tools/list", "tools")
    }

    /// Its notification stream, open until it is dropped.
    pub(crate) fn notifications(&self) -> BufReader<TcpStream> {
        let headers = [("Accept", "text/event-stream"), ("Mcp-Session-Id", &self.id)];
        let (status, _, stream) = self.served.send("GET", &self.path, &headers, "");
        assert_eq!(status, 200);
        stream
    }
}

/// Rewrites `haft.json`, with these sections beside the existing ones.
pub(crate) fn configure(workspace: &Workspace, sections: &Value) {
    let mut config: Value = serde_json::from_str(&workspace.read("haft.json").unwrap()).unwrap();
    for (section, value) in sections.as_object().unwrap() {
        config[section] = value.clone();
    }
    workspace.write("haft.json", config.to_string());
}
