//! HTTP over a raw socket: requests byte by byte, from any loopback address.

use std::io::{Error, Result};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// The longest that opening a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// The longest line of a head that is read.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// The largest body that is kept; the rest is read and dropped.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// A connection to the service.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
}

/// An answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) session: Option<String>,
    pub(super) body: Vec<u8>,
    /// True if the service closes the connection behind it.
    pub(super) is_last: bool,
}

impl Connection {
    /// Connects from `source`.
    pub(super) async fn open(source: Ipv4Addr, port: u16) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // Thousands of connections follow each other: a port of one that ended can be used again at once.
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::V4(SocketAddrV4::new(source, 0)))?;
        let connecting = socket.connect(([127, 0, 0, 1], port).into());
        let stream =
            timeout(CONNECT_MAX, connecting).await.map_err(|_| Error::other("no connection"))??;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends bytes.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.get_mut().write_all(bytes).await
    }

    /// Sends a request and reads its answer. The service may answer and close before it has read everything,
    /// so a failed write does not end the exchange.
    pub(super) async fn exchange(&mut self, request: &Request<'_>) -> Result<Answer> {
        let head = request.head();
        let sent = match self.send(head.as_bytes()).await {
            Ok(()) => self.send(request.body).await,
            failed => failed,
        };
        match self.receive().await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(sent.err().unwrap_or(error)),
        }
    }

    /// Reads one answer.
    pub(super) async fn receive(&mut self) -> Result<Answer> {
        let mut answer = Answer::default();
        let status = self.line().await?;
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
        answer.status = status.ok_or_else(|| Error::other("not an HTTP answer"))?;
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(Error::other)?,
                "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
                "mcp-session-id" => answer.session = Some(value.to_owned()),
                "connection" => answer.is_last = value.eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        if is_chunked {
            while self.chunk(&mut answer.body).await? {}
        } else {
            self.body(length, &mut answer.body).await?;
        }
        Ok(answer)
    }

    /// Returns true if the service has neither closed it nor sent anything unasked.
    pub(super) fn is_open(&self) -> bool {
        let read = self.stream.get_ref().try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Waits until the service closes the connection, or sends anything.
    pub(super) async fn closed(&mut self) {
        drop(self.stream.fill_buf().await);
    }

    async fn chunk(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        let line = self.line().await?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(Error::other)?;
        self.body(size, into).await?;
        self.line().await?;
        Ok(size > 0)
    }

    async fn body(&mut self, length: usize, into: &mut Vec<u8>) -> Result<()> {
        let kept = length.min(KEPT_BYTES_MAX.saturating_sub(into.len()));
        let begin = into.len();
        into.resize(begin + kept, 0);
        self.stream.read_exact(&mut into[begin..]).await?;
        let rest = u64::try_from(length - kept).map_err(Error::other)?;
        tokio::io::copy(&mut (&mut self.stream).take(rest), &mut tokio::io::sink()).await?;
        Ok(())
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let mut limited = (&mut self.stream).take(LINE_BYTES_MAX);
        if limited.read_line(&mut line).await? == 0 {
            return Err(Error::other("the service closed the connection"));
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}

/// A request, with what every one of them has.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) path: &'a str,
    pub(super) key: &'a str,
    pub(super) session: Option<&'a str>,
    pub(super) body: &'a [u8],
}

impl Request<'_> {
    /// The head, with the empty line behind it.
    pub(super) fn head(&self) -> String {
        let Self { path, key, session, body } = self;
        let length = body.len();
        let session = session.map_or(String::new(), |session| {
            format!("Mcp-Session-Id: {session}\r\nMcp-Protocol-Version: 2025-06-18\r\n")
        });
        // The API answers a call with events if the request accepts them.
        let events = if path.starts_with("/mcp") { ", text/event-stream" } else { "" };
        format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
             Accept: application/json{events}\r\n{session}Content-Length: {length}\r\n\r\n"
        )
    }

    /// The whole request.
    pub(super) fn bytes(&self) -> Vec<u8> {
        [self.head().as_bytes(), self.body].concat()
    }
}
