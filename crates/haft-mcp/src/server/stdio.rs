//! One client over two pipes, a line for each message. Each request determines its era.

use haft_bounds::parse_error::describe;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use haft_bounds::heavy;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _};
use tokio::io::{AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{broadcast, mpsc};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use super::call_message::CallMessage;
use super::dispatch::{
    Answer, Client, Completion, Extracted, RawRequest, RequestHandler, check_id, empty,
};
use super::meta::RequestMeta;
use super::modern::Completed;
use super::params::{CALL, Params};
use super::peer::{ClientFacts, Out, new_client_id};
use super::principal::Principal;
use super::{
    Change, INVALID_REQUEST, PARSE_ERROR, ServeOptions, Service, change, legacy, modern,
    over_budget, refused_id,
};
use crate::budget::KeptBytes;
use crate::error::{INTERNAL_ERROR, RpcError};
use crate::handler::BoxFuture;
use crate::wire::{self, Incoming};

/// Messages that may wait for a slow reader.
const WAITING_MAX: usize = 256;
/// Time limit of a client to read a message before it counts as gone.
const STALL_MAX: Duration = Duration::from_mins(1);
/// Time for requests in flight after the client has closed its side, as `echo ... |` does.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Serves one client until it closes its side. Dropping the future cancels everything in flight.
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
        changes: service.changes(),
        principal: Principal::new(options.principal.as_str()),
        handler: RequestHandler::new(service, KeptBytes::default(), None),
        options,
        id: new_client_id(),
        client: None,
        out,
        running: JoinSet::new(),
        ids: Ids::default(),
    };
    // Both end the connection: without a writer there are no answers.
    let writing = write(writer, queue);
    let reading = connection.run(BufReader::new(reader));
    tokio::pin!(writing, reading);
    tokio::select! {
        written = &mut writing => written,
        // Queued messages are still written: the writer ends when all senders are gone.
        read = &mut reading => match read {
            Ok(()) => last_words(writing).await,
            Err(error) => last_words(writing).await.and(Err(error)),
        },
    }
}

/// Writes what waits, for a client that has closed its side and may not read either.
async fn last_words(writing: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    tokio::time::timeout(LAST_WORDS, writing).await.unwrap_or(Ok(()))
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut waiting: mpsc::Receiver<String>,
) -> io::Result<()> {
    while let Some(message) = waiting.recv().await {
        let mut line = wire::on_one_line(message);
        line.push('\n');
        let write = writer.write_all(line.as_bytes());
        let stalled = || io::Error::new(io::ErrorKind::TimedOut, "the client does not read");
        tokio::time::timeout(STALL_MAX, write).await.map_err(|_| stalled())??;
        // What waits already goes out together.
        if waiting.is_empty() {
            writer.flush().await?;
        }
    }
    writer.flush().await
}

struct Connection {
    handler: Arc<RequestHandler>,
    changes: broadcast::Receiver<Change>,
    principal: Principal,
    options: ServeOptions,
    /// The one who speaks the modern era here.
    id: u64,
    /// The client of `initialize`.
    client: Option<Arc<Client>>,
    out: mpsc::Sender<String>,
    /// The requests in flight. Dropping them cancels them.
    running: JoinSet<()>,
    /// The requests in flight by the client's own ids.
    ids: Ids,
}

