//! Loads a configuration from paths: open the files, read each into a layer, merge, compile.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::broken::{BrokenEntries, MisconfiguredServer, take_out};
use super::choices::UnresolvedEnv;
use super::compile::{compile, merge};
use super::expand::{References, VariableUse};
use super::layer::layer;
use super::lock_file::LockFile;
use super::model::{Config, ConfigFile, Origin, Setting};
use super::overrides::{apply_native, server_overrides};
use super::place::{Place, Problem, Problems, Severity};
use super::raw::RawServer;
use super::read::{Named, is_same_name};
use super::registry_folder::registries;
use super::secret::Secret;
use super::source::{Source, nodes_max, open, source};
use super::{At, ConfigError, Dialect, EntryCache};
use crate::remedy::Remedy;

/// The files to load and the sources of their inputs.
#[derive(Default, Clone)]
pub struct LoadOptions<'a> {
    /// Files, or folders with `tools.json` and `mcp.json`; later ones win.
    pub files: Vec<PathBuf>,
    /// Forces the format of the files instead of telling it from their content.
    pub format: Option<Dialect>,
    /// The environment that `${VAR}` and overrides are looked up in.
    pub environment: HashMap<String, String>,
    /// Answers to `${input:id}`.
    pub inputs: HashMap<String, String>,
    /// Asks a person for an input that has no answer yet.
    pub ask: Option<&'a Ask<'a>>,
    /// The folder that relative paths of this process are relative to.
    pub cwd: PathBuf,
    /// True if the built-in tools are available without any mention in a file.
    pub builtin: bool,
    /// The registry's documents, if they are not read from its folder.
    pub registry: Option<RegistryTexts>,
    /// Maximum number of values and keys in a file, in place of `limits.message_nodes_max`.
    pub nodes_max: Option<usize>,
    /// The handling of a server's entry that has a problem.
    pub broken: BrokenEntries,
    /// True if the registry's folder need not be there yet: the caller creates it.
    pub allows_missing_registry: bool,
    /// The only profile that is used: servers that it cannot show are left out.
    pub profile: Option<String>,
    /// The entries of the registry's `tools.json` that earlier loads compiled. Loads with the same cache and otherwise
    /// the same options compile changed entries alone.
    pub entries: Option<EntryCache>,
    /// A last check of a configuration that is otherwise valid.
    pub accept: Option<Arc<Accept>>,
}

/// Accepts a configuration, or returns the problem and its remedy.
pub type Accept = dyn Fn(&Config) -> Result<(), (String, String)> + Send + Sync;

/// The two documents of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryTexts {
    /// The registry's folder, where the scripts are.
    pub dir: PathBuf,
    /// `tools.json`.
    pub tools: String,
    /// `mcp.json`.
    pub servers: String,
}

