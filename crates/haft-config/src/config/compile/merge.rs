//! Merges several files: the later file wins, with a warning if it replaces something.

use std::collections::HashMap;
use std::path::PathBuf;

use super::Layer;
use crate::config::dialect::LocalItem;
use crate::config::expand::VariableUse;
use crate::config::place::{Place, Problems};
use crate::config::raw::{RawConfig, RawServer, RawTool};
use crate::config::raw_gateway::RawProfile;
use crate::config::read::{FromNode, Named};
use crate::config::{At, Dialect};

/// All files, merged.
pub(in crate::config) struct Merged {
    /// Everything but servers and local tools.
    pub(in crate::config) config: RawConfig,
    /// Servers with what their file's format means for them.
    pub(in crate::config) servers: Vec<ServerSource>,
    /// Local tools with their folder.
    pub(in crate::config) local: Vec<LocalSource>,
    /// References to variables in all files.
    pub(in crate::config) variables: Vec<VariableUse>,
}

/// A server and the file it comes from.
pub(in crate::config) struct ServerSource {
    pub(in crate::config) name: At<String>,
    pub(in crate::config) raw: RawServer,
    pub(in crate::config) dialect: Dialect,
    pub(in crate::config) folder: PathBuf,
    pub(in crate::config) runs_in_folder: bool,
}

/// A local tool and the folder of its file.
pub(in crate::config) struct LocalSource {
    pub(in crate::config) item: LocalItem,
    pub(in crate::config) dialect: Dialect,
    pub(in crate::config) folder: PathBuf,
}

/// Merges the files in the order they were given.
pub(in crate::config) fn merge(layers: Vec<Layer>, problems: &mut Problems) -> Merged {
    let mut merged = Merged {
        config: RawConfig::empty(Place::whole("")),
        servers: Vec::new(),
        local: Vec::new(),
        variables: Vec::new(),
    };
    let (mut server_index, mut local_index) = (Index::new(), Index::new());
    for mut layer in layers {
        merged.variables.append(&mut layer.variables);
        let servers = layer.config.servers.take();
        let tools = layer.config.tools.take();
        let profiles = layer.config.profiles.take();
        merged.config.overlay(layer.config);
        add_tools(&mut merged.config, tools, problems);
        add_profiles(&mut merged.config, profiles, problems);
        let (dialect, folder) = (layer.dialect, &layer.folder);
        for (name, raw) in servers.map(|servers| servers.value.0).unwrap_or_default() {
            let runs_in_folder = layer.runs_in_folder;
            let server =
                ServerSource { name, raw, dialect, folder: folder.clone(), runs_in_folder };
            add_server(&mut merged.servers, &mut server_index, server, problems);
        }
        for item in layer.local {
            add_local(
                &mut merged.local,
                &mut local_index,
                LocalSource { item, dialect, folder: folder.clone() },
                problems,
            );
        }
    }
    merged
}

/// The position of each name, so that a large file is merged in one pass.
type Index = HashMap<String, usize>;

fn add_server(
    servers: &mut Vec<ServerSource>,
    index: &mut Index,
    new: ServerSource,
    problems: &mut Problems,
) {
    if let Some(&at) = index.get(&new.name.value) {
        let known = &mut servers[at];
        replaced("server", &new.name.value, &new.name.place, &known.name.place, problems);
        *known = new;
    } else {
        index.insert(new.name.value.clone(), servers.len());
        servers.push(new);
    }
}

fn add_local(
    tools: &mut Vec<LocalSource>,
    index: &mut Index,
    new: LocalSource,
    problems: &mut Problems,
) {
    let name = new.item.name().map(ToOwned::to_owned);
    let known = name.as_ref().and_then(|name| index.get(name).copied());
    match (name, known) {
        (Some(name), Some(at)) => {
            let known = &mut tools[at];
            replaced("local tool", &name, new.item.place(), known.item.place(), problems);
            *known = new;
        }
        (name, _) => {
            index.extend(name.map(|name| (name, tools.len())));
            tools.push(new);
        }
    }
}

fn add_tools(config: &mut RawConfig, new: Option<At<Vec<RawTool>>>, problems: &mut Problems) {
    let Some(At { value: new, place }) = new else {
        return;
    };
    let tools = &mut config.tools.get_or_insert_with(|| At { value: Vec::new(), place }).value;
    let key = |tool: &RawTool| {
        let text = |at: &Option<At<String>>| at.as_ref().map(|at| at.value.clone());
        (text(&tool.name), text(&tool.mcp))
    };
    let mut known: HashMap<_, usize> =
        tools.iter().enumerate().map(|(at, tool)| (key(tool), at)).collect();
    for tool in new {
        let (name, server) = key(&tool);
        match known.get(&(name.clone(), server.clone())) {
            Some(&at) if name.is_some() => {
                let name = name.unwrap_or_default();
                replaced("entry of `tools`", &name, &tool.place, &tools[at].place, problems);
                tools[at] = tool;
            }
            _ => {
                known.insert((name, server), tools.len());
                tools.push(tool);
            }
        }
    }
}

/// As a whole: a profile merged from two files would show tools that neither intends.
fn add_profiles(
    config: &mut RawConfig,
    new: Option<At<Named<RawProfile>>>,
    problems: &mut Problems,
) {
    let Some(At { value: Named(new), place }) = new else { return };
    let known = config.profiles.get_or_insert_with(|| At { value: Named::default(), place });
    for (name, profile) in new {
        match known.value.0.iter_mut().find(|(known, _)| known.value == name.value) {
            Some(known) => {
                replaced("profile", &name.value, &name.place, &known.0.place, problems);
                *known = (name, profile);
            }
            None => known.value.0.push((name, profile)),
        }
    }
}

/// Two files may define the same name, one file may not.
fn replaced(what: &str, name: &str, new: &Place, known: &Place, problems: &mut Problems) {
    if new.file == known.file {
        problems.error(
            new,
            format!("the {what} `{name}` is there twice (first in line {})", known.line),
            "rename or delete one of the two",
        );
    } else {
        problems.warn(
            new,
            format!("the {what} `{name}` replaces the one from {known}"),
            "rename one of the two if both are meant",
        );
    }
}
