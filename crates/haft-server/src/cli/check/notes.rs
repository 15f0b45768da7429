//! Remarks about a valid configuration, which need no action.

use haft::Config;
use haft::config::model::Endpoint;
use haft::config::{Masked, Place};
use haft::lock::Package;
use serde::Serialize;

/// A remark, and the way to act on it.
#[derive(Debug, Serialize)]
pub(super) struct Note {
    pub(super) place: Place,
    #[serde(rename = "note")]
    pub(super) text: String,
    pub(super) remedy: String,
}

/// Servers whose package is downloaded in whatever version is the newest at each start.
pub(super) fn unpinned_packages(config: &Config) -> Vec<Note> {
    let note = |server: &haft::config::model::ServerConfig| {
        let Endpoint::Stdio(stdio) = &server.endpoint else { return None };
        let args: Vec<&str> = stdio.args.iter().map(Masked::expose).collect();
        let package = Package::of(stdio.command.expose(), &args)?;
        if package.version.is_some() {
            return None;
        }
        let Package { runner, name, version: _ } = &package;
        let example = Package { version: Some("1.2.3".to_owned()), ..package.clone() };
        let example = example.pinned().unwrap_or_default();
        Some(Note {
            place: server.place.clone(),
            text: format!(
                "`{}` runs `{name}` in the version that {runner} finds at the start",
                server.name
            ),
            remedy: format!("name the version that you reviewed, such as `{example}`"),
        })
    };
    config.servers.iter().filter(|server| !server.disabled.value).filter_map(note).collect()
}
