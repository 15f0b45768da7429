//! A command's side of the link.

use std::path::{Path, PathBuf};

use axum::body::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};

use super::protocol::{Frames, Reply, Request, VERSION, frames};
use super::socket::{self, SocketRefusal};
use super::{files, socket_name};
use crate::cli::{EXIT_RUNTIME, Failure, Global, block_on, load};

/// The state folder beside a file that cannot be loaded.
const STATE_DIR: &str = ".haft";

/// A connection to the running service of the configuration.
pub(in crate::cli) struct ServiceClient {
    pub(super) frames: Frames,
}

impl ServiceClient {
    /// Connects to the service of the configuration. `None` without one, and with `--standalone`.
    pub(in crate::cli) async fn connect(global: &Global) -> anyhow::Result<Option<Self>> {
        let Some(path) = path(global) else { return Ok(None) };
        let stream = match socket::connect(&path).await {
            Ok(stream) => stream,
            Err(SocketRefusal::Absent) => return Ok(None),
            Err(refusal @ (SocketRefusal::Foreign { .. } | SocketRefusal::Io(_))) => {
                tracing::warn!("the running service is not used: {refusal}");
                return Ok(None);
            }
        };
        let mut client = Self { frames: frames(stream) };
        let hello = Request::Hello { version: VERSION.to_owned() };
        match client.request(&hello).await {
            Ok(Reply::Welcome { version }) if version == VERSION => Ok(Some(client)),
            Ok(Reply::Welcome { version }) => {
                tracing::warn!(
                    "the running service is Haft {version} and this is {VERSION}; it is not used"
                );
                Ok(None)
            }
            // It is ending, or another version of the protocol.
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Sends a request and waits for the response. A failure of the request is an error.
    pub(in crate::cli) async fn request(&mut self, request: &Request) -> anyhow::Result<Reply> {
        self.send(request).await?;
        match self.receive().await? {
            Reply::Failed(failure) => Err(Failure::from(failure).into()),
            reply => Ok(reply),
        }
    }

    pub(super) async fn send(&mut self, request: &Request) -> anyhow::Result<()> {
        let sent = self.frames.send(Bytes::from(serde_json::to_vec(request)?)).await;
        sent.map_err(|_| gone().into())
    }

    pub(super) async fn receive(&mut self) -> anyhow::Result<Reply> {
        match self.frames.next().await {
            Some(Ok(frame)) => Ok(serde_json::from_slice(&frame)?),
            Some(Err(_)) | None => Err(gone().into()),
        }
    }
}

/// A service that has a socket.
pub(in crate::cli) struct RunningService {
    /// Its process, if the system tells.
    pub(in crate::cli) pid: Option<i32>,
    /// Its address. `None` if it is another version of Haft.
    pub(in crate::cli) url: Option<String>,
}

/// The service that listens at a socket, if there is one.
pub(in crate::cli) async fn running(path: &Path) -> Option<RunningService> {
    // What keeps this process from the socket is reported when it binds its own.
    let stream = socket::connect(path).await.ok()?;
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let mut client = ServiceClient { frames: frames(stream) };
    let url = match client.request(&Request::Status).await {
        Ok(Reply::Status(status)) => Some(status.url),
        Ok(_) | Err(_) => None,
    };
    Some(RunningService { pid, url })
}

/// Sends one request to the service, if there is one.
pub(in crate::cli) fn ask(global: &Global, request: &Request) -> anyhow::Result<Option<Reply>> {
    if global.standalone || files(global).is_none() {
        return Ok(None);
    }
    // Without handlers of signals, which would outlast the request: Ctrl-C ends the command now and later.
    block_on(async {
        match ServiceClient::connect(global).await? {
            Some(mut client) => client.request(request).await.map(Some),
            None => Ok(None),
        }
    })
}

/// The error for a response that does not fit the request.
pub(in crate::cli) fn unexpected() -> anyhow::Error {
    Failure::new(
        EXIT_RUNTIME,
        "the running service sent an unexpected response",
        "add `--standalone`, or restart the service",
    )
    .into()
}

fn gone() -> Failure {
    Failure::new(
        EXIT_RUNTIME,
        "the running service ended before it answered; if a call was in flight, its outcome is unknown",
        "`haft log` shows recorded calls; without the service the command starts the servers itself",
    )
}

/// The socket of the configuration.
fn path(global: &Global) -> Option<PathBuf> {
    let files = if global.standalone { None } else { files(global) }?;
    let state_dir = match load::load_unasked(global, files.clone()) {
        Ok(config) => config.state_dir.value,
        // Such as a variable that only the service has in its environment.
        Err(_) => beside(files.first()?).join(STATE_DIR),
    };
    Some(state_dir.join(socket_name(global, &files)))
}

/// The folder of state by default: that of a native file, otherwise the current one.
fn beside(file: &Path) -> PathBuf {
    let is_native = file.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b"haft."));
    let folder = file.parent().filter(|_| is_native);
    folder.map(ToOwned::to_owned).unwrap_or_default()
}
