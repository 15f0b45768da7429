//! The contenders, and their start in front of the same server.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haft_server::keys::{KeyFile, Scope};
use serde_json::json;

use super::Failure;
use super::http::Address;
use super::load::IN_FLIGHT;
use super::messages::Era;
use super::peers;
use super::pipe::Pipe;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Direct,
    RawProxy,
    Haft(Era),
    /// Another build of it.
    Also(Era),
    RustPeer,
    /// Of Node.js or Python.
    ScriptPeer,
}

/// The transport between a contender and its client.
pub(crate) enum Reach {
    Pipe,
    Http(Address),
}

pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Where it keeps its files.
    folder: PathBuf,
    start: Start,
}

enum Start {
    Direct,
    RawProxy,
    Haft(PathBuf),
    Peer(peers::Peer),
}

/// All of them; one that cannot be started is reported when it is tried.
pub(crate) fn all(folder: &Path, also: Option<PathBuf>) -> Result<Vec<Contender>, Failure> {
    let haft = || Start::Haft(env!("CARGO_BIN_EXE_haft").into());
    let (legacy, modern) = (Era::Legacy, Era::Modern);
    let mut all = vec![
        ("direct".to_owned(), Kind::Direct, Start::Direct),
        ("raw-proxy".to_owned(), Kind::RawProxy, Start::RawProxy),
        ("haft, legacy era".to_owned(), Kind::Haft(legacy), haft()),
        ("haft, modern era".to_owned(), Kind::Haft(modern), haft()),
    ];
    if let Some(also) = also {
        let start = || Start::Haft(also.clone());
        all.push(("other haft, legacy era".to_owned(), Kind::Also(legacy), start()));
        all.push(("other haft, modern era".to_owned(), Kind::Also(modern), start()));
    }
    for peer in peers::all()? {
        let kind = if peer.is_rust() { Kind::RustPeer } else { Kind::ScriptPeer };
        all.push((peer.name.clone(), kind, Start::Peer(peer)));
    }
    let contenders = all.into_iter().enumerate().map(|(at, (name, kind, start))| {
        let folder = folder.join(at.to_string());
        fs::create_dir_all(&folder)?;
        Ok(Contender { name, kind, folder, start })
    });
    contenders.collect()
}

impl Contender {
    /// Returns true if it is part of this project, so that its failure is ours.
    pub(crate) fn is_ours(&self) -> bool {
        !matches!(self.kind, Kind::RustPeer | Kind::ScriptPeer)
    }

    /// The command to start, and the way to reach it.
    pub(crate) fn launch(&self) -> Result<(Command, Reach), Failure> {
        let port = free_port()?;
        let mut address = Address { port, path: "/mcp", key: None, era: Era::Legacy };
        let mut command = match &self.start {
            Start::Direct => return Ok((Pipe::command()?, Reach::Pipe)),
            Start::RawProxy => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["--role", "raw-proxy", "--port", &port.to_string()]);
                command
            }
            Start::Haft(program) => {
                if let Kind::Haft(era) | Kind::Also(era) = self.kind {
                    address.era = era;
                }
                address.key = Some(prepare_haft(&self.folder)?);
                let mut command = Command::new(program);
                command.args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
                // The others bring no tools of their own.
                command.env("HAFT__BUILTIN__ENABLED", "false");
                command
            }
            Start::Peer(peer) => {
                address.path = peer.path();
                peer.command(port, &self.folder)?
            }
        };
        // Its output is kept to explain a failed start.
        let said = fs::File::create(self.folder.join("said.txt"))?;
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.stdout(said.try_clone()?).stderr(said);
        Ok((command, Reach::Http(address)))
    }

    /// The last line of its output.
    pub(crate) fn last_words(&self) -> String {
        let said = fs::read_to_string(self.folder.join("said.txt")).unwrap_or_default();
        said.trim_end().lines().next_back().unwrap_or_default().trim().to_owned()
    }
}

/// Keys, limits, validation and the log are on. Returns the text of the key.
fn prepare_haft(folder: &Path) -> Result<String, Failure> {
    let config = json!({
        "defaults": { "max_concurrent": IN_FLIGHT },
        "servers": { "behind": {
            "command": std::env::current_exe()?,
            "args": ["--role", "backend"],
            "on_connect_failure": "exit",
            "default_tool_config": { "max_instances": IN_FLIGHT, "timeout": "30s" },
        }},
        "api": { "keys_file": "./keys.json" },
        "log": { "dir": "./logs" },
    });
    fs::write(folder.join("haft.json"), config.to_string())?;
    let keys = folder.join("keys.json");
    if keys.exists() {
        fs::remove_file(&keys)?;
    }
    let (key, _) = KeyFile::new(keys).create("bench", Scope::Call)?;
    Ok(key.expose().to_owned())
}

/// A free port.
fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
