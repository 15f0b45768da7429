//! Just enough of each transport to speak with the fixture, blocking and by hand.

// Only functions marked as tests may unwrap otherwise; here a failure is a failed test, too.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio as Pipe};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::DEADLINE;
use testkit::fixture::{Fixture, Running};

/// A connection over any transport.
pub trait Wire {
    /// Sends a request and waits for its answer.
    fn request(&mut self, message: &Value) -> Value;
    /// Sends a notification.
    fn notify(&mut self, message: &Value);
}

/// A child process.
pub struct Stdio {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Stdio {
    pub fn start(scenario: &Value) -> Self {
        let mut command = Command::new(Fixture::path());
        command.args(Fixture::stdio_args(scenario)).stdin(Pipe::piped()).stdout(Pipe::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    pub fn send(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(&[line, b"\n"].concat()).unwrap();
    }

    pub fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.stdout.read_until(b'\n', &mut line).unwrap();
        line
    }

    pub fn end(&mut self) {
        self.stdin = None;
    }
}

impl Wire for Stdio {
    fn request(&mut self, message: &Value) -> Value {
        self.notify(message);
        serde_json::from_slice(&self.line()).unwrap()
    }

    fn notify(&mut self, message: &Value) {
        self.send(message.to_string().as_bytes());
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Streamable HTTP, one connection per request.
pub struct Http {
    server: Running,
    session: String,
}

impl Http {
    pub fn to(server: Running) -> Self {
        Self { server, session: String::new() }
    }

    /// Sends an HTTP request; the head and the body of the answer, without its chunks undone.
    pub fn exchange(&mut self, method: &str, headers: &str, body: &str) -> (String, String) {
        let mut socket = open(&self.server);
        let session = &self.session;
        let length = body.len();
        let text = format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{session}{headers}\r\n{body}"
        );
        socket.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        // A body that is cut ends with an error, which is what some tests look for.
        drop(socket.read_to_string(&mut answer));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    pub fn post(&mut self, message: &Value, headers: &str) -> (u16, Value) {
        let (head, body) = self.exchange("POST", headers, &message.to_string());
        if let Some(line) = head.lines().find(|line| line.starts_with("mcp-session-id")) {
            self.session = format!("{line}\r\n");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        // A server may answer a probe for the other era without a session.
        (status, serde_json::from_str(&body).unwrap_or_default())
    }
}

impl Wire for Http {
    fn request(&mut self, message: &Value) -> Value {
        let headers = modern_headers(message);
        self.post(message, &headers).1
    }

    fn notify(&mut self, message: &Value) {
        assert_eq!(self.post(message, "").0, 202);
    }
}

/// The headers of a modern request; none for a legacy one.
pub fn modern_headers(message: &Value) -> String {
    let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    let Some(version) = version.as_str() else { return String::new() };
    let method = message["method"].as_str().unwrap();
    let name = message["params"]["name"].as_str().unwrap_or_default();
    format!("MCP-Protocol-Version: {version}\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n")
}

/// HTTP with server-sent events.
pub struct Sse {
    server: Running,
    events: BufReader<TcpStream>,
    endpoint: String,
}

impl Sse {
    pub fn to(server: Running) -> Self {
        let mut socket = open(&server);
        socket.write_all(b"GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut sse = Self { server, events: BufReader::new(socket), endpoint: String::new() };
        sse.endpoint = sse.data();
        sse
    }

    fn data(&mut self) -> String {
        let mut line = String::new();
        while !line.starts_with("data: ") {
            line.clear();
            self.events.read_line(&mut line).unwrap();
        }
        line["data: ".len()..].trim_end().to_owned()
    }
}

impl Wire for Sse {
    fn request(&mut self, message: &Value) -> Value {
        self.notify(message);
        serde_json::from_str(&self.data()).unwrap()
    }

    fn notify(&mut self, message: &Value) {
        let mut socket = open(&self.server);
        let (path, body) = (&self.endpoint, message.to_string());
        let length = body.len();
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        socket.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    }
}

/// WebSocket.
pub struct Ws {
    socket: BufReader<TcpStream>,
    _server: Running,
}

impl Ws {
    pub fn to(server: Running) -> Self {
        let mut socket = open(&server);
        // Key and answer are the example of RFC 6455.
        let text = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
            Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mcp\r\n\
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        socket.write_all(text.as_bytes()).unwrap();
        let mut socket = BufReader::new(socket);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            socket.read_line(&mut head).unwrap();
        }
        assert!(head.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        assert!(head.contains("Sec-WebSocket-Protocol: mcp"), "{head}");
        Self { socket, _server: server }
    }
}

impl Wire for Ws {
    fn request(&mut self, message: &Value) -> Value {
        self.notify(message);
        let mut head = [0; 2];
        self.socket.read_exact(&mut head).unwrap();
        let mut length = u64::from(head[1]);
        if let Some(more) = [(126, 2), (127, 8)].iter().find(|(mark, _)| *mark == length) {
            let mut bytes = [0; 8];
            self.socket.read_exact(&mut bytes[8 - more.1..]).unwrap();
            length = u64::from_be_bytes(bytes);
        }
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.socket.read_exact(&mut payload).unwrap();
        serde_json::from_slice(&payload).unwrap()
    }

    fn notify(&mut self, message: &Value) {
        let payload = message.to_string().into_bytes();
        let length = u16::try_from(payload.len()).unwrap();
        // The longer form of the length is legal for any length here; the mask is zero.
        let mut frame = vec![0x81, 0xFE];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(payload);
        self.socket.get_mut().write_all(&frame).unwrap();
    }
}

/// Ends a process.
pub fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

fn open(server: &Running) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    socket
}
