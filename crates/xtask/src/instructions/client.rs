//! A client that keeps a fixed number of calls in flight: it sends all of them, then reads all answers.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{ChildStdin, ChildStdout};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::haft::{Haft, Path};

const LEGACY: &str = "2025-06-18";
const MODERN: &str = "2026-07-28";
const TOOL: &str = "echo";

pub(super) struct Client {
    path: Path,
    channel: Channel,
    /// The lines that each HTTP request begins with.
    head: String,
    next: u64,
    in_flight: usize,
    /// Answers that came as events, because the machine is busy: their instructions are not those of a call.
    pub(super) streams: usize,
}

enum Channel {
    Http(Vec<BufReader<TcpStream>>),
    Pipes(ChildStdin, BufReader<ChildStdout>),
}

impl Client {
    pub(super) fn connect(haft: &mut Haft, in_flight: usize) -> Result<Self> {
        let path = haft.path;
        let Some(address) = &haft.address else {
            let (input, output) = haft.pipes.take().context("no pipes")?;
            let channel = Channel::Pipes(input, output);
            let mut client =
                Self { path, channel, head: String::new(), next: 1, in_flight, streams: 0 };
            client.initialize()?;
            return Ok(client);
        };
        let open = || -> Result<_> {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            Ok(BufReader::new(stream))
        };
        let connections = (0..in_flight).map(|_| open()).collect::<Result<Vec<_>>>()?;
        let (target, accept) = match path {
            Path::Rest => (format!("/api/v1/tools/{TOOL}/call"), "application/json"),
            Path::GatewayLegacy | Path::GatewayModern | Path::Stdio => {
                ("/mcp".to_owned(), "application/json, text/event-stream")
            }
        };
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: {accept}\r\nX-API-Key: {}\r\n",
            haft.key
        );
        let channel = Channel::Http(connections);
        let mut client = Self { path, channel, head, next: 1, in_flight, streams: 0 };
        match path {
            Path::GatewayLegacy => client.initialize()?,
            Path::GatewayModern => {
                write!(
                    client.head,
                    "Mcp-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: {TOOL}\r\n"
                )?;
            }
            Path::Rest | Path::Stdio => {}
        }
        Ok(client)
    }

    /// Makes calls, and checks each answer.
    pub(super) fn rounds(&mut self, rounds: usize) -> Result<()> {
        for _ in 0..rounds {
            let first = self.next;
            for at in 0..self.in_flight {
                let call = self.call(self.next);
                self.next += 1;
                self.send(at, &call)?;
            }
            for at in 0..self.in_flight {
                let answer = self.receive(at)?.0;
                let id = match self.path {
                    // Answers of one client come in any order.
                    Path::Stdio => serde_json::from_str::<Value>(&answer)?["id"].as_u64(),
                    Path::Rest | Path::GatewayLegacy | Path::GatewayModern => {
                        Some(first + u64::try_from(at)?)
                    }
                };
                let text = text(id.context("no id")?);
                ensure!(answer.contains(&text), "a wrong answer: {answer}");
                ensure!(!answer.contains("isError\":true"), "a failed call: {answer}");
            }
        }
        Ok(())
    }

    fn initialize(&mut self) -> Result<()> {
        let client = json!({ "name": "bench", "version": "0" });
        let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client });
        let initialize =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        self.send(0, &initialize.to_string())?;
        let (answer, session) = self.receive(0)?;
        ensure!(answer.contains("\"result\""), "initialize failed: {answer}");
        if let Some(session) = session {
            write!(self.head, "Mcp-Session-Id: {session}\r\nMcp-Protocol-Version: {LEGACY}\r\n")?;
        }
        self.send(0, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        if matches!(self.channel, Channel::Http(_)) {
            self.receive(0)?;
        }
        Ok(())
    }

    fn call(&self, id: u64) -> String {
        let text = text(id);
        let meta = match self.path {
            Path::Rest => return format!(r#"{{"arguments":{{"text":"{text}"}}}}"#),
            Path::GatewayLegacy | Path::Stdio => "",
            Path::GatewayModern => {
                r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}"#
            }
        };
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{TOOL}","arguments":{{"text":"{text}"}}{meta}}}}}"#
        )
    }

    fn send(&mut self, at: usize, body: &str) -> Result<()> {
        match &mut self.channel {
            Channel::Http(connections) => {
                let request = format!("{}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
                connections[at].get_mut().write_all(request.as_bytes())?;
            }
            Channel::Pipes(input, _) => input.write_all(format!("{body}\n").as_bytes())?,
        }
        Ok(())
    }

    /// An answer, and the session that it opens.
    fn receive(&mut self, at: usize) -> Result<(String, Option<String>)> {
        match &mut self.channel {
            Channel::Http(connections) => {
                let (answer, session, is_stream) = receive(&mut connections[at])?;
                self.streams += usize::from(is_stream);
                Ok((answer, session))
            }
            Channel::Pipes(_, output) => {
                let mut line = String::new();
                ensure!(output.read_line(&mut line)? > 0, "haft mcp has ended");
                Ok((line, None))
            }
        }
    }
}

/// A unique string for each answer, 64 bytes long.
fn text(id: u64) -> String {
    format!("payload-{id:010}-abcdefghijklmnopqrstuvwxyz0123456789-abcdefgh")
}

/// An answer, the session that it opens, and whether it came as events.
fn receive(connection: &mut BufReader<TcpStream>) -> Result<(String, Option<String>, bool)> {
    let (mut length, mut session, mut status) = (0, None, String::new());
    let mut is_stream = false;
    loop {
        let mut line = String::new();
        ensure!(connection.read_line(&mut line)? > 0, "the connection was closed");
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if status.is_empty() {
            line.clone_into(&mut status);
        }
        let (name, value) = line.split_once(": ").unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse()?,
            "mcp-session-id" => session = Some(value.to_owned()),
            "transfer-encoding" => is_stream = true,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    let mut has_more = is_stream;
    while has_more {
        let mut line = String::new();
        connection.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16)?;
        let mut chunk = vec![0; length + 2];
        connection.read_exact(&mut chunk)?;
        body.extend_from_slice(&chunk);
        has_more = length > 0;
    }
    let body = String::from_utf8(body)?;
    ensure!(status.contains(" 20"), "{status}: {body}");
    Ok((body, session, is_stream))
}
