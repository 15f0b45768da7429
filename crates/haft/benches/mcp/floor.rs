//! The lower bound for any client: the same bytes to the same server, with blocking reads and writes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::times::Times;

use super::Failure;

pub(crate) fn echo(text: &str) -> Result<Duration, Failure> {
    stdio(&call("echo", text), 2_000)
}

pub(crate) fn blob() -> Result<Duration, Failure> {
    stdio(&call("blob", ""), 60)
}

pub(crate) fn http(url: &str, text: &str) -> Result<Duration, Failure> {
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let body = call("echo", text);
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut reader = stream.try_clone()?;
    // The answer is small and written at once.
    repeat(request.as_bytes(), &mut stream, &mut reader, 2_000, |read| read.ends_with(b"}"))
}

fn call(tool: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"{text}"}}}}}}"#
    )
}

fn stdio(message: &str, calls: usize) -> Result<Duration, Failure> {
    let mut server = Command::new(std::env::current_exe()?)
        .args(["serve", "stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut to, mut from) =
        (server.stdin.take().ok_or("no stdin")?, server.stdout.take().ok_or("no stdout")?);
    let line = format!("{message}\n");
    let p50 =
        repeat(line.as_bytes(), &mut to, &mut from, calls, |read| read.last() == Some(&b'\n'))?;
    drop(to);
    server.wait()?;
    Ok(p50)
}

fn repeat(
    message: &[u8],
    to: &mut impl Write,
    from: &mut impl Read,
    calls: usize,
    is_whole: impl Fn(&[u8]) -> bool,
) -> Result<Duration, Failure> {
    let mut read = vec![0; 256 * 1024];
    let mut times = Vec::new();
    for _ in 0..calls {
        let started = Instant::now();
        to.write_all(message)?;
        while let count @ 1.. = from.read(&mut read)? {
            if is_whole(&read[..count]) {
                break;
            }
        }
        times.push(started.elapsed());
    }
    Ok(Times::new(times).median())
}
