//! What earlier runs saw: tells a new tool from one that merely has no entry.

use haft_bounds::parse_error::describe;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::name::{offered, prefixed};

const FILE_NAME: &str = "known-tools.json";

/// The tools each server had when it was last asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownTools {
    servers: BTreeMap<String, BTreeSet<String>>,
}

impl KnownTools {
    /// What the last run saved; nothing on the first run.
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

    /// Saves for the next run: a new file put in place of the old one, so a reader sees no half.
    pub fn save(&self, state_dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(state_dir)?;
        let draft = state_dir.join(format!("{FILE_NAME}.{}", std::process::id()));
        std::fs::write(&draft, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(&draft, state_dir.join(FILE_NAME))
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// The tools a server had, if it was ever asked.
    pub fn of(&self, server: &str) -> Option<&BTreeSet<String>> {
        self.servers.get(server)
    }

    /// Whether a server had a tool that is offered under `name`.
    pub fn had(&self, server: &str, name: &str) -> bool {
        let is_it =
            |tool: &String| tool == name || offered(tool) == name || prefixed(server, tool) == name;
        self.of(server).is_some_and(|tools| tools.iter().any(is_it))
    }

    /// Remembers what a server has now.
    pub fn remember(&mut self, server: &str, tools: impl IntoIterator<Item = String>) {
        self.servers.insert(server.to_owned(), tools.into_iter().collect());
    }

    /// Forgets servers that are no longer configured.
    pub fn retain(&mut self, is_configured: impl Fn(&str) -> bool) {
        self.servers.retain(|server, _| is_configured(server));
    }
}
