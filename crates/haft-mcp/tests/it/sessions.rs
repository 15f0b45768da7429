//! A session over pipes in memory, with a clock that runs ahead whenever everything waits.

mod budget;
mod encodings;
mod limits;
mod messages;

use std::sync::Arc;

use encoding_rs::{Encoding, UTF_8};
use haft_mcp::transport::Pipes;
use haft_mcp::{
    ByteBudget, Handler, Limits, MessageRouter, RefuseAll, RequestError, RequestOptions, Session,
};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

/// The server's end of the pipes.
struct Server(BufReader<DuplexStream>);

impl Server {
    async fn next(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    async fn say(&mut self, line: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(line.as_ref()).await.unwrap();
        self.0.get_mut().write_all(b"\n").await.unwrap();
    }
}

/// Settings of a session.
struct Setup {
    /// Capacity of a pipe.
    pipe_bytes: usize,
    encoding: &'static Encoding,
    limits: Limits,
    handler: Arc<dyn Handler>,
    budget: Option<Arc<dyn ByteBudget>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            pipe_bytes: 64 * 1024,
            encoding: UTF_8,
            limits: Limits::default(),
            handler: Arc::new(RefuseAll),
            budget: None,
        }
    }
}

impl Setup {
    fn start(self) -> (Session, Server) {
        let (ours, theirs) = tokio::io::duplex(self.pipe_bytes);
        let (reader, writer) = tokio::io::split(ours);
        let router = MessageRouter::with_budget(self.handler, self.limits, self.budget);
        let pipes = Pipes::start(reader, writer, self.encoding, router.clone());
        (Session::new(Arc::new(pipes), router), Server(BufReader::new(theirs)))
    }
}

async fn ask(session: &Session, options: RequestOptions) -> Result<String, RequestError> {
    let answer = session.request(session.next_id(), "test", "{}", options).await;
    answer.map(|answer| answer.get().to_owned())
}
