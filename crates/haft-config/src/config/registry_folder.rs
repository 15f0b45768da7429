//! The folders of registries, found before anything is compiled.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::Dialect;
use super::choices::UnresolvedEnv;
use super::expand::{References, Variables, expand};
use super::load::{LoadOptions, RegistryTexts};
use super::node::{NodeValue, Text};
use super::place::{Place, Problems};
use super::read::Reader;
use super::source::Source;
use crate::remedy::Remedy;

/// The variable that overrides `registry.dir`.
const REGISTRY_DIR: &str = "HAFT__REGISTRY__DIR";

/// Folders that `registry.dir` names.
pub(super) fn registries(
    sources: &[Source],
    base: &Path,
    options: &LoadOptions<'_>,
    problems: &mut Problems,
) -> Vec<PathBuf> {
    let named: Vec<(Text, Place, &Path)> = match options.environment.get(REGISTRY_DIR) {
        Some(folder) => {
            let text = Text { text: folder.clone(), shown: None };
            vec![(text, Place::whole(format!("${REGISTRY_DIR}")), base)]
        }
        None => sources
            .iter()
            .filter(|source| source.dialect == Dialect::Native)
            .filter_map(|source| {
                let (dir, place) = registry_dir(source, options)?;
                Some((dir, place, source.folder.as_path()))
            })
            .collect(),
    };
    let is_shared = is_shared(sources, options);
    let mut folders = Vec::new();
    for (folder, place, base) in named {
        let path = base.join(&folder.text);
        // The files of the folder are not used, and its documents are there only if the caller has read them.
        if is_shared {
            let is_given = |registry: &RegistryTexts| registry.dir == path;
            folders.extend(options.registry.as_ref().is_some_and(is_given).then_some(path));
            continue;
        }
        if options.allows_missing_registry && is_missing_registry(&path) {
            continue;
        }
        if path.is_dir() {
            folders.push(path);
            continue;
        }
        problems.error(
            &place,
            format!("the registry's folder `{}` does not exist", folder.shown()),
            Remedy::CreateRegistry,
        );
    }
    folders
}

/// The variable that overrides `registry.store`.
const REGISTRY_STORE: &str = "HAFT__REGISTRY__STORE";

/// Returns true if the registry is in a database. Looked up before anything is compiled, because a registry is opened before.
fn is_shared(sources: &[Source], options: &LoadOptions<'_>) -> bool {
    let variable = options.environment.get(REGISTRY_STORE).map(String::as_str);
    let native = sources.iter().filter(|source| source.dialect == Dialect::Native);
    let mut in_file =
        native.filter_map(|source| source.root.get("registry")?.get("store")?.as_text());
    variable.or(in_file.next_back()) == Some("shared")
}

/// Returns true if the folder is missing or empty.
fn is_missing_registry(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The value of a file's `registry.dir`. `None` if a variable in it is unset, which is reported
/// when the file itself is expanded.
fn registry_dir(source: &Source, options: &LoadOptions<'_>) -> Option<(Text, Place)> {
    let mut dir = source.root.get("registry")?.get("dir")?.clone();
    let variables = Variables {
        environment: &options.environment,
        unresolved: UnresolvedEnv::Error,
        predefined: HashMap::new(),
        inputs: None,
        reads: &|_| true,
        references: References::Resolve,
        used: RefCell::default(),
    };
    let mut unset = Problems::default();
    let mut reader = Reader::new(source.name.clone(), &mut unset);
    let place = reader.inside("registry.dir", |reader| reader.place(&dir));
    expand(&mut dir, &variables, &mut reader);
    match dir.value {
        NodeValue::Text(text) if !unset.has_errors() => Some((text, place)),
        _ => None,
    }
}
