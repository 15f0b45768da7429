//! Frames of RFC 6455, read from a client and written to it.

use std::io::{Error, ErrorKind};

use tokio::io::{AsyncRead, AsyncReadExt};

/// The kinds of frames.
pub const TEXT: u8 = 1;
/// Bytes.
pub const BINARY: u8 = 2;
/// The end.
pub const CLOSE: u8 = 8;
/// Opcode of a ping.
pub const PING: u8 = 9;
/// Opcode of a pong.
pub const PONG: u8 = 10;
/// The payload of a close frame: 1001.
pub const GOING_AWAY: [u8; 2] = 1001_u16.to_be_bytes();

const CONTINUATION: u8 = 0;
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
/// The longest message a fixture reads.
const MESSAGE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A frame as a server sends it, without a mask.
pub fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![FINAL | kind];
    let length = payload.len();
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => frame.push(short),
        (_, Ok(medium)) => {
            frame.push(126);
            frame.extend(medium.to_be_bytes());
        }
        _ => {
            frame.push(127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

/// The next whole message or control frame: its kind and payload. Nothing where the client left.
pub async fn read(socket: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<(u8, Vec<u8>)>> {
    let mut message: Option<(u8, Vec<u8>)> = None;
    loop {
        let Some((head, payload)) = read_one(socket).await? else { return Ok(None) };
        let (kind, last) = (head & 0x0F, head & FINAL != 0);
        if kind >= CLOSE {
            return Ok(Some((kind, payload)));
        }
        match (kind, &mut message) {
            (CONTINUATION, Some((_, whole))) => whole.extend(payload),
            (CONTINUATION, None) => return Err(broken("a continuation of nothing")),
            (_, _) => message = Some((kind, payload)),
        }
        if last {
            return Ok(message);
        }
    }
}

async fn read_one(socket: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<(u8, Vec<u8>)>> {
    let head = match socket.read_u8().await {
        Ok(head) => head,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    let second = socket.read_u8().await?;
    if second & MASKED == 0 {
        return Err(broken("a frame without a mask"));
    }
    let length = match second & !MASKED {
        126 => u64::from(socket.read_u16().await?),
        127 => socket.read_u64().await?,
        short => u64::from(short),
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= MESSAGE_BYTES_MAX);
    let length = length.ok_or_else(|| broken("a frame too long"))?;
    let mask = socket.read_u32().await?.to_be_bytes();
    let mut payload = vec![0; length];
    socket.read_exact(&mut payload).await?;
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Ok(Some((head, payload)))
}

fn broken(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
