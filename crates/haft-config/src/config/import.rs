//! Another tool's file as entries of a native one.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};

use super::choices::UnresolvedEnv;
use super::compile::merge;
use super::expand::{References, input_variable};
use super::layer::layer;
use super::load::{from_text, load};
use super::parse::FOREIGN_NODES_MAX;
use super::place::{Place, Problems};
use super::source::{Source, open, source};
use super::{Config, ConfigError, Dialect, LoadOptions, Problem, native};
use crate::remedy::Remedy;

/// The content of another tool's files, in native form.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Servers by name, as entries of `servers`. Variables stay references; literal values are
    /// copied literally, secrets included.
    pub servers: Map<String, Value>,
    /// Settings of single tools, as entries of `tools`.
    pub tools: Vec<Value>,
    /// Variables that the entries refer to and that are not set.
    pub unset: Vec<String>,
    /// Settings without a counterpart.
    pub warnings: Vec<Problem>,
    /// The format of each file.
    pub formats: Vec<Dialect>,
}

/// Turns files of other tools into entries for a native file in the folder `target`. Variables need
/// not be set: what depends on one that is not set is not checked.
pub fn import(options: &LoadOptions<'_>, target: &Path) -> Result<Imported, ConfigError> {
    // Other programs keep more than configuration in their files.
    let options = &LoadOptions { nodes_max: Some(FOREIGN_NODES_MAX), ..options.clone() };
    let mut problems = Problems::default();
    let mut sources = Vec::new();
    for path in &options.files {
        open(path, options.format, options, &mut sources, &mut problems);
    }
    let check = || load(&LoadOptions { ask: None, ..options.clone() });
    import_sources(sources, options, target, problems, check)
}

/// Like [`import`], from the content of a client's file. The content decides the format.
pub fn import_text(
    text: &str,
    file_name: &str,
    options: &LoadOptions<'_>,
    target: &Path,
) -> Result<Imported, ConfigError> {
    let options = &LoadOptions { files: Vec::new(), ask: None, ..options.clone() };
    let mut problems = Problems::default();
    let bounded = (text, options.nodes_max.unwrap_or(FOREIGN_NODES_MAX));
    let read = source(
        file_name.into(),
        target.to_path_buf(),
        bounded,
        options.format,
        options,
        &mut problems,
    );
    let check = || from_text(text, file_name, options);
    import_sources(read.into_iter().collect(), options, target, problems, check)
}

fn import_sources(
    sources: Vec<Source>,
    options: &LoadOptions<'_>,
    target: &Path,
    mut problems: Problems,
    check: impl FnOnce() -> Result<Config, ConfigError>,
) -> Result<Imported, ConfigError> {
    for source in sources.iter().filter(|source| source.dialect == Dialect::Native) {
        let place = Place::whole(source.name.clone());
        problems.error(&place, "the file is a native one already", Remedy::UseFile);
    }
    let formats = sources.iter().map(|source| source.dialect).collect();
    let (servers, tools) = records(sources, options, target, &mut problems);
    let has_errors = problems.has_errors();
    let mut warnings = problems.into_sorted();
    if has_errors {
        return Err(ConfigError { problems: warnings });
    }
    let mut imported =
        Imported { servers, tools, unset: Vec::new(), warnings: Vec::new(), formats };
    imported.unset = imported.unset(options);
    match check() {
        Ok(config) => {
            warnings.extend(config.warnings);
        }
        // Everything is known, so it is the file that is wrong.
        Err(error) if imported.unset.is_empty() => return Err(error),
        Err(_) => {}
    }
    for warning in warnings {
        if !imported.warnings.contains(&warning) {
            imported.warnings.push(warning);
        }
    }
    Ok(imported)
}

fn records(
    sources: Vec<Source>,
    options: &LoadOptions<'_>,
    target: &Path,
    problems: &mut Problems,
) -> (Map<String, Value>, Vec<Value>) {
    let mut layers = Vec::new();
    for source in sources {
        layers.push(layer(source, options, UnresolvedEnv::Warn, References::Keep, problems));
    }
    for layer in &layers {
        let place = layer.config.place.clone();
        if !layer.local.is_empty() {
            let remedy = "name its folder in the native file: `registry: {dir: ...}`";
            problems.warn(&place, "the file's local tools stay where they are", remedy);
        }
        let max = layer.config.defaults.as_ref().and_then(|it| it.value.max_concurrent.as_ref());
        if let Some(max) = max {
            let remedy = format!("write `defaults: {{max_concurrent: {}}}`", max.value.0);
            problems.warn(
                &max.place,
                "`max_concurrent` concerns all tools and is left out",
                remedy,
            );
        }
    }
    let merged = merge(layers, problems);
    let mut servers = Map::new();
    for server in merged.servers {
        servers.insert(server.name.value.clone(), native::server(server, target));
    }
    let tools = merged.config.tools.map(|tools| tools.value).unwrap_or_default();
    (servers, tools.into_iter().map(native::tool).collect())
}

/// Loads a native text as if it lay at `path`, and alone. Answers to inputs count as the variables
/// that stand in their place.
pub fn check_text(
    text: &str,
    path: &Path,
    options: &LoadOptions<'_>,
) -> Result<Config, ConfigError> {
    let mut options = LoadOptions { files: Vec::new(), format: None, ask: None, ..options.clone() };
    for (id, answer) in std::mem::take(&mut options.inputs) {
        options.environment.insert(input_variable(&id), answer);
    }
    options.cwd = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    from_text(text, &name, &options)
}

impl Imported {
    /// Takes the servers out that `is_meant` names, with the settings of their tools.
    pub fn leave_out(&mut self, is_meant: impl Fn(&str, &Value) -> bool) -> Vec<String> {
        let names = self.servers.iter().filter(|(name, server)| is_meant(name, server));
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        self.servers.retain(|name, _| !names.contains(name));
        let is_left = |tool: &Value| {
            tool["mcp"].as_str().is_some_and(|it| names.iter().any(|name| name == it))
        };
        self.tools.retain(|tool| !is_left(tool));
        names
    }

    /// References without a value and without a default.
    fn unset(&self, options: &LoadOptions<'_>) -> Vec<String> {
        let mut names = BTreeSet::new();
        self.servers.values().for_each(|server| references(server, &mut names));
        let answered: Vec<String> = options.inputs.keys().map(|id| input_variable(id)).collect();
        names.retain(|name| !options.environment.contains_key(name) && !answered.contains(name));
        names.into_iter().collect()
    }
}

/// The variables that a value needs.
fn references(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            for (at, _) in text.match_indices("${") {
                let name = text[at + 2..].split_once('}').map_or("", |(name, _)| name);
                let is_literal = text[..at].ends_with('$');
                if !is_literal && !name.contains(":-") {
                    names.insert(name.to_owned());
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        Value::Object(entries) => entries.values().for_each(|value| references(value, names)),
    }
}
