//! Tools that break the rules of the channel. The noise makes sense on stdio; other transports
//! carry it as one frame, event or body each.

use std::time::Duration;

use serde_json::json;

use super::size;
use crate::call::{Call, Outcome};

/// An id no client uses.
const STRANGE_ID: u64 = 424_242;
/// The longest line of a flood.
const LINE_BYTES: usize = 1024;
/// How much of a flood is on its way at most.
const CHUNK_BYTES: usize = 64 * LINE_BYTES;

/// Answers a request nobody made, and never the one that was.
pub fn wrong_id(call: &Call) -> Outcome {
    answer_nobody(call);
    Outcome::Silence
}

/// Answers a request nobody made, then the one that was.
pub fn stray(call: &Call) -> Outcome {
    answer_nobody(call);
    Outcome::text("for you")
}

fn answer_nobody(call: &Call) {
    call.out.message(json!({ "jsonrpc": "2.0", "id": STRANGE_ID,
        "result": { "content": [{ "type": "text", "text": "for nobody" }] } }));
}

/// Sends an answer byte by byte that never ends.
pub async fn trickle(call: &Call) -> Outcome {
    call.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"text\":\"", call.id));
    while call.raw("x") {
        tokio::time::sleep(Duration::from_millis(call.number("every_ms", 100))).await;
    }
    Outcome::Said
}

/// Answers twice.
pub fn duplicate(call: &Call) -> Outcome {
    for text in ["first", "second"] {
        call.respond(json!({ "content": [{ "type": "text", "text": text }] }));
    }
    Outcome::Said
}

/// Answers with a byte that is no UTF-8.
pub fn bad_utf8(call: &Call) -> Outcome {
    let head = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":""#,
        call.id
    );
    let mut line = head.into_bytes();
    line.push(0xFF);
    line.extend_from_slice(b"\"}]}}\n");
    call.raw(line);
    Outcome::Said
}

/// Sends half an answer.
pub fn half_line(call: &Call) -> Outcome {
    call.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"cont\n", call.id));
    Outcome::Said
}

/// Sends one long line that is no message, then the answer.
pub async fn long_line(call: &Call) -> Outcome {
    let bytes = size(call, "bytes", 17 * 1024 * 1024);
    let mut left = bytes;
    while left > 0 {
        let chunk = left.min(CHUNK_BYTES);
        call.raw(vec![b'x'; chunk]);
        if !call.out.flushed().await {
            return Outcome::Said;
        }
        left -= chunk;
    }
    call.raw("\n");
    Outcome::text(format!("after a line of {bytes} bytes"))
}

/// Sends lines of noise, then the answer.
pub async fn flood(call: &Call) -> Outcome {
    let bytes = size(call, "bytes", 1024 * 1024);
    let mut line = vec![b'#'; LINE_BYTES - 1];
    line.push(b'\n');
    let chunk = line.repeat(CHUNK_BYTES / LINE_BYTES);
    for _ in 0..bytes.div_ceil(CHUNK_BYTES) {
        call.raw(chunk.clone());
        if !call.out.flushed().await {
            return Outcome::Said;
        }
    }
    Outcome::text(format!("after {bytes} bytes of noise"))
}
