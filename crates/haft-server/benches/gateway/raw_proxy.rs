//! The practical floor of a gateway: HTTP in front, one stdio server behind, ids exchanged, nothing
//! looked at beyond the envelope and the tool's name. No keys, no limits, no checks, no log.

use std::collections::HashMap;
use std::convert::Infallible;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::Failure;

const BUFFER_BYTES: usize = 256 * 1024;
const INITIALIZE: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw-proxy","version":"0"}}"#;
const INITIALIZED: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

/// Serves at a port until it is ended. Its runtime is the one `haft` has: a thread for each core.
pub(crate) fn run(port: &str) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(port.parse()?))
}

async fn serve(port: u16) -> Result<(), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--role", "backend"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn()?;
    let stdout = child.stdout.take().ok_or("no stdout")?;
    let behind = Arc::new(Behind {
        next: AtomicU64::new(1),
        waiting: Mutex::default(),
        stdin: tokio::sync::Mutex::new(child.stdin.take().ok_or("no stdin")?),
    });
    let tasks = TaskTracker::new();
    tasks.spawn(read(Arc::clone(&behind), stdout));
    let greeting = Arc::new(behind.ask("initialize", INITIALIZE).await?);
    behind.stdin.lock().await.write_all(INITIALIZED.as_bytes()).await?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (behind, greeting) = (Arc::clone(&behind), Arc::clone(&greeting));
        let service = service_fn(move |request| {
            let (behind, greeting) = (Arc::clone(&behind), Arc::clone(&greeting));
            async move { Ok::<_, Infallible>(respond(&behind, &greeting, request).await) }
        });
        tasks.spawn(async move {
            // A client that goes away in the middle has what it wanted.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// The server behind.
struct Behind {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>,
    stdin: tokio::sync::Mutex<ChildStdin>,
}

impl Behind {
    async fn ask(&self, method: &str, params: &str) -> Result<Vec<u8>, Failure> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (send, answer) = oneshot::channel();
        self.waiting().insert(id, send);
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"
        );
        self.stdin.lock().await.write_all(line.as_bytes()).await?;
        Ok(answer.await?)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Vec<u8>>>> {
        self.waiting.lock()
    }
}

async fn read(behind: Arc<Behind>, stdout: ChildStdout) {
    let mut lines = BufReader::with_capacity(BUFFER_BYTES, stdout);
    loop {
        let mut line = Vec::new();
        if !lines.read_until(b'\n', &mut line).await.is_ok_and(|length| length > 0) {
            return behind.waiting().clear();
        }
        let id = serde_json::from_slice::<Answer<'_>>(&line).ok().and_then(|answer| answer.id);
        let waits = id.and_then(|id| behind.waiting().remove(&id));
        if let Some(waits) = waits {
            let _ = waits.send(line);
        }
    }
}

#[derive(Deserialize)]
struct RpcRequest<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// The fields that a gateway must read at least to route a call.
#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

async fn respond(
    behind: &Behind,
    greeting: &[u8],
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    if request.method() != Method::POST {
        return plain(StatusCode::METHOD_NOT_ALLOWED);
    }
    let Ok(body) = request.into_body().collect().await else {
        return plain(StatusCode::BAD_REQUEST);
    };
    let body = body.to_bytes();
    let Ok(asked) = serde_json::from_slice::<RpcRequest<'_>>(&body) else {
        return plain(StatusCode::BAD_REQUEST);
    };
    let Some(id) = asked.id else {
        return plain(StatusCode::ACCEPTED);
    };
    let params = asked.params.map_or("{}", RawValue::get);
    if asked.method == "initialize" {
        let mut response = json(with_id(greeting, id.get()));
        response.headers_mut().insert("mcp-session-id", HeaderValue::from_static("one"));
        return response;
    }
    if asked.method == "tools/call"
        && !serde_json::from_str::<Named>(params).is_ok_and(|it| !it.name.is_empty())
    {
        return plain(StatusCode::BAD_REQUEST);
    }
    match behind.ask(asked.method, params).await {
        Ok(line) => json(with_id(&line, id.get())),
        Err(_) => plain(StatusCode::BAD_GATEWAY),
    }
}

/// The answer under the caller's id, its content untouched.
fn with_id(line: &[u8], id: &str) -> Option<Vec<u8>> {
    let answer: Answer<'_> = serde_json::from_slice(line).ok()?;
    let (key, value) = match (answer.result, answer.error) {
        (Some(result), _) => ("result", result),
        (None, error) => ("error", error?),
    };
    let value = value.get().as_bytes();
    let mut message = Vec::with_capacity(value.len() + id.len() + 48);
    message.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    message.extend_from_slice(id.as_bytes());
    message.extend_from_slice(b",\"");
    message.extend_from_slice(key.as_bytes());
    message.extend_from_slice(b"\":");
    message.extend_from_slice(value);
    message.push(b'}');
    Some(message)
}

fn json(message: Option<Vec<u8>>) -> Response<Full<Bytes>> {
    let Some(message) = message else {
        return plain(StatusCode::BAD_GATEWAY);
    };
    let mut response = Response::new(Full::from(message));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
