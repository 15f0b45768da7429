//! An HTTP client for one thing, posting MCP messages over connections that are kept. It costs little,
//! so that little of what is measured is its own.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Failure;
use super::messages::{self, Era, LEGACY, MODERN};

const BUFFER_BYTES: usize = 256 * 1024;
/// The longest any answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Where a contender is, and what it wants of every request.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) port: u16,
    pub(crate) path: &'static str,
    pub(crate) key: Option<String>,
    pub(crate) era: Era,
}

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    /// The head of every request.
    head: String,
    era: Era,
    line: Vec<u8>,
    body: Vec<u8>,
}

/// The head of the response.
#[derive(Default)]
struct Head {
    status: u16,
    length: Option<usize>,
    is_chunked: bool,
    is_events: bool,
    session: Option<String>,
}

impl Connection {
    pub(crate) async fn open(address: &Address, session: Option<&str>) -> Result<Self, Failure> {
        let stream = TcpStream::connect(("127.0.0.1", address.port)).await?;
        stream.set_nodelay(true)?;
        let version = match address.era {
            Era::Legacy => LEGACY,
            Era::Modern => MODERN,
        };
        let mut head = format!(
            "POST {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n",
            address.path, address.port
        );
        if let Some(key) = &address.key {
            write!(head, "X-API-Key: {key}\r\n")?;
        }
        if let Some(session) = session {
            write!(head, "Mcp-Session-Id: {session}\r\n")?;
        }
        if session.is_some() || address.era == Era::Modern {
            write!(head, "Mcp-Protocol-Version: {version}\r\n")?;
        }
        let stream = BufReader::with_capacity(BUFFER_BYTES, stream);
        Ok(Self { stream, head, era: address.era, line: Vec::new(), body: Vec::new() })
    }

    /// Opens a session, where the era has them.
    pub(crate) async fn begin(&mut self, id: u64) -> Result<Option<String>, Failure> {
        if self.era == Era::Modern {
            return Ok(None);
        }
        let head = self.exchange(&messages::initialize(id), "initialize", "").await?;
        self.result(&head)?;
        Ok(head.session)
    }

    /// Sends a message that has no answer.
    pub(crate) async fn tell(&mut self, message: &str) -> Result<(), Failure> {
        self.exchange(message, "notifications/initialized", "").await?;
        Ok(())
    }

    pub(crate) async fn list(&mut self, id: u64) -> Result<String, Failure> {
        let head = self.exchange(&messages::list(id, self.era), "tools/list", "").await?;
        Ok(self.result(&head)?.1.to_owned())
    }

    pub(crate) async fn echo(&mut self, id: u64, tool: &str) -> Result<(), Failure> {
        let message = messages::echo(id, tool, self.era);
        let head = self.exchange(&message, "tools/call", tool).await?;
        messages::check_echo(id, self.result(&head)?.1)
    }

    pub(crate) async fn blob(&mut self, id: u64, tool: &str) -> Result<(), Failure> {
        let message = messages::blob(id, tool, self.era);
        let head = self.exchange(&message, "tools/call", tool).await?;
        messages::check_blob(self.result(&head)?.1)
    }

    /// One request and its whole answer: the next one cannot begin before.
    async fn exchange(&mut self, body: &str, method: &str, name: &str) -> Result<Head, Failure> {
        let mut request = self.head.clone();
        if self.era == Era::Modern {
            write!(request, "Mcp-Method: {method}\r\n")?;
            if !name.is_empty() {
                write!(request, "Mcp-Name: {name}\r\n")?;
            }
        }
        write!(request, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        let head = timeout(ANSWER_TIMEOUT, self.receive()).await.map_err(|_| "no answer")??;
        if (200..300).contains(&head.status) {
            return Ok(head);
        }
        let body = String::from_utf8_lossy(&self.body);
        Err(format!("status {}: {body:.300}", head.status).into())
    }

    async fn receive(&mut self) -> Result<Head, Failure> {
        let head = self.receive_head().await?;
        self.body.clear();
        match head.length {
            Some(length) => {
                self.body.resize(length, 0);
                self.stream.read_exact(&mut self.body).await?;
            }
            None if head.is_chunked => while self.receive_chunk().await? {},
            // `202 Accepted` has neither, and nothing else is without a length.
            None => {}
        }
        Ok(head)
    }

    async fn receive_head(&mut self) -> Result<Head, Failure> {
        let mut head = Head::default();
        self.receive_line().await?;
        let status = std::str::from_utf8(&self.line)?.split(' ').nth(1).ok_or("no status")?;
        head.status = status.parse()?;
        loop {
            self.receive_line().await?;
            let line = std::str::from_utf8(&self.line)?.trim_end();
            if line.is_empty() {
                return Ok(head);
            }
            let (name, value) = line.split_once(':').ok_or("not a header")?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                head.length = Some(value.parse()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.is_chunked = value.eq_ignore_ascii_case("chunked");
            } else if name.eq_ignore_ascii_case("content-type") {
                head.is_events = value.starts_with("text/event-stream");
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                head.session = Some(value.to_owned());
            }
        }
    }

    async fn receive_chunk(&mut self) -> Result<bool, Failure> {
        self.receive_line().await?;
        let size = std::str::from_utf8(&self.line)?.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16)?;
        let begin = self.body.len();
        self.body.resize(begin + size, 0);
        self.stream.read_exact(&mut self.body[begin..]).await?;
        self.receive_line().await?;
        Ok(size > 0)
    }

    async fn receive_line(&mut self) -> Result<(), Failure> {
        self.line.clear();
        if self.stream.read_until(b'\n', &mut self.line).await? == 0 {
            return Err("the connection was closed".into());
        }
        Ok(())
    }

    /// The answer: the whole body, or the one event of a stream that is an answer.
    fn result(&self, head: &Head) -> Result<(u64, &str), Failure> {
        if !head.is_events {
            return messages::result(&self.body);
        }
        let lines = self.body.split(|byte| *byte == b'\n');
        let events = lines.filter_map(|line| line.strip_prefix(b"data:"));
        let mut answers = events.filter_map(|event| messages::result(event.trim_ascii()).ok());
        let text = || String::from_utf8_lossy(&self.body).into_owned();
        answers.next().ok_or_else(|| format!("no answer in the events: {:.300}", text()).into())
    }
}
