//! Tools that break the rules of the channel. The noise makes sense on stdio; other transports
//! carry it as one frame, event or body each.

use std::io::Write as _;
use std::time::Duration;

use serde_json::json;

use super::{size, text};
use crate::call::{Call, Outcome};

/// An id no client uses.
const STRANGE_ID: u64 = 424_242;
/// The longest line of a flood.
const LINE_BYTES: usize = 1024;
/// Largest part of a flood that is in flight.
const CHUNK_BYTES: usize = 64 * LINE_BYTES;

/// Answers an unknown request id, and never the actual request.
pub fn wrong_id(call: &Call) -> Outcome {
    answer_unknown_request(call);
    Outcome::Silence
}

/// Answers with the id as a string.
pub fn text_id(call: &Call) -> Outcome {
    call.out.message(json!({ "jsonrpc": "2.0", "id": call.id.to_string(),
        "result": { "content": [{ "type": "text", "text": "for you" }] } }));
    Outcome::Said
}

/// Writes its answer as a plain line, which is not a message.
pub fn plain_text(call: &Call) -> Outcome {
    call.raw("the answer is 42\n");
    Outcome::Silence
}

/// Writes its answer in UTF-16.
pub fn wide(call: &Call) -> Outcome {
    let line =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"content\":[]}}}}\n", call.id);
    call.raw(line.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    Outcome::Silence
}

/// Answers an unknown request id, then the actual request.
pub fn stray(call: &Call) -> Outcome {
    answer_unknown_request(call);
    Outcome::text("for you")
}

/// Sends progress, a log message, a question where wanted, and a late answer, all about its own call, while
/// `overtake` runs. With `answers` it has answered before; otherwise its client has to give up first.
pub async fn late(call: &Call) -> Outcome {
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    if call.argument("answers") == true {
        call.respond(text("in time"));
    }
    call.server.overtaken.notified().await;
    let token = &call.params["_meta"]["progressToken"];
    call.notify(
        "notifications/progress",
        json!({ "progressToken": token, "progress": 1, "message": "late progress" }),
    );
    call.notify("notifications/message", json!({ "level": "error", "data": "late log" }));
    if call.argument("asks") == true {
        let params = json!({ "message": "late question", "requestedSchema":
            { "type": "object", "properties": {} } });
        call.peer.ask(&call.out, "elicitation/create", params).await;
    }
    call.respond(text("late answer"));
    call.server.late_sent.notify_one();
    Outcome::Said
}

/// Lets `late` speak, then answers.
pub async fn overtake(call: &Call) -> Outcome {
    call.server.overtaken.notify_one();
    call.server.late_sent.notified().await;
    Outcome::text("overtaken")
}

fn answer_unknown_request(call: &Call) {
    call.out.message(json!({ "jsonrpc": "2.0", "id": STRANGE_ID,
        "result": { "content": [{ "type": "text", "text": "for no request" }] } }));
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

/// Answers with a byte that is not UTF-8.
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

/// Answers with very many tiny values.
pub fn many(call: &Call) -> Outcome {
    let (head, item, tail) = match text(call, "kind", "blocks") {
        "numbers" => ("\"result\":{\"content\":[],\"structuredContent\":{\"a\":[", "0", "]}}}"),
        "keys" => ("\"result\":{\"content\":[],\"structuredContent\":{", "\"k\":0", "}}}"),
        "list" => return list(call),
        _ => ("\"result\":{\"content\":[", "{}", "]}}"),
    };
    let items = items(call, item);
    call.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{head}{items}{tail}\n", call.id));
    Outcome::Said
}

/// Sends a list that is not a message.
fn list(call: &Call) -> Outcome {
    call.raw(format!("[{}]\n", items(call, "0")));
    Outcome::Said
}

fn items(call: &Call, item: &str) -> String {
    let count = size(call, "bytes", 8_000_000) / (item.len() + 1);
    vec![item; count.max(1)].join(",")
}

/// Sends one long line that is not a message, then the answer.
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

/// Fills standard error, then answers. Blocks while it is not read, as `eprintln!` of a real server does.
pub fn stderr_flood(call: &Call) -> Outcome {
    let bytes = size(call, "bytes", 4 * 1024 * 1024);
    let mut line = vec![b'e'; LINE_BYTES - 1];
    line.push(b'\n');
    let chunk = line.repeat(CHUNK_BYTES / LINE_BYTES);
    let mut stderr = std::io::stderr().lock();
    for _ in 0..bytes.div_ceil(CHUNK_BYTES) {
        if stderr.write_all(&chunk).is_err() {
            break;
        }
    }
    Outcome::text(format!("after {bytes} bytes on standard error"))
}

/// Returns content that is a list of tiny items, such as `{}` or `0`. Built as a string, because a value of millions
/// of items would exhaust the fixture first.
pub fn tiny_items(call: &Call) -> Outcome {
    let item = text(call, "item", "{}");
    let count = size(call, "bytes", 8 * 1024 * 1024 - 1024) / (item.len() + 1);
    let mut items = format!("{item},").repeat(count);
    items.pop();
    Outcome::ResultText(format!(r#"{{"content":[{items}],"resultType":"complete"}}"#))
}
