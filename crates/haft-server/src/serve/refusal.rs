//! Answers to connections that find no room.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::problem::Problem;

/// Refused clients that are answered at once. Beyond that a connection is closed without an answer.
const ANSWERS_MAX: usize = 64;
/// Time limit of an answer, and the part of the client's request that is read so that the answer arrives.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
const REQUEST_BYTES_MAX: u64 = 64 * 1024;

/// Refuses connections with 503. Clones share the limit.
#[derive(Debug, Clone)]
pub(super) struct Refusals {
    answer: Arc<[u8]>,
    turns: Arc<Semaphore>,
}

impl Refusals {
    pub(super) fn new() -> Self {
        let problem = Problem::unavailable("there are too many connections")
            .remedy("try again soon, and use connections again instead of opening new ones");
        // Strings and numbers always serialize.
        let body = serde_json::to_string(problem.document()).unwrap_or_default();
        let answer = format!(
            "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
             content-length: {}\r\nretry-after: 1\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let turns = Arc::new(Semaphore::new(ANSWERS_MAX));
        Self { answer: answer.into_bytes().into(), turns }
    }

    /// Answers a client that speaks HTTP without TLS. None: too many are being answered.
    pub(super) fn answer(&self, stream: TcpStream) -> Option<impl Future<Output = ()> + use<>> {
        let turn = Arc::clone(&self.turns).try_acquire_owned().ok()?;
        let answer = Arc::clone(&self.answer);
        Some(async move {
            // A client that does not listen gets no more time.
            let _ = timeout(ANSWER_TIMEOUT, send(stream, &answer)).await;
            drop(turn);
        })
    }
}

impl Refusals {
    /// Answers a client here and now, which takes at most `patience`.
    pub(super) async fn answer_within(&self, stream: TcpStream, patience: Duration) {
        let _ = timeout(patience, send(stream, &self.answer)).await;
    }
}

async fn send(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    stream.write_all(answer).await?;
    stream.shutdown().await?;
    // Closing with unread data resets the connection, and the client may lose the answer.
    let mut request = stream.take(REQUEST_BYTES_MAX);
    tokio::io::copy(&mut request, &mut tokio::io::sink()).await?;
    Ok(())
}

/// A descriptor that is reserved for when all others are taken: released, it lets one client be accepted and
/// answered.
#[derive(Debug)]
pub(super) struct SpareDescriptor(Option<File>);

impl SpareDescriptor {
    pub(super) fn new() -> Self {
        Self(open())
    }

    /// Gives the descriptor up and waits for a client, who has it then. `restore` opens it again.
    pub(super) async fn accept(
        &mut self,
        listener: &TcpListener,
    ) -> io::Result<(TcpStream, SocketAddr)> {
        self.0 = None;
        listener.accept().await
    }

    /// Opens the descriptor again, if there is one.
    pub(super) fn restore(&mut self) {
        self.0 = self.0.take().or_else(open);
    }

    pub(super) fn is_missing(&self) -> bool {
        self.0.is_none()
    }
}

/// Without a spare descriptor clients wait in the queue of the system.
fn open() -> Option<File> {
    File::open("/dev/null").ok()
}
