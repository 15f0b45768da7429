//! Standard input and output: one message per line.

use std::io::{BufRead, Write};
use std::sync::Arc;

use encoding_rs::{Encoding, UTF_8};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, channel};

use crate::channel::{Frame, Frames, Outbox, acknowledge};
use crate::dispatch;
use crate::server::Server;

/// Lines that are read ahead.
const LINES_AHEAD: usize = 64;

/// Serves until the input ends. Threads read and write, because real pipes beat a blocking pool.
pub async fn serve(server: &Arc<Server>) -> std::io::Result<()> {
    let encoding = encoding(server.scenario.encoding.as_deref())?;
    let (out, frames) = Outbox::new();
    let noise = server.scenario.noise.clone();
    let writer = std::thread::spawn(move || write(frames, encoding, &noise));
    let mut lines = read();
    server.facts.note("connection", json!({ "transport": "stdio" }));
    let peer = server.connect(out.clone());
    while let Some(line) = lines.recv().await {
        let (text, _, _) = encoding.decode(&line);
        match serde_json::from_str::<Value>(&text) {
            Ok(message) => {
                server.facts.received(&message);
                dispatch::handle(server, &peer, message, out.clone());
            }
            Err(error) => {
                server.facts.note("unreadable", json!({ "line": text, "why": error.to_string() }));
                out.message(json!({ "jsonrpc": "2.0", "id": null,
                    "error": { "code": -32700, "message": "Parse error" } }));
            }
        }
    }
    server.facts.note("stdin_end", json!({}));
    if server.scenario.ignore_eof {
        std::future::pending::<()>().await;
    }
    if !writer.is_finished() {
        out.flushed().await;
    }
    server.facts.exit(0)
}

fn encoding(label: Option<&str>) -> std::io::Result<&'static Encoding> {
    let label = match label {
        None => return Ok(UTF_8),
        Some("latin-1") => "latin1",
        Some(label) => label,
    };
    Encoding::for_label(label.as_bytes())
        .ok_or_else(|| std::io::Error::other(format!("`{label}` is not an encoding")))
}

fn read() -> Receiver<Vec<u8>> {
    let (sender, lines) = channel(LINES_AHEAD);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut line = Vec::new();
        while stdin.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if sender.blocking_send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    lines
}

fn write(mut frames: Frames, encoding: &'static Encoding, noise: &[String]) {
    let mut stdout = std::io::stdout().lock();
    let mut put = |bytes: &[u8]| stdout.write_all(bytes).and_then(|()| stdout.flush());
    while let Some(frame) = frames.blocking_recv() {
        let written = match frame {
            Frame::Message(message) => {
                let mut text: String = noise.iter().flat_map(|line| [line, "\n"]).collect();
                text.push_str(&message.to_string());
                text.push('\n');
                put(&encoding.encode(&text).0)
            }
            Frame::Raw(bytes) => put(&bytes),
            Frame::Flushed(done) => {
                acknowledge(done);
                Ok(())
            }
            Frame::Close => Ok(()),
        };
        if written.is_err() {
            return;
        }
    }
}
