//! The part of the client's environment that a server loses.

use serde_json::{Map, Value};

use crate::stderr::say;

/// Names the programs that saw the whole environment of the client and see only a safe part of Haft's.
pub(super) fn tell(servers: &Map<String, Value>) {
    let is_program = |server: &&Value| server.get("command").is_some();
    let names: Vec<String> = servers
        .iter()
        .filter(|(_, server)| is_program(server) && server.get("inherit_env").is_none())
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if !names.is_empty() {
        say!(
            "{} saw every variable of the client; from Haft a server gets PATH, HOME and the like, and what its `env` names \
             (`inherit_env: all` hands on everything)",
            names.join(", ")
        );
    }
}
