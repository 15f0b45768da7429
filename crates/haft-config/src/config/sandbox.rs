//! The isolation of servers, scripts and commands from the rest of the machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_text::human;
use serde_json::{Map, Value, json};

use super::choices::Sandbox;
use super::model::{Config, Endpoint};

/// The files and ports that a program may use, and its resource limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    /// The mechanism. With [`Sandbox::None`] only the resource limits hold.
    pub kind: Sandbox,
    /// Files and folders that the program may read, besides those that every program needs.
    pub read: Vec<PathBuf>,
    /// Files and folders that it may read and write.
    pub write: Vec<PathBuf>,
    /// The network that it may use.
    pub network: SandboxNetwork,
    /// Its resource limits.
    pub limits: ResourceLimits,
}

/// The network that a sandboxed program may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxNetwork {
    /// None.
    None,
    /// All of it.
    All,
    /// TCP connections to these ports.
    Ports(Vec<u16>),
}

/// Resource limits of a program. Each process that it starts inherits them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Private memory of each process, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u32>,
    /// Open files of each process.
    pub open_files: Option<u32>,
    /// Processor time of each process.
    pub cpu: Option<Duration>,
}

impl ResourceLimits {
    /// Returns true if nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl SandboxConfig {
    /// No isolation and no limits.
    pub fn none() -> Self {
        Self {
            kind: Sandbox::None,
            read: Vec::new(),
            write: Vec::new(),
            network: SandboxNetwork::All,
            limits: ResourceLimits::default(),
        }
    }

    /// Returns true if the program runs like any other: without isolation and limits.
    pub fn is_none(&self) -> bool {
        self.kind == Sandbox::None && self.limits.is_empty()
    }

    /// The value as a file may spell it.
    pub fn shown(&self) -> Value {
        let Self { kind, read, write, network, limits } = self;
        if self.is_none() {
            return json!(kind);
        }
        let mut shown = Map::new();
        shown.insert("kind".into(), json!(kind));
        if *kind != Sandbox::None {
            shown.insert("read".into(), json!(read));
            shown.insert("write".into(), json!(write));
            shown.insert("network".into(), network.shown());
        }
        let ResourceLimits { memory, processes, open_files, cpu } = limits;
        let limits = [
            ("memory", memory.map(|bytes| json!(bytes))),
            ("processes", processes.map(|number| json!(number))),
            ("open_files", open_files.map(|number| json!(number))),
            ("cpu", cpu.map(|time| json!(human(time)))),
        ];
        shown.extend(limits.into_iter().filter_map(|(key, value)| Some((key.into(), value?))));
        Value::Object(shown)
    }
}

impl SandboxNetwork {
    /// The value as a file may spell it.
    pub fn shown(&self) -> Value {
        match self {
            Self::None => json!("none"),
            Self::All => json!("all"),
            Self::Ports(ports) => json!(ports),
        }
    }
}

impl Config {
    /// The files and folders of Haft itself: configuration, state, log, keys. No sandbox lets a program
    /// write them, and a folder that contains them is granted without them.
    pub fn own_files(&self) -> Vec<PathBuf> {
        let env_files = self.servers.iter().filter_map(|server| match &server.endpoint {
            Endpoint::Stdio(stdio) => stdio.env_file.clone(),
            Endpoint::Http(_) | Endpoint::Sse(_) | Endpoint::Websocket(_) => None,
        });
        let tls = self.api.tls.iter().map(|tls| tls.value.key.clone());
        let folders = [&self.state_dir.value, &self.log.dir.value, &self.api.keys_file.value];
        let files = self.files.iter().map(|file| file.path.clone());
        let mut own: Vec<PathBuf> =
            folders.into_iter().cloned().chain(files).chain(env_files).chain(tls).collect();
        own.retain(|path| !path.as_os_str().is_empty());
        for path in &mut own {
            *path = plain_path(path);
        }
        own.sort();
        own.dedup();
        own
    }
}

/// The absolute path without `.` and `..`. Symbolic links are not followed.
pub fn plain_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut plain = PathBuf::new();
    for component in absolute.components() {
        match component {
            std::path::Component::ParentDir => {
                plain.pop();
            }
            std::path::Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
