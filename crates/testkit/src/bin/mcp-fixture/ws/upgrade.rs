//! The HTTP request that becomes a WebSocket.

use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use sha1::{Digest, Sha1};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

use crate::gate::Gate;
use crate::scenario::Action;
use crate::server::Server;

/// The suffix that RFC 6455 adds to the client's key.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Answers the request; whether it became a WebSocket.
pub async fn upgrade(
    server: &Server,
    gate: &Gate,
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
) -> std::io::Result<bool> {
    let (method, path, headers) = head(reader).await?;
    gate.note(&method, &path, &headers);
    if let Some(action) = gate.fault(&method, None) {
        writer.write_all(refusal(action, &path).await.as_bytes()).await?;
        return Ok(false);
    }
    let text = |name: &str| headers.get(name).and_then(Value::as_str).unwrap_or_default();
    let key = text("sec-websocket-key");
    if key.is_empty() {
        writer.write_all(answer(426, "Upgrade: websocket\r\n", "").as_bytes()).await?;
        return Ok(false);
    }
    let accept = BASE64_STANDARD.encode(Sha1::digest(format!("{key}{MAGIC}")));
    let mut response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n"
    );
    let offered = text("sec-websocket-protocol").split(',').any(|name| name.trim() == "mcp");
    if offered && !server.scenario.ws.no_subprotocol {
        response.push_str("Sec-WebSocket-Protocol: mcp\r\n");
    }
    response.push_str("\r\n");
    writer.write_all(response.as_bytes()).await?;
    Ok(true)
}

async fn head(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> std::io::Result<(String, String, Map<String, Value>)> {
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Map::new();
    loop {
        line.clear();
        reader.read_line(&mut line).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_lowercase(), json!(value.trim()));
    }
    Ok((method, path, headers))
}

async fn refusal(action: &Action, path: &str) -> String {
    match action {
        Action::Answer { status, headers, body } => {
            let mut lines = String::new();
            for (name, value) in headers {
                // Writing to a string cannot fail.
                let _ = write!(lines, "{name}: {value}\r\n");
            }
            answer(*status, &lines, body)
        }
        Action::AnswerError { status, message, .. } => answer(*status, "", message),
        Action::Redirect(to) => {
            let to = if to == "self" { path } else { to };
            answer(307, &format!("Location: {to}\r\n"), "")
        }
        Action::Stall | Action::StallMidway | Action::Drip(_) => std::future::pending().await,
        Action::Cut | Action::CutSse => "HTTP/1.1 101 Switching Proto".to_owned(),
    }
}

fn answer(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Refused\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\
         \r\n{body}"
    )
}
