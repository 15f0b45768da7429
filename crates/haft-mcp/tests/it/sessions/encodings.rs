//! Servers that speak another encoding than UTF-8.

use encoding_rs::{Encoding, SHIFT_JIS, UTF_16BE, UTF_16LE, WINDOWS_1252};
use haft_mcp::RequestOptions;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Server, Setup};

/// Reads one line; answers with what its parameters hold.
async fn echo(server: &mut Server, encoding: &'static Encoding) {
    let mut bytes = Vec::new();
    let line = loop {
        bytes.push(server.0.read_u8().await.unwrap());
        let (text, is_broken) = encoding.decode_without_bom_handling(&bytes);
        if text.ends_with('\n') && !is_broken {
            break text.into_owned();
        }
    };
    let request: Value = serde_json::from_str(&line).unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": request["params"]});
    let answer = format!("{answer}\n");
    let bytes: Vec<u8> = if encoding == UTF_16LE {
        answer.encode_utf16().flat_map(u16::to_le_bytes).collect()
    } else if encoding == UTF_16BE {
        answer.encode_utf16().flat_map(u16::to_be_bytes).collect()
    } else {
        encoding.encode(&answer).0.into_owned()
    };
    // Byte by byte, so that characters arrive in pieces.
    for byte in bytes {
        server.0.get_mut().write_u8(byte).await.unwrap();
    }
}

#[tokio::test]
async fn every_character_of_an_encoding_passes_both_ways() {
    for (encoding, text) in [
        (WINDOWS_1252, "grüße für €5 ÿ"),
        (SHIFT_JIS, "こんにちは 表示 ｱ"),
        (UTF_16LE, "grüße 你好 \u{1f600} \u{0a00} \u{000d}"),
        (UTF_16BE, "grüße 你好 \u{1f600} \u{0a0a}"),
    ] {
        // Smaller than the messages: reading and writing take turns.
        let (session, mut server) = Setup { pipe_bytes: 7, encoding, ..Setup::default() }.start();
        let params = json!({"text": text}).to_string();
        let request =
            session.request(session.next_id(), "echo", &params, RequestOptions::default());
        let (answer, ()) = tokio::join!(request, echo(&mut server, encoding));
        let answer: Value = serde_json::from_str(answer.unwrap().get()).unwrap();
        assert_eq!(answer["text"], text, "{}", encoding.name());
    }
}

#[tokio::test]
async fn what_an_encoding_lacks_is_spelled_as_json_does() {
    let (session, mut server) = Setup { encoding: WINDOWS_1252, ..Setup::default() }.start();
    session.notify("tell", r#"{"text":"你 \ud83d\ude00 😀"}"#).await.unwrap();
    let mut line = vec![0; 120];
    let count = server.0.read(&mut line).await.unwrap();
    assert_eq!(
        String::from_utf8(line[..count].to_vec()).unwrap(),
        "{\"jsonrpc\":\"2.0\",\"method\":\"tell\",\"params\":{\"text\":\"\\u4f60 \\ud83d\\ude00 \\ud83d\\ude00\"}}\n"
    );
}
