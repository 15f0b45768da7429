//! Caches the lists of servers between runs, so that their tools are known before they are connected.

use std::path::PathBuf;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::connection::ConnectionContext;
use super::lists::Lists;
use crate::config::model::{Endpoint, ServerConfig};

impl Lists {
    /// Returns the lists of the last run, and their time; `None` if the endpoint has changed.
    pub(super) fn load_cached(
        config: &ServerConfig,
        context: &ConnectionContext,
    ) -> Option<(Self, SystemTime)> {
        let path = path(config, context)?;
        let bytes = std::fs::read(&path).ok()?;
        // Every connection writes the file, so its age is that of the lists.
        let read_at = std::fs::metadata(&path).and_then(|it| it.modified());
        // An unreadable file counts as missing: the lists are fetched.
        let mut lists: Self = serde_json::from_slice(&bytes).ok()?;
        lists.mask(&context.descriptions);
        Some((lists, read_at.unwrap_or(SystemTime::UNIX_EPOCH)))
    }

    /// Keeps the lists for the next run: a new file put in place of the old one.
    pub(super) fn save_cached(&self, config: &ServerConfig, context: &ConnectionContext) {
        let Some(path) = path(config, context).filter(|_| context.may_write) else {
            return;
        };
        let draft = path.with_extension(format!("{}", std::process::id()));
        let saved = serde_json::to_vec(self).map_err(std::io::Error::other).and_then(|json| {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::fs::write(&draft, json)?;
            std::fs::rename(&draft, &path)
        });
        if let Err(error) = saved {
            tracing::warn!(
                server = config.name,
                "its lists cannot be kept for the next run: {error}"
            );
        }
    }
}

/// The file is named by server and endpoint, so that lists of another configuration are never used.
/// Only what is shown of the endpoint counts, and the names of its variables and headers: no secret
/// leaves a trace.
fn path(config: &ServerConfig, context: &ConnectionContext) -> Option<PathBuf> {
    let key = format!(
        "{}\n{}\n{}\n{}",
        config.name,
        config.endpoint.transport(),
        config.endpoint,
        surroundings(&config.endpoint)
    );
    let name = haft_text::hex(&Sha256::digest(key.as_bytes())[..16]);
    Some(context.cache.as_ref()?.join(format!("{name}.json")))
}

/// The settings of an endpoint beside its address, without values that may be secret.
fn surroundings(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Stdio(stdio) => {
            let names: Vec<&str> = stdio.env.iter().map(|(name, _)| name.as_str()).collect();
            format!("{:?}\n{:?}\n{names:?}", stdio.cwd, stdio.env_file)
        }
        Endpoint::Http(remote) | Endpoint::Sse(remote) | Endpoint::Websocket(remote) => {
            let names: Vec<&str> = remote.headers.iter().map(|(name, _)| name.as_str()).collect();
            format!("{names:?}")
        }
    }
}