/// Requests in flight, by the client's own ids. An id is free before its answer is sent: the client may use it again
/// at once.
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
                Some(changes_seen) = change::next(&mut self.changes) => self.announce(&changes_seen).await,
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
        let budget = self.options.limits.budget();
        if let Err(excess) = heavy::in_place(line.len(), || budget.check(line)) {
            let id = heavy::in_place(line.len(), || refused_id(line, excess));
            return self.refuse(id, &over_budget(excess)).await;
        }
        if let Some(call) = heavy::in_place(line.len(), || CallMessage::read(line)) {
            let raw = RawRequest { id: call.id, method: CALL, params: None };
            return self.request(raw, Ok(call.params)).await;
        }
        match heavy::in_place(line.len(), || wire::parse_unchecked(line)) {
            Ok(Incoming::Request { id, method, params }) => {
                let raw = RawRequest { id, method: &method, params };
                self.request(raw, Params::read(params)).await;
            }
            Ok(Incoming::Notification { method, params }) => self.notification(&method, params),
            Ok(Incoming::Result { id, result }) => self.answered(id, Ok(result.to_owned())),
            Ok(Incoming::Error { id, error }) => {
                let error = serde_json::from_str(error.get()).unwrap_or_else(|error| {
                    RpcError::new(
                        INTERNAL_ERROR,
                        format!("its error cannot be read: {}", describe(&error)),
                    )
                });
                self.answered(id.unwrap_or(RawValue::NULL), Err(error));
            }
            Err(wire::Malformed(why)) => {
                let is_json = serde_json::from_slice::<&RawValue>(line).is_ok();
                let code = if is_json { INVALID_REQUEST } else { PARSE_ERROR };
                self.refuse(None, &RpcError::new(code, why)).await;
            }
        }
    }

    /// The client answered a question of ours.
    fn answered(&self, id: &RawValue, answer: Answer) {
        if !self.client.as_ref().is_some_and(|client| client.asks.answer(id, answer)) {
            tracing::debug!("the client answered an unknown request");
        }
    }

    async fn request(&mut self, raw: RawRequest<'_>, params: Result<Params<'_>, RpcError>) {
        match self.begin(raw, params).await {
            Ok(None) => {}
            Ok(Some(result)) => self.send(wire::response(raw.id, &result)).await,
            Err(error) => self.refuse(Some(raw.id), &error).await,
        }
    }

    /// Shakes hands, or starts a request.
    async fn begin(
        &mut self,
        raw: RawRequest<'_>,
        known: Result<Params<'_>, RpcError>,
    ) -> Result<Option<Box<RawValue>>, RpcError> {
        let RawRequest { id, method, params } = raw;
        check_id(id)?;
        if self.ids.lock().contains_key(id.get()) {
            let text = format!("a request with the id {id} is already in flight");
            return Err(RpcError::new(INVALID_REQUEST, text));
        }
        let known = known?;
        let meta = &known.meta;
        let speaker = if meta.protocol_version.is_some() || method == "server/discover" {
            let facts = modern::client(meta, self.id, &self.principal)?;
            Speaker::Modern(facts, meta.request_meta()?)
        } else {
            match (method, &self.client) {
                ("initialize", None) => {
                    let about = Arc::clone(&self.handler.service).about().await;
                    let (facts, result) = legacy::initialize(params, &about, &self.principal)?;
                    self.client = Some(Client::new(facts));
                    return Ok(Some(result));
                }
                ("initialize", Some(_)) => {
                    return Err(RpcError::new(INVALID_REQUEST, "`initialize` comes only once"));
                }
                ("ping", None) => return Ok(Some(empty())),
                (_, Some(client)) => Speaker::Legacy(Arc::clone(client)),
                (_, None) => {
                    let text = format!("`{method}` comes after `initialize`");
                    return Err(RpcError::new(INVALID_REQUEST, text));
                }
            }
        };
        if self.running.len() >= self.options.requests_max {
            let text = format!("{} requests are already in flight", self.options.requests_max);
            return Err(RpcError::new(INTERNAL_ERROR, text));
        }
        self.start(raw, &known, speaker);
        Ok(None)
    }

    fn start(&mut self, raw: RawRequest<'_>, params: &Params<'_>, speaker: Speaker) {
        let (handler, out) = (Arc::clone(&self.handler), self.out.clone());
        let (id, method) = (raw.id.to_owned(), raw.method.to_owned());
        let (ids, key) = (Arc::clone(&self.ids), id.get().to_owned());
        let sender = Out::Connection(out.clone());
        let work = match speaker {
            Speaker::Legacy(client) => Work::Legacy(handler.legacy(&client, raw, params, sender)),
            Speaker::Modern(facts, request_meta) => {
                let extracted = Extracted::of(raw.method, params);
                let raw_params = raw.params.map(ToOwned::to_owned);
                let id = id.clone();
                Work::Modern(Box::pin(async move {
                    let params = raw_params.as_deref();
                    let raw = RawRequest { id: &id, method: &method, params };
                    handler.modern(facts, request_meta, raw, extracted?, sender).await
                }))
            }
        };
        // Held until the request is in there: it may end before this function continues.
        let mut known = self.ids.lock();
        let handle = self.running.spawn(async move {
            let answer = match work {
                Work::Legacy(work) => work.await.map(Completed::from),
                Work::Modern(work) => work.await,
            };
            let answer = match answer {
                Ok(Completed { result, added }) => wire::response_with(&id, &result, &added),
                Err(error) => wire::error_response(&id, &error),
            };
            ids.lock().remove(id.get());
            // The writer is gone only when the connection ends.
            let _ = out.send(answer).await;
        });
        known.insert(key, handle);
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        if method != "notifications/cancelled" {
            return;
        }
        // A request that has ended meanwhile is not the client's fault.
        let id = params.and_then(legacy::cancelled);
        if let Some(request) = id.and_then(|id| self.ids.lock().remove(id)) {
            request.abort();
        }
    }

    /// A request that ended in a panic is answered all the same.
    async fn ended(&self, ended: Result<(), JoinError>) {
        let Some(error) = ended.err().filter(JoinError::is_panic) else { return };
        tracing::error!("a request ended in a panic");
        let key = {
            let mut ids = self.ids.lock();
            let key = ids.iter().find(|(_, it)| it.id() == error.id()).map(|(key, _)| key.clone());
            key.inspect(|key| drop(ids.remove(key)))
        };
        if let Some(id) = key.and_then(|key| RawValue::from_string(key).ok()) {
            self.refuse(Some(&id), &RpcError::new(INTERNAL_ERROR, "the request failed")).await;
        }
    }

    /// Notifies the client of changes.
    async fn announce(&self, changes_seen: &[Change]) {
        let Some(client) = &self.client else { return };
        for change in changes_seen.iter().filter(|change| client.wants(change)) {
            self.send(wire::notification(change.method(), &change.params(None))).await;
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

/// The client that sent it.
enum Speaker {
    Legacy(Arc<Client>),
    Modern(ClientFacts, RequestMeta),
}

/// A request on its way to its answer.
enum Work {
    Legacy(BoxFuture<'static, Answer>),
    Modern(BoxFuture<'static, Completion>),
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads until a line is whole. If the future is dropped, the next call continues at the same point.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A forwarded message may have line ends: none of them ends our message.
    #[tokio::test]
    async fn a_message_is_one_line_whatever_is_handed_on() {
        let (tell, waiting) = mpsc::channel(1);
        let forged = r#"{"jsonrpc":"2.0","id":777,"result":{}}"#;
        let params = format!("{{\"data\":\r\n{forged}\n}}");
        tell.send(wire::notification("notifications/message", &params)).await.unwrap();
        drop(tell);
        let mut written = Vec::new();
        write(&mut written, waiting).await.unwrap();
        let text = String::from_utf8(written).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
