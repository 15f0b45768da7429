//! One client over two pipes, a line for each message. The era is told by each request itself.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _};
use tokio::io::{AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use super::peer::{ClientFacts, Peer, progress_token};
use super::{
    About, ClientRequest, INVALID_REQUEST, PARSE_ERROR, ServeOptions, Service, legacy, modern,
};
use crate::error::{INTERNAL_ERROR, RpcError};
use crate::transport::Era;
use crate::wire::{self, Incoming};

/// How many messages may wait for a slow reader.
const WAITING_MAX: usize = 256;
/// How long requests under way may go on when the client has closed its side, as `echo ... |` does.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Serves one client until it closes its side. Dropping the future cancels whatever is under way.
///
/// An error is a pipe that broke, or a client that sent a message beyond all limits.
pub async fn stdio(
    service: Arc<dyn Service>,
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin + Send,
    options: ServeOptions,
) -> io::Result<()> {
    let (out, queue) = mpsc::channel(WAITING_MAX);
    let connection = Connection {
        about: service.about(),
        changes: service.tool_changes(),
        principal: options.principal.as_str().into(),
        service,
        options,
        client: None,
        out,
        running: JoinSet::new(),
        ids: Ids::default(),
    };
    // Both end the connection: nobody is answered without a writer.
    let writing = write(writer, queue);
    let reading = connection.run(BufReader::new(reader));
    tokio::pin!(writing, reading);
    tokio::select! {
        written = &mut writing => written,
        // What waits is still written: the writer ends when nobody can add to it.
        read = &mut reading => match read {
            Ok(()) => writing.await,
            Err(error) => writing.await.and(Err(error)),
        },
    }
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut waiting: mpsc::Receiver<String>,
) -> io::Result<()> {
    while let Some(mut message) = waiting.recv().await {
        message.push('\n');
        writer.write_all(message.as_bytes()).await?;
        // What waits already goes out together.
        if waiting.is_empty() {
            writer.flush().await?;
        }
    }
    writer.flush().await
}

struct Connection {
    service: Arc<dyn Service>,
    about: About,
    changes: watch::Receiver<u64>,
    principal: Arc<str>,
    options: ServeOptions,
    /// Who `initialize` introduced.
    client: Option<Arc<ClientFacts>>,
    out: mpsc::Sender<String>,
    /// The requests under way. Dropping them cancels them.
    running: JoinSet<()>,
    /// The requests under way by the client's own ids.
    ids: Ids,
}

/// Requests under way, by the client's own ids. An id is free before its answer is sent: the client may
/// use it again at once.
type Ids = Arc<Mutex<HashMap<String, AbortHandle>>>;

impl Connection {
    async fn run(mut self, mut reader: impl AsyncBufRead + Unpin) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            tokio::select! {
                read = read_line(&mut reader, &mut line, self.options.limits.message_bytes_max) => {
                    match read {
                        Ok(Line::Whole) => {}
                        Ok(Line::End) => break,
                        Ok(Line::TooLong) => return self.too_long().await,
                        Err(error) => return Err(error),
                    }
                    self.receive(&line).await;
                    line.clear();
                }
                Some(ended) = self.running.join_next() => self.ended(ended).await,
                Ok(()) = self.changes.changed() => self.announce().await,
            }
        }
        let finishing = async { while self.running.join_next().await.is_some() {} };
        // What does not end is dropped with the connection, which cancels it.
        let _ = tokio::time::timeout(LAST_WORDS, finishing).await;
        Ok(())
    }

    async fn too_long(&self) -> io::Result<()> {
        let max = self.options.limits.message_bytes_max;
        let text = format!("a message is longer than {max} bytes");
        self.refuse(None, &RpcError::new(INVALID_REQUEST, text.clone())).await;
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }

    async fn receive(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        match wire::parse(line, self.options.limits.depth_max) {
            Ok(Incoming::Request { id, method, params }) => {
                self.request(id, &method, params).await;
            }
            Ok(Incoming::Notification { method, params }) => self.notification(&method, params),
            // We ask nothing of clients, so there is nothing they could answer.
            Ok(Incoming::Result { .. } | Incoming::Error { .. }) => {
                tracing::debug!("a client answered what nobody asked");
            }
            Err(wire::Malformed(why)) => {
                let is_json = serde_json::from_slice::<&RawValue>(line).is_ok();
                let code = if is_json { INVALID_REQUEST } else { PARSE_ERROR };
                self.refuse(None, &RpcError::new(code, why)).await;
            }
        }
    }

    async fn request(&mut self, id: &RawValue, method: &str, params: Option<&RawValue>) {
        let answer = match self.begin(id, method, params) {
            Ok(Begun::Answered(result)) => wire::response(id, &result),
            Ok(Begun::Running) => return,
            Err(error) => wire::error_response(id, &error),
        };
        self.send(answer).await;
    }

    /// Answers what the protocol asks, and starts everything else.
    fn begin(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Begun, RpcError> {
        if !id.get().starts_with(|it: char| it == '"' || it == '-' || it.is_ascii_digit()) {
            return Err(RpcError::new(INVALID_REQUEST, "an id is a text or a number"));
        }
        if lock(&self.ids).contains_key(id.get()) {
            let text = format!("a request with the id {id} is under way already");
            return Err(RpcError::new(INVALID_REQUEST, text));
        }
        let client = if modern::is_modern(method, params) {
            let client = modern::client(params)?;
            if method == "server/discover" {
                return modern::discover(&self.about)
                    .map(|result| Begun::Answered(modern::complete(method, result)));
            }
            Arc::new(client)
        } else {
            match (method, &self.client) {
                ("initialize", None) => {
                    let (client, result) = legacy::initialize(params, &self.about)?;
                    self.client = Some(Arc::new(client));
                    return Ok(Begun::Answered(result));
                }
                ("initialize", Some(_)) => {
                    return Err(RpcError::new(INVALID_REQUEST, "`initialize` comes only once"));
                }
                ("ping", _) => {
                    // Two characters that are JSON.
                    let empty = RawValue::from_string("{}".to_owned());
                    let empty = empty.unwrap_or_else(|_| RawValue::NULL.to_owned());
                    return Ok(Begun::Answered(empty));
                }
                (_, Some(client)) => Arc::clone(client),
                (_, None) => {
                    let text = format!("`{method}` comes after `initialize`");
                    return Err(RpcError::new(INVALID_REQUEST, text));
                }
            }
        };
        if self.running.len() >= self.options.requests_max {
            let text = format!("{} requests are under way already", self.options.requests_max);
            return Err(RpcError::new(INTERNAL_ERROR, text));
        }
        self.start(id, method, params, client);
        Ok(Begun::Running)
    }

    fn start(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        client: Arc<ClientFacts>,
    ) {
        let peer = Peer {
            client,
            principal: Arc::clone(&self.principal),
            progress_token: progress_token(params),
            out: self.out.clone(),
        };
        let era = peer.era();
        let request = ClientRequest {
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
            peer,
        };
        let (service, out) = (Arc::clone(&self.service), self.out.clone());
        let (method, answer_to) = (method.to_owned(), id.to_owned());
        let (ids, key) = (Arc::clone(&self.ids), id.get().to_owned());
        // Held until the request is in there: it may end before this goes on.
        let mut known = lock(&self.ids);
        let handle = self.running.spawn(async move {
            let answer = match service.request(request).await {
                Ok(result) => {
                    let result = match era {
                        Era::Legacy => result,
                        Era::Modern => modern::complete(&method, result),
                    };
                    wire::response(&answer_to, &on_one_line(result))
                }
                Err(error) => wire::error_response(&answer_to, &error),
            };
            lock(&ids).remove(&key);
            // Nobody is left to answer where this fails.
            let _ = out.send(answer).await;
        });
        known.insert(id.get().to_owned(), handle);
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        if method != "notifications/cancelled" {
            return;
        }
        let cancelled = params.and_then(|it| serde_json::from_str::<Cancelled<'_>>(it.get()).ok());
        let id = cancelled.map(|it| it.request_id.get());
        // One that has ended meanwhile is no fault of the client.
        if let Some(request) = id.and_then(|id| lock(&self.ids).remove(id)) {
            request.abort();
        }
    }

    /// A request that ended in a panic is answered all the same.
    async fn ended(&self, ended: Result<(), JoinError>) {
        let Some(error) = ended.err().filter(JoinError::is_panic) else { return };
        tracing::error!("a request ended in a panic");
        let key = {
            let mut ids = lock(&self.ids);
            let key = ids.iter().find(|(_, it)| it.id() == error.id()).map(|(key, _)| key.clone());
            key.inspect(|key| drop(ids.remove(key)))
        };
        if let Some(id) = key.and_then(|key| RawValue::from_string(key).ok()) {
            self.refuse(Some(&id), &RpcError::new(INTERNAL_ERROR, "the request failed")).await;
        }
    }

    /// Tells the client that the list of tools is another one.
    async fn announce(&self) {
        if self.client.is_some() {
            self.send(wire::notification("notifications/tools/list_changed", "{}")).await;
        }
    }

    async fn refuse(&self, id: Option<&RawValue>, error: &RpcError) {
        self.send(wire::error_response(id.unwrap_or(RawValue::NULL), error)).await;
    }

    async fn send(&self, message: String) {
        // The writer is gone only when the connection ends.
        let _ = self.out.send(message).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a request went on.
enum Begun {
    Answered(Box<RawValue>),
    Running,
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads on until a line is whole. Given up in the middle, it goes on where it was.
async fn read_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    bytes_max: usize,
) -> io::Result<Line> {
    let room = bytes_max.saturating_add(2).saturating_sub(line.len());
    reader.take(room as u64).read_until(b'\n', line).await?;
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    Ok(if text.len() > bytes_max {
        Line::TooLong
    } else if line.is_empty() {
        Line::End
    } else {
        // A last line may lack its end.
        Line::Whole
    })
}

/// A result without line ends between its parts, where it has any: they would end the message.
fn on_one_line(result: Box<RawValue>) -> Box<RawValue> {
    if memchr::memchr2(b'\n', b'\r', result.get().as_bytes()).is_none() {
        return result;
    }
    // Inside strings JSON has no line ends, so every one stands between parts.
    let text = result.get().replace(['\n', '\r'], " ");
    RawValue::from_string(text).unwrap_or(result)
}
