//! The tools seen by earlier runs. They tell a new tool from one without an entry.

use haft_bounds::parse_error::describe;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use haft_text::name::{offered, prefixed};

const FILE_NAME: &str = "known-tools.json";

/// The tools of each server as of its last listing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownTools {
    servers: BTreeMap<String, BTreeSet<String>>,
}

impl KnownTools {
    /// Loads what the last run saved. Returns `None` on the first run.
    pub fn load(state_dir: &Path) -> io::Result<Option<Self>> {
        let path = state_dir.join(FILE_NAME);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| io::Error::other(describe(&error))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Saves for the next run. The file is replaced atomically, so a reader never sees half of it.
    pub fn save(&self, state_dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(state_dir)?;
        let draft = state_dir.join(format!("{FILE_NAME}.{}", std::process::id()));
        std::fs::write(&draft, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(&draft, state_dir.join(FILE_NAME))
    }

    /// Returns true if no server is remembered.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// The tools of a server, if it was ever listed.
    pub fn of(&self, server: &str) -> Option<&BTreeSet<String>> {
        self.servers.get(server)
    }

    /// Returns true if a server had a tool that is offered under `name`.
    pub fn had(&self, server: &str, name: &str) -> bool {
        let is_it =
            |tool: &String| tool == name || offered(tool) == name || prefixed(server, tool) == name;
        self.of(server).is_some_and(|tools| tools.iter().any(is_it))
    }

    /// Replaces the remembered tools of a server.
    pub fn remember(&mut self, server: &str, tools: impl IntoIterator<Item = String>) {
        self.servers.insert(server.to_owned(), tools.into_iter().collect());
    }

    /// Removes servers that are no longer configured.
    pub fn retain(&mut self, is_configured: impl Fn(&str) -> bool) {
        self.servers.retain(|server, _| is_configured(server));
    }
}
