//! A server that costs next to nothing, so that what is measured is the client: plain blocking
//! reads and writes, no SDK and no parser. It understands exactly the messages of this benchmark.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use super::Failure;

/// The size of what the tool `blob` answers.
pub(crate) const BLOB_BYTES: usize = 1024 * 1024;

/// `serve stdio TOOLS DELAY_MS` or `serve http`.
pub(crate) fn run(how: &str, rest: &[String]) -> Result<(), Failure> {
    let number = |at: usize| rest.get(at).and_then(|word| word.parse().ok()).unwrap_or(0);
    let answers = Answers::new(number(0));
    match how {
        "stdio" => stdio(&answers, Duration::from_millis(number(1) as u64)),
        _ => http(&answers),
    }
}

/// The results that do not depend on the request.
#[derive(Clone)]
struct Answers {
    tools: String,
    blob: String,
}

impl Answers {
    fn new(tools: usize) -> Self {
        let extra = (0..tools).map(|at| {
            format!(
                r#"{{"name":"record_{at}","description":"Looks up record {at} and returns the fields asked for.","inputSchema":{{"type":"object","properties":{{"id":{{"type":"string","description":"which record"}},"fields":{{"type":"array","items":{{"type":"string"}}}},"limit":{{"type":"integer","minimum":1,"maximum":1000}}}},"required":["id"]}}}}"#
            )
        });
        let tools: Vec<String> = extra.collect();
        // Prose with an escape in every line, as tools answer.
        let text = r"The quick brown fox jumps over the lazy dog, 0123456789.\n";
        let text = text.repeat(BLOB_BYTES / (text.len() - 1));
        Self {
            tools: format!(r#"{{"tools":[{}]}}"#, tools.join(",")),
            blob: format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#),
        }
    }

    /// Writes the answer to one message; nothing for a notification.
    fn answer(&self, message: &[u8], into: &mut Vec<u8>) {
        let Some(id) = behind(message, b"\"id\":") else { return };
        let id = &id[..id.iter().take_while(|byte| byte.is_ascii_digit()).count()];
        let method = string_behind(message, b"\"method\":\"");
        into.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        into.extend_from_slice(id);
        if !matches!(method, b"initialize" | b"tools/list" | b"tools/call" | b"ping") {
            into.extend_from_slice(br#","error":{"code":-32601,"message":"unknown"}}"#);
            return;
        }
        into.extend_from_slice(br#","result":"#);
        match method {
            b"initialize" => into.extend_from_slice(
                br#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fast","version":"1"}}"#,
            ),
            b"tools/list" => into.extend_from_slice(self.tools.as_bytes()),
            b"tools/call" if string_behind(message, b"\"name\":\"") == b"blob" => {
                into.extend_from_slice(self.blob.as_bytes());
            }
            b"tools/call" => {
                into.extend_from_slice(br#"{"content":[{"type":"text","text":""#);
                into.extend_from_slice(string_behind(message, b"\"text\":\""));
                into.extend_from_slice(br#""}]}"#);
            }
            _ => into.extend_from_slice(b"{}"),
        }
        into.push(b'}');
    }
}

fn behind<'a>(message: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let at = message.windows(key.len()).position(|window| window == key)?;
    Some(&message[at + key.len()..])
}

fn string_behind<'a>(message: &'a [u8], key: &[u8]) -> &'a [u8] {
    let rest = behind(message, key).unwrap_or_default();
    &rest[..rest.iter().position(|byte| *byte == b'"').unwrap_or(0)]
}

fn stdio(answers: &Answers, delay: Duration) -> Result<(), Failure> {
    std::thread::sleep(delay);
    // The streams themselves, without the locks and buffers around them.
    let mut input = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    // A small pipe makes both sides wait for each other, with any client.
    let _ = rustix::pipe::fcntl_setpipe_size(&output, BLOB_BYTES);
    let (mut read, mut answer) = (vec![0; 64 * 1024], Vec::new());
    let mut filled = 0;
    loop {
        let count = input.read(&mut read[filled..])?;
        if count == 0 {
            return Ok(());
        }
        filled += count;
        let mut start = 0;
        while let Some(end) = read[start..filled].iter().position(|byte| *byte == b'\n') {
            answer.clear();
            answers.answer(&read[start..start + end], &mut answer);
            start += end + 1;
            if !answer.is_empty() {
                answer.push(b'\n');
                output.write_all(&answer)?;
            }
        }
        read.copy_within(start..filled, 0);
        filled -= start;
    }
}

/// Prints its port on the first line, and ends with its input.
fn http(answers: &Answers) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    loop {
        let (stream, _) = listener.accept()?;
        let answers = answers.clone();
        std::thread::spawn(move || exchange(stream, &answers));
    }
}

fn exchange(mut stream: TcpStream, answers: &Answers) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut read, mut body, mut response) = (vec![0; 64 * 1024], Vec::new(), Vec::new());
    let mut filled = 0;
    loop {
        let count = stream.read(&mut read[filled..])?;
        if count == 0 {
            return Ok(());
        }
        filled += count;
        let Some(head) = read[..filled].windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let length = content_length(&read[..head]);
        let end = head + 4 + length;
        if filled < end {
            continue;
        }
        body.clear();
        response.clear();
        if read.starts_with(b"POST") {
            answers.answer(&read[head + 4..end], &mut body);
            if body.is_empty() {
                response.extend_from_slice(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
            } else {
                write!(
                    response,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                )?;
                response.extend_from_slice(&body);
            }
        } else {
            response
                .extend_from_slice(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n");
        }
        stream.write_all(&response)?;
        read.copy_within(end..filled, 0);
        filled -= end;
    }
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head.split("content-length:").nth(1).and_then(|rest| rest.lines().next());
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}
