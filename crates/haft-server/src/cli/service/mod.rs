//! The link between the commands of a user and the service that the same user runs with the same configuration: a Unix
//! socket in the state folder.
//!
//! Only processes of the same user are accepted, on both sides: the socket's owner and mode are checked before it is
//! used, and the kernel's credentials of the other side afterwards. A path is never taken from a file, so that a
//! folder of another person's making cannot point a command at another socket.

mod call;
mod client;
mod listener;
mod protocol;
mod session;
mod socket;

use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::{Global, load};

pub(super) use call::CallOutcome;
pub(super) use client::{RunningService, ServiceClient, ask, running, unexpected};
pub(super) use listener::ServiceSocket;
pub(super) use protocol::{
    CallRequest, FailureBody, PingAnswer, RefusedList, Reply, Request, ServiceStatus,
};
pub(super) use session::ServiceContext;

/// Bytes of the hash in the name of the socket.
const HASH_BYTES: usize = 8;

/// The name of the socket of a configuration: the same files, format and inputs have the same one. Several
/// configurations may share a state folder.
pub(super) fn socket_name(global: &Global, files: &[PathBuf]) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    };
    for file in files {
        let real = std::fs::canonicalize(file).unwrap_or_else(|_| file.clone());
        part(real.as_os_str().as_encoded_bytes());
    }
    part(global.config_format.map_or("", haft::config::Dialect::word).as_bytes());
    for (id, value) in &global.inputs {
        part(id.as_bytes());
        part(value.as_bytes());
    }
    format!("service-{}.sock", haft_text::hex(&hash.finalize()[..HASH_BYTES]))
}

/// The files of the configuration, if there is one.
fn files(global: &Global) -> Option<Vec<PathBuf>> {
    if load::is_named(global) { load::files(global).ok() } else { None }
}
