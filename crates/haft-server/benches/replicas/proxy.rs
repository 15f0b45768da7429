//! A proxy between a replica and PostgreSQL, or in front of a replica for the others. It fails on request. Of PostgreSQL it
//! reads the messages that pass, and counts statements.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Length of the part of a statement that identifies it in a report.
const STATEMENT_CHARS: usize = 60;
/// The most that passes at once between replicas.
const CHUNK_BYTES: usize = 64 * 1024;
/// Type of a notification from the database.
const NOTIFICATION: u8 = b'A';
/// Types of the messages that carry a statement: a parsed one and a simple one.
const PARSE: u8 = b'P';
const QUERY: u8 = b'Q';

/// The behaviour of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Everything passes.
    None,
    /// Every message waits.
    Delay(Duration),
    /// Connections stay open and carry nothing, as behind a firewall that forgot them.
    HalfOpen,
    /// Connections are closed and new ones refused.
    Cut,
    /// Notifications are dropped; everything else passes.
    LoseNotifications,
}

/// The service behind the proxy.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Upstream {
    Postgres(SocketAddr),
    /// Bytes that the proxy does not read.
    Replica(SocketAddr),
}

/// A running proxy. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    fault: watch::Sender<Fault>,
    statements: Arc<Mutex<BTreeMap<String, u64>>>,
    _accepting: JoinSet<()>,
}

#[derive(Clone)]
struct Shared {
    fault: watch::Receiver<Fault>,
    statements: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Proxy {
    pub(crate) async fn start(upstream: Upstream) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (sender, fault) = watch::channel(Fault::None);
        let statements = Arc::default();
        let shared = Shared { fault, statements: Arc::clone(&statements) };
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, upstream, shared));
        Ok(Self { port, fault: sender, statements, _accepting: accepting })
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// Number of statements so far, by their beginning.
    pub(crate) fn statements(&self) -> BTreeMap<String, u64> {
        self.statements.lock().clone()
    }
}

async fn accept(listener: TcpListener, upstream: Upstream, shared: Shared) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        if *shared.fault.borrow() == Fault::Cut {
            continue;
        }
        let shared = shared.clone();
        connections.spawn(async move {
            // A connection that breaks is what the proxy is for.
            let _ = connect(client, upstream, shared).await;
        });
    }
}

async fn connect(client: TcpStream, upstream: Upstream, shared: Shared) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (Upstream::Postgres(address) | Upstream::Replica(address)) = upstream;
    let server = TcpStream::connect(address).await?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut fault = shared.fault.clone();
    let cut = async move { fault.wait_for(|fault| *fault == Fault::Cut).await.map(drop) };
    match upstream {
        Upstream::Postgres(_) => tokio::select! {
            sent = requests(from_client, to_server, shared.clone()) => sent,
            sent = answers(from_server, to_client, shared) => sent,
            _ = cut => Ok(()),
        },
        Upstream::Replica(_) => tokio::select! {
            sent = bytes(from_client, to_server, shared.clone()) => sent,
            sent = bytes(from_server, to_client, shared) => sent,
            _ = cut => Ok(()),
        },
    }
}

/// Passes bytes of any protocol.
async fn bytes(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    shared: Shared,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        shared.pass().await;
        to.write_all(&buffer[..read]).await?;
    }
}

/// Passes messages of the client. Its first one has no type.
async fn requests(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    shared: Shared,
) -> io::Result<()> {
    let length = from.read_u32().await?;
    let mut body = vec![0; body_length(length)?];
    from.read_exact(&mut body).await?;
    shared.pass().await;
    to.write_all(&[&length.to_be_bytes(), body.as_slice()].concat()).await?;
    loop {
        let message = Message::read(&mut from).await?;
        if let Some(statement) = message.statement() {
            *shared.statements.lock().entry(statement).or_default() += 1;
        }
        shared.pass().await;
        message.write(&mut to).await?;
    }
}

/// Passes messages of the database.
async fn answers(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    shared: Shared,
) -> io::Result<()> {
    loop {
        let message = Message::read(&mut from).await?;
        shared.pass().await;
        let is_lost = *shared.fault.borrow() == Fault::LoseNotifications;
        if !(is_lost && message.kind == NOTIFICATION) {
            message.write(&mut to).await?;
        }
    }
}

impl Shared {
    /// Waits as long as the fault demands.
    async fn pass(&self) {
        let mut fault = self.fault.clone();
        let delay = match *fault.borrow_and_update() {
            Fault::None | Fault::Cut | Fault::LoseNotifications => return,
            Fault::Delay(delay) => Some(delay),
            Fault::HalfOpen => None,
        };
        match delay {
            Some(delay) => sleep(delay).await,
            None => drop(fault.wait_for(|fault| *fault != Fault::HalfOpen).await),
        }
    }
}

/// One message of the protocol: a type, a length that includes itself, and a body.
struct Message {
    kind: u8,
    body: Vec<u8>,
}

impl Message {
    async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let kind = from.read_u8().await?;
        let mut body = vec![0; body_length(from.read_u32().await?)?];
        from.read_exact(&mut body).await?;
        Ok(Self { kind, body })
    }

    async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let length = u32::try_from(self.body.len() + 4).map_err(io::Error::other)?;
        to.write_all(&[&[self.kind], &length.to_be_bytes()[..], &self.body].concat()).await
    }

    /// The beginning of the statement that the message carries.
    fn statement(&self) -> Option<String> {
        let text = match self.kind {
            // A name, then the statement, each with a zero at its end.
            PARSE => self.body.split(|byte| *byte == 0).nth(1)?,
            QUERY => self.body.split(|byte| *byte == 0).next()?,
            _ => return None,
        };
        let words: Vec<_> =
            text.split(u8::is_ascii_whitespace).filter(|it| !it.is_empty()).collect();
        let text = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
        Some(text.chars().take(STATEMENT_CHARS).collect())
    }
}

fn body_length(length: u32) -> io::Result<usize> {
    let body = length.checked_sub(4).and_then(|body| usize::try_from(body).ok());
    body.ok_or_else(|| io::Error::other("a message without a length"))
}
