//! An HTTP client for connections that are kept. It costs little, so that little of what is measured is its own.

use std::cell::Cell;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::IN_FLIGHT;
use crate::Failure;

/// The longest any answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// The path of the tool behind every replica.
pub(super) const CALL: &str = "/api/v1/tools/echo/call";
/// Its body.
pub(super) const CALL_BODY: &str = r#"{"arguments":{"text":"some words to echo"}}"#;

/// A connection to one replica.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    port: u16,
    key: String,
    line: String,
}

/// A response.
pub(super) struct Answer {
    pub(super) status: u16,
    /// The revision of the registry that the replica uses.
    pub(super) revision: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn json(&self) -> Result<Value, Failure> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// The answer, unless it reports a failure.
    pub(super) fn checked(self) -> Result<Self, Failure> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        Err(format!("status {}: {}", self.status, String::from_utf8_lossy(&self.body)).into())
    }
}

impl Connection {
    pub(super) async fn open(port: u16, key: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let stream = BufReader::new(stream);
        Ok(Self { stream, port, key: key.to_owned(), line: String::new() })
    }

    /// Sends a request and reads its whole answer.
    pub(super) async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<Answer, Failure> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nX-API-Key: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            self.key,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        timeout(ANSWER_MAX, self.receive()).await.map_err(|_| "no answer")?
    }

    /// Calls the tool, which must succeed.
    pub(super) async fn call(&mut self) -> Result<Answer, Failure> {
        self.send("POST", CALL, CALL_BODY).await?.checked()
    }

    async fn receive(&mut self) -> Result<Answer, Failure> {
        self.receive_line().await?;
        let status = self.line.split(' ').nth(1).ok_or("no status")?.parse()?;
        let mut answer = Answer { status, revision: String::new(), body: Vec::new() };
        let (mut length, mut is_chunked) = (0, false);
        loop {
            self.receive_line().await?;
            let line = self.line.trim_end();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or("not a header")?;
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse()?,
                "transfer-encoding" => is_chunked = value.trim() == "chunked",
                "haft-revision" => value.trim().clone_into(&mut answer.revision),
                _ => {}
            }
        }
        if !is_chunked {
            answer.body.resize(length, 0);
            self.stream.read_exact(&mut answer.body).await?;
            return Ok(answer);
        }
        loop {
            self.receive_line().await?;
            let size = usize::from_str_radix(self.line.trim_end(), 16)?;
            let begin = answer.body.len();
            answer.body.resize(begin + size, 0);
            self.stream.read_exact(&mut answer.body[begin..]).await?;
            self.receive_line().await?;
            if size == 0 {
                return Ok(answer);
            }
        }
    }

    async fn receive_line(&mut self) -> Result<(), Failure> {
        self.line.clear();
        if self.stream.read_line(&mut self.line).await? == 0 {
            return Err("the connection was closed".into());
        }
        Ok(())
    }
}

/// Times of calls, one after another.
pub(super) async fn one_at_a_time(
    port: u16,
    key: &str,
    count: usize,
) -> Result<Vec<Duration>, Failure> {
    let mut connection = Connection::open(port, key).await?;
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let sent = Instant::now();
        connection.call().await?;
        times.push(sent.elapsed());
    }
    Ok(times)
}

/// Keeps calls in flight for a time. Returns calls per second.
pub(super) async fn flood(port: u16, key: &str, time: Duration) -> Result<f64, Failure> {
    let answers = Cell::new(0.0);
    let start = Instant::now();
    let callers = (0..IN_FLIGHT).map(|_| async {
        let mut own = Connection::open(port, key).await?;
        while start.elapsed() < time {
            own.call().await?;
            answers.set(answers.get() + 1.0);
        }
        Ok::<(), Failure>(())
    });
    try_join_all(callers).await?;
    Ok(answers.get() / start.elapsed().as_secs_f64())
}

/// Makes a number of calls at a steady rate.
pub(super) async fn steady(
    port: u16,
    key: &str,
    count: usize,
    per_second: usize,
) -> Result<(), Failure> {
    let share = u32::try_from(IN_FLIGHT)?;
    let pause = Duration::from_secs(1) * share / u32::try_from(per_second)?;
    let callers = (0..share).map(|caller| async move {
        let mut own = Connection::open(port, key).await?;
        tokio::time::sleep(pause * caller / share).await;
        let mut next = tokio::time::interval(pause);
        for _ in 0..count.div_ceil(IN_FLIGHT) {
            next.tick().await;
            own.call().await?;
        }
        Ok::<(), Failure>(())
    });
    try_join_all(callers).await?;
    Ok(())
}