impl LoadOptions<'_> {
    /// Loads `files` with this process's environment and working directory.
    pub fn from_process(files: Vec<PathBuf>) -> Self {
        Self {
            files,
            environment: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            cwd: std::env::current_dir().unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// Asks a person for an input; `None` without an answer.
pub type Ask<'a> = dyn Fn(&InputRequest) -> Option<String> + Send + Sync + 'a;

/// An input a file wants, as VS Code's files describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRequest {
    /// Its id.
    pub id: String,
    /// The question.
    pub description: String,
    /// True if the answer is a secret.
    pub password: bool,
    /// The answers to choose from, if restricted.
    pub options: Vec<String>,
    /// The default answer.
    pub default: Option<String>,
}

pub(super) fn load(options: &LoadOptions<'_>) -> Result<Config, ConfigError> {
    let mut problems = Problems::default();
    let mut sources = Vec::new();
    for path in &options.files {
        open(path, options.format, options, &mut sources, &mut problems);
    }
    let folder = lock_folder(&sources, options);
    let mut config = finish(sources, options, problems)?;
    config.lock = LockFile::load(&folder, &options.cwd)?;
    Ok(config)
}

/// The lock file lies beside the native file; without one, beside the first file.
fn lock_folder(sources: &[Source], options: &LoadOptions<'_>) -> PathBuf {
    let native = sources.iter().find(|source| source.dialect == Dialect::Native);
    let file = native.or_else(|| sources.first());
    file.map_or_else(|| options.cwd.clone(), |source| source.folder.clone())
}

pub(super) fn from_text(
    text: &str,
    file_name: &str,
    options: &LoadOptions<'_>,
) -> Result<Config, ConfigError> {
    let mut problems = Problems::default();
    let mut sources = Vec::new();
    let text = (text, nodes_max(&sources, options));
    let source =
        source(file_name.into(), options.cwd.clone(), text, options.format, options, &mut problems);
    sources.extend(source);
    finish(sources, options, problems)
}

fn finish(
    mut sources: Vec<Source>,
    options: &LoadOptions<'_>,
    mut problems: Problems,
) -> Result<Config, ConfigError> {
    let unresolved = unresolved_env(&sources, options);
    let base = base(&sources, options);
    for registry in registries(&sources, &base, options, &mut problems) {
        open(&registry, options.format, options, &mut sources, &mut problems);
    }
    let split = sources.iter().find_map(|it| it.split.as_ref().map(|(entries, _)| entries.clone()));
    let mut config = if options.broken == BrokenEntries::Refuse || problems.has_errors() {
        compiled(sources, options, unresolved, &base, Vec::new(), problems)?
    } else {
        without_broken(sources, options, unresolved, &base, &problems)?
    };
    if let (Some(cache), Some(entries)) = (&options.entries, split) {
        cache.learn(entries, &config);
    }
    config.take_keys(&options.environment);
    // A folder of files is not a registry of several replicas.
    if config.shared.is_none() {
        config.registry_dir = config.registry_dir.or_else(|| named_registry(options));
    }
    if let Some(Err((problem, remedy))) = options.accept.as_ref().map(|accept| accept(&config)) {
        let file = config.files.first().map_or_else(|| "".into(), |file| file.name.clone());
        let place = Place::whole(file);
        let remedy = remedy.into();
        let refused = Problem { severity: Severity::Error, place, problem, remedy };
        return Err(ConfigError { problems: vec![refused] });
    }
    if let Some(profile) = &options.profile {
        config.keep_profile(profile);
    }
    Ok(config)
}

/// Most times that entries are taken out: the problems of an entry are found together.
const TAKEN_OUT_MAX: usize = 3;

/// Compiles the sources without entries that have problems and may be missing.
fn without_broken(
    mut sources: Vec<Source>,
    options: &LoadOptions<'_>,
    unresolved: UnresolvedEnv,
    base: &Path,
    problems: &Problems,
) -> Result<Config, ConfigError> {
    let mut misconfigured: Vec<MisconfiguredServer> = Vec::new();
    for _ in 0..TAKEN_OUT_MAX {
        let (sources_now, problems) = (sources.clone(), problems.clone());
        let missing = misconfigured.clone();
        let error = match compiled(sources_now, options, unresolved, base, missing, problems) {
            Ok(config) => return Ok(config),
            Err(error) => error,
        };
        match take_out(&mut sources, &error.problems, &options.broken) {
            Some(broken) => misconfigured.extend(broken),
            None => return Err(error),
        }
    }
    compiled(sources, options, unresolved, base, misconfigured, problems.clone())
}

fn compiled(
    sources: Vec<Source>,
    options: &LoadOptions<'_>,
    unresolved: UnresolvedEnv,
    base: &Path,
    misconfigured: Vec<MisconfiguredServer>,
    mut problems: Problems,
) -> Result<Config, ConfigError> {
    let files: Vec<ConfigFile> = sources.iter().map(file).collect();
    let has_builtin = has_builtin(&files, options);
    let mut layers = Vec::new();
    for source in sources {
        layers.push(layer(source, options, unresolved, References::Resolve, &mut problems));
    }
    let mut merged = merge(layers, &mut problems);
    override_from_environment(&mut merged, options, &mut problems);
    take_client_secrets(&mut merged, options, &mut problems);
    let warnings: Vec<Problem> = misconfigured.iter().map(MisconfiguredServer::warning).collect();
    let mut config = compile(merged, files, base, &has_builtin, misconfigured, &mut problems);
    let has_errors = problems.has_errors();
    let mut problems = problems.into_sorted();
    mask(&mut problems, &config, options);
    if has_errors {
        return Err(ConfigError { problems });
    }
    config.warnings = problems;
    config.warnings.extend(warnings);
    Ok(config)
}

/// Values shorter than this are words that stand in many sentences.
const MASKED_BYTES_MIN: usize = 4;

/// Replaces values of variables by their references: a message about an entry must not disclose
/// them.
fn mask(problems: &mut [Problem], config: &Config, options: &LoadOptions<'_>) {
    let named = config.variables.iter().filter_map(|used| {
        Some((options.environment.get(&used.variable)?, format!("${{{}}}", used.variable)))
    });
    let answers = options.inputs.iter().map(|(id, value)| (value, format!("${{input:{id}}}")));
    let mut masks: Vec<(&String, String)> = named.chain(answers).collect();
    masks.retain(|(value, _)| value.len() >= MASKED_BYTES_MIN);
    // A value that contains another is replaced as a whole.
    masks.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
    masks.dedup();
    for Problem { problem, remedy, .. } in problems {
        // The other remedies quote no value.
        let remedy = match remedy {
            Remedy::Text(text) => Some(text),
            _ => None,
        };
        for text in [Some(problem), remedy].into_iter().flatten() {
            for (value, reference) in &masks {
                if text.contains(value.as_str()) {
                    *text = text.replace(value.as_str(), reference);
                }
            }
        }
    }
}

/// A toolbox file lists all tools, so it has no built-in ones.
fn has_builtin(files: &[ConfigFile], options: &LoadOptions<'_>) -> Setting<bool> {
    if options.builtin && files.iter().any(|file| file.dialect == Dialect::Toolbox) {
        return Setting { value: false, origin: Origin::Format(Dialect::Toolbox) };
    }
    Setting::default(options.builtin)
}

fn file(source: &Source) -> ConfigFile {
    let Source { name, path, digest, dialect, .. } = source;
    ConfigFile { name: name.clone(), dialect: *dialect, path: path.clone(), digest: *digest }
}

/// A folder given in place of a file is a registry too; of several, the last.
fn named_registry(options: &LoadOptions<'_>) -> Option<Setting<PathBuf>> {
    let mut paths = options.files.iter().map(|path| options.cwd.join(path));
    let folder = paths.rfind(|path| path.is_dir())?;
    let place = Place::whole(folder.display().to_string());
    Some(Setting { value: folder, origin: Origin::Explicit(place) })
}

/// Log and state lie beside the native file; without one, in the working directory.
fn base(sources: &[Source], options: &LoadOptions<'_>) -> PathBuf {
    let native = sources.iter().find(|source| source.dialect == Dialect::Native);
    native.map_or_else(|| options.cwd.clone(), |source| source.folder.clone())
}

/// The switch decides how files are expanded, so it is looked up before any is.
fn unresolved_env(sources: &[Source], options: &LoadOptions<'_>) -> UnresolvedEnv {
    let variable = options.environment.get("HAFT__DEFAULTS__UNRESOLVED_ENV").map(String::as_str);
    let in_file = sources
        .iter()
        .filter(|source| source.dialect == Dialect::Native)
        .filter_map(|source| source.root.get("defaults")?.get("unresolved_env")?.as_text())
        .next_back();
    match variable.or(in_file) {
        Some("warn") => UnresolvedEnv::Warn,
        _ => UnresolvedEnv::Error,
    }
}

/// `HAFT__` variables apply to the merged whole: a server keeps its file's format and folder.
fn override_from_environment(
    merged: &mut super::compile::Merged,
    options: &LoadOptions<'_>,
    problems: &mut Problems,
) {
    let named: Vec<(At<String>, RawServer)> =
        merged.servers.iter().map(|server| (server.name.clone(), server.raw.clone())).collect();
    let place = Place::whole("");
    for (variable, server) in server_overrides(&options.environment) {
        let overridden = named.iter().filter(|(name, _)| is_same_name(&name.value, &server));
        let uses = overridden.map(|(name, _)| VariableUse {
            variable: variable.clone(),
            file: name.place.file.clone(),
            path: vec![name.place.path.clone()],
        });
        merged.variables.extend(uses);
    }
    merged.config.servers = Some(At { value: Named(named), place });
    apply_native(&mut merged.config, &options.environment, problems);
    let servers = merged.config.servers.take().map(|servers| servers.value.0).unwrap_or_default();
    for (at, (name, raw)) in servers.into_iter().enumerate() {
        match merged.servers.get_mut(at) {
            Some(server) => server.raw = raw,
            None => merged.servers.push(super::compile::ServerSource {
                name,
                raw,
                dialect: Dialect::Native,
                folder: options.cwd.clone(),
                runs_in_folder: false,
            }),
        }
    }
}

/// Looks up the variables that `client_secret_env` names. They are references like any other: the registry
/// policy decides on them too. A secret that is not there is always an error.
fn take_client_secrets(
    merged: &mut super::compile::Merged,
    options: &LoadOptions<'_>,
    problems: &mut Problems,
) {
    for server in &mut merged.servers {
        let oauth = server.raw.oauth.as_mut().map(|at| &mut at.value);
        let Some(At { value, place }) = oauth.and_then(|it| it.client_secret_env.as_mut()) else {
            continue;
        };
        merged.variables.push(VariableUse {
            variable: value.name.clone(),
            file: server.name.place.file.clone(),
            path: vec![server.name.place.path.clone()],
        });
        let held = options.environment.get(&value.name).filter(|secret| !secret.is_empty());
        value.value = held.map(Secret::new);
        if held.is_none() {
            let name = &value.name;
            problems.error(
                place,
                format!("the environment variable `{name}` with the client's secret is not set"),
                format!("set {name} in the environment of Haft"),
            );
        }
    }
}
