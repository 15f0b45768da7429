//! WebSocket, one message per text frame. Written by hand, because a library answers pings by
//! itself and refuses to send what must not be sent.

mod frame;
mod upgrade;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use crate::channel::{Frame, Frames, Outbox, acknowledge};
use crate::dispatch;
use crate::gate::Gate;
use crate::server::Server;
use crate::start;
use frame::{BINARY, CLOSE, PING, PONG, TEXT, frame};

/// Serves for ever.
pub async fn serve(server: &Arc<Server>, port: u16) -> std::io::Result<()> {
    let listener = start::listen(port, "ws", "/mcp").await?;
    let gate = Arc::new(Gate::new(server));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        server.facts.note("connection", json!({ "transport": "tcp" }));
        let (server, gate) = (Arc::clone(server), Arc::clone(&gate));
        let tasks = server.tasks.clone();
        tasks.spawn(async move {
            let ended = connection(&server, &gate, stream).await;
            let why = ended.err().map(|error| error.to_string());
            server.facts.note("disconnection", json!({ "why": why }));
        });
    }
}

/// A frame that the writer puts on the socket.
#[derive(Debug)]
enum Reply {
    Frame(Frame),
    Pong(Vec<u8>),
    Close(Vec<u8>),
}

async fn connection(server: &Arc<Server>, gate: &Gate, stream: TcpStream) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    if !upgrade::upgrade(server, gate, &mut reader, &mut writer).await? {
        return Ok(());
    }
    let (out, frames) = Outbox::new();
    let (control, controls) = tokio::sync::mpsc::unbounded_channel();
    let abruptly = server.scenario.ws.close_abruptly;
    let writing = server.tasks.spawn(write(writer, frames, controls, abruptly));
    let peer = server.connect(out.clone());
    // A writer that has ended, for any reason, ends the connection.
    let closed = out.clone();
    let read = async {
        while let Some((kind, payload)) = frame::read(&mut reader).await? {
            match kind {
                PING if !server.scenario.ws.no_pong => drop(control.send(Reply::Pong(payload))),
                CLOSE => {
                    // The writer may have ended first.
                    drop(control.send(Reply::Close(payload)));
                    break;
                }
                TEXT | BINARY => match serde_json::from_slice::<Value>(&payload) {
                    Ok(message) => {
                        server.facts.received(&message);
                        dispatch::handle(server, &peer, message, out.clone());
                    }
                    Err(error) => {
                        server.facts.note("unreadable", json!({ "why": error.to_string() }));
                    }
                },
                PING => server.facts.note("ping", json!({})),
                _ => {}
            }
        }
        Ok(())
    };
    let ended = tokio::select! {
        ended = read => ended,
        () = closed.closed() => Ok(()),
    };
    // The writer ends with this, after a close frame that may be on its way.
    drop(control);
    drop(writing.await);
    ended
}

async fn write(
    mut socket: OwnedWriteHalf,
    mut frames: Frames,
    mut controls: tokio::sync::mpsc::UnboundedReceiver<Reply>,
    abruptly: bool,
) -> std::io::Result<()> {
    loop {
        let reply = tokio::select! {
            control = controls.recv() => control,
            frame = frames.recv() => frame.map(Reply::Frame),
        };
        match reply {
            Some(Reply::Frame(Frame::Message(message))) => {
                socket.write_all(&frame(TEXT, message.to_string().as_bytes())).await?;
            }
            Some(Reply::Frame(Frame::Raw(bytes))) => {
                socket.write_all(&frame(TEXT, bytes.trim_ascii_end())).await?;
            }
            Some(Reply::Frame(Frame::Flushed(done))) => acknowledge(done),
            Some(Reply::Frame(Frame::Close)) if abruptly => return Ok(()),
            Some(Reply::Frame(Frame::Close)) => {
                return socket.write_all(&frame(CLOSE, &frame::GOING_AWAY)).await;
            }
            Some(Reply::Pong(payload)) => socket.write_all(&frame(PONG, &payload)).await?,
            Some(Reply::Close(payload)) => {
                return socket.write_all(&frame(CLOSE, &payload)).await;
            }
            None => return Ok(()),
        }
    }
}
