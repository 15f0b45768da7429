//! From paths to a configuration: read, parse, detect, expand, read into records, merge, compile.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::choices::UnresolvedEnv;
use super::compile::{compile, merge};
use super::dialect::{Layer, Surroundings, detect, read};
use super::expand::{Failure, Variables, expand, input_variable};
use super::model::Config;
use super::node::{Mark, Node, NodeValue, Text};
use super::overrides::{apply_native, apply_toolbox};
use super::parse::{FILE_BYTES_MAX, Syntax, SyntaxError, check_strict_json, parse};
use super::place::{Place, Problems};
use super::raw::{RawConfig, RawServer};
use super::read::{Named, Reader, list};
use super::{At, ConfigError, Dialect};

/// What to load and what may be asked on the way.
#[derive(Default)]
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
    pub ask: Option<&'a dyn Fn(&InputRequest) -> Option<String>>,
    /// The folder that relative paths of this process are relative to.
    pub cwd: PathBuf,
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

/// An input a file wants, as VS Code's files describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRequest {
    /// Its id.
    pub id: String,
    /// What to ask.
    pub description: String,
    /// Whether the answer is a secret.
    pub password: bool,
}

/// A file, parsed.
struct Source {
    name: Arc<str>,
    folder: PathBuf,
    dialect: Dialect,
    root: Node,
}

pub(super) fn load(options: &LoadOptions<'_>) -> Result<Config, ConfigError> {
    let mut problems = Problems::default();
    let mut sources = Vec::new();
    for path in &options.files {
        open(path, options, &mut sources, &mut problems);
    }
    finish(sources, options, problems)
}

pub(super) fn from_text(
    text: &str,
    file_name: &str,
    options: &LoadOptions<'_>,
) -> Result<Config, ConfigError> {
    let mut problems = Problems::default();
    let mut sources = Vec::new();
    let source = source(
        file_name.into(),
        options.cwd.clone(),
        text,
        options,
        &mut problems,
    );
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
        open(&registry, options, &mut sources, &mut problems);
    }
    let files = sources
        .iter()
        .map(|source| (source.name.clone(), source.dialect))
        .collect::<Vec<_>>();
    let mut layers = Vec::new();
    for source in sources {
        layers.push(layer(source, options, unresolved, &mut problems));
    }
    let mut merged = merge(layers, &mut problems);
    override_from_environment(&mut merged, options, &mut problems);
    let mut config = compile(merged, &files, &base, &mut problems);
    let has_errors = problems.has_errors();
    let problems = problems.into_sorted();
    if has_errors {
        return Err(ConfigError { problems });
    }
    config.warnings = problems;
    Ok(config)
}

/// Opens a file, or both files of a registry's folder, which must then be there.
fn open(
    path: &Path,
    options: &LoadOptions<'_>,
    sources: &mut Vec<Source>,
    problems: &mut Problems,
) {
    let full = options.cwd.join(path);
    if full.is_dir() {
        for name in ["tools.json", "mcp.json"] {
            open(&path.join(name), options, sources, problems);
        }
        return;
    }
    let shown = path.strip_prefix(&options.cwd).unwrap_or(path);
    let name: Arc<str> = shown.display().to_string().into();
    if sources.iter().any(|source| source.name == name) {
        return;
    }
    match read_file(&full) {
        Ok(text) => {
            let folder = full.parent().map(Path::to_path_buf).unwrap_or_default();
            sources.extend(source(name, folder, &text, options, problems));
        }
        Err(problem) => {
            let remedy = match full.file_name().and_then(|name| name.to_str()) {
                Some("tools.json") if !full.exists() => {
                    "create it with {\"tools\": []}, or mend the path"
                }
                Some("mcp.json") if !full.exists() => {
                    "create it with {\"mcp_servers\": {}}, or mend the path"
                }
                _ => "mend the path, or the file's permissions",
            };
            let problem = format!("the file cannot be read: {problem}");
            problems.error(&Place::whole(name), problem, remedy);
        }
    }
}

/// The text of a file that is no longer than a configuration can be.
pub(super) fn read_file(path: &Path) -> Result<String, String> {
    // A pipe or device does not say its length, so the reading itself is bounded.
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1;
        format!("it is not UTF-8 (line {line})")
    })
}

fn source(
    name: Arc<str>,
    folder: PathBuf,
    text: &str,
    options: &LoadOptions<'_>,
    problems: &mut Problems,
) -> Option<Source> {
    let syntax = Syntax::of(&name);
    let root = match parse(text, syntax) {
        Ok(root) => root,
        Err(error) => {
            syntax_problem(name, error, problems);
            return None;
        }
    };
    let path = options.cwd.join(&*name).display().to_string();
    let Some(dialect) = options.format.or_else(|| detect(&path, syntax, &root)) else {
        let words: Vec<_> = Dialect::ALL.iter().map(|dialect| dialect.word()).collect();
        let place = Place {
            line: root.mark.line,
            column: root.mark.column,
            ..Place::whole(name)
        };
        let problem = match &root.value {
            NodeValue::Null => "the file is empty".to_owned(),
            NodeValue::Map(_) => "the file is in no format that Haft knows".to_owned(),
            _ => format!("the file holds {} where a map is needed", root.kind()),
        };
        let remedy = format!("force a format with `--config-format`: {}", list(&words));
        problems.error(&place, problem, remedy);
        return None;
    };
    // A registry's files are written by programs, which would lose the comments.
    let is_registry = matches!(dialect, Dialect::ToolsJson | Dialect::McpServers);
    if let (true, Syntax::Json, Err(error)) = (is_registry, syntax, check_strict_json(text)) {
        syntax_problem(name, error, problems);
        return None;
    }
    if root.value == NodeValue::Null && dialect != Dialect::Native {
        problems.error(
            &Place::whole(name),
            "the file is empty",
            format!("write a {dialect} file"),
        );
        return None;
    }
    let root = match root.value {
        // An empty native file says nothing, and that is fine: every setting has a default.
        NodeValue::Null => Node::new(NodeValue::Map(Vec::new()), root.mark),
        _ => root,
    };
    Some(Source {
        name,
        folder: project_folder(folder),
        dialect,
        root,
    })
}

fn syntax_problem(name: Arc<str>, error: SyntaxError, problems: &mut Problems) {
    let Mark { line, column } = error.mark;
    let place = Place {
        line,
        column,
        ..Place::whole(name)
    };
    problems.error(&place, error.problem, error.remedy);
}

/// Files in an editor's own folder speak of the project around it.
fn project_folder(folder: PathBuf) -> PathBuf {
    let is_editors = folder.file_name().is_some_and(|name| {
        [".vscode", ".cursor", ".codex"]
            .iter()
            .any(|editors| name == *editors)
    });
    if is_editors {
        folder.parent().map(Path::to_path_buf).unwrap_or_default()
    } else {
        folder
    }
}

/// Log and state lie beside the native file; without one, in the working directory.
fn base(sources: &[Source], options: &LoadOptions<'_>) -> PathBuf {
    let native = sources
        .iter()
        .find(|source| source.dialect == Dialect::Native);
    native.map_or_else(|| options.cwd.clone(), |source| source.folder.clone())
}

/// The variable that overrides `registry.dir`.
const REGISTRY_DIR: &str = "HAFT__REGISTRY__DIR";

/// Folders that `registry.dir` names.
fn registries(
    sources: &[Source],
    base: &Path,
    options: &LoadOptions<'_>,
    problems: &mut Problems,
) -> Vec<PathBuf> {
    let named: Vec<(Text, Place)> = match options.environment.get(REGISTRY_DIR) {
        Some(folder) => {
            let text = Text {
                text: folder.clone(),
                shown: None,
            };
            vec![(text, Place::whole(format!("${REGISTRY_DIR}")))]
        }
        None => sources
            .iter()
            .filter(|source| source.dialect == Dialect::Native)
            .filter_map(|source| registry_dir(source, options))
            .collect(),
    };
    let mut folders = Vec::new();
    for (folder, place) in named {
        let path = base.join(&folder.text);
        if path.is_dir() {
            folders.push(path);
            continue;
        }
        problems.error(
            &place,
            format!("the registry's folder `{}` does not exist", folder.shown()),
            "create it with a `tools.json` ({\"tools\": []}) and an `mcp.json` ({\"mcp_servers\": {}})",
        );
    }
    folders
}

/// What a file's `registry.dir` says. Nothing where a variable in it is not set: that is reported
/// when the file itself is expanded.
fn registry_dir(source: &Source, options: &LoadOptions<'_>) -> Option<(Text, Place)> {
    let mut dir = source.root.get("registry")?.get("dir")?.clone();
    let variables = Variables {
        environment: &options.environment,
        unresolved: UnresolvedEnv::Error,
        predefined: HashMap::new(),
        inputs: None,
        reads: &|_| true,
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

/// The switch decides how files are expanded, so it is looked up before any is.
fn unresolved_env(sources: &[Source], options: &LoadOptions<'_>) -> UnresolvedEnv {
    let variable = options
        .environment
        .get("HAFT__DEFAULTS__UNRESOLVED_ENV")
        .map(String::as_str);
    let in_file = sources
        .iter()
        .filter(|source| source.dialect == Dialect::Native)
        .filter_map(|source| {
            source
                .root
                .get("defaults")?
                .get("unresolved_env")?
                .as_text()
        })
        .next_back();
    match variable.or(in_file) {
        Some("warn") => UnresolvedEnv::Warn,
        _ => UnresolvedEnv::Error,
    }
}

fn layer(
    mut source: Source,
    options: &LoadOptions<'_>,
    unresolved: UnresolvedEnv,
    problems: &mut Problems,
) -> Layer {
    if source.dialect == Dialect::Toolbox {
        apply_toolbox(&mut source.root, &options.environment, problems);
    }
    let inputs = inputs(&source.root);
    let answer = |id: &str| answer(id, &inputs, options);
    let (dialect, cwd) = (source.dialect, options.cwd.display().to_string());
    let variables = Variables {
        environment: &options.environment,
        unresolved,
        predefined: predefined(&source, options),
        inputs: (dialect == Dialect::Vscode).then_some(&answer),
        reads: &|path| dialect.reads(path, &cwd),
    };
    let mut reader = Reader::new(source.name.clone(), problems);
    if source.dialect == Dialect::ToolsJson {
        expand_tool_configs(&mut source.root, &variables, &mut reader);
    } else if source.dialect.expands_variables() {
        expand(&mut source.root, &variables, &mut reader);
    }
    let mut layer = Layer {
        dialect: source.dialect,
        folder: source.folder,
        config: RawConfig::empty(Place::whole(source.name)),
        local: Vec::new(),
        runs_in_folder: false,
    };
    read(
        &source.root,
        &mut layer,
        &mut reader,
        &Surroundings {
            cwd: &cwd,
            variables: &variables,
        },
    );
    layer
}

/// Descriptions and schemas reach the model word for word, so only `config` is expanded.
fn expand_tool_configs(root: &mut Node, variables: &Variables<'_>, reader: &mut Reader<'_>) {
    let NodeValue::Map(entries) = &mut root.value else {
        return;
    };
    let Some(tools) = entries.iter_mut().find(|entry| entry.key == "tools") else {
        return;
    };
    let NodeValue::List(tools) = &mut tools.value.value else {
        return;
    };
    for (at, tool) in tools.iter_mut().enumerate() {
        let NodeValue::Map(fields) = &mut tool.value else {
            continue;
        };
        for field in fields.iter_mut().filter(|field| field.key == "config") {
            let path = format!("tools[{at}].config");
            reader.inside(path, |reader| expand(&mut field.value, variables, reader));
        }
    }
}

fn inputs(root: &Node) -> Vec<InputRequest> {
    let text =
        |node: &Node, key: &str| node.get(key).and_then(Node::as_text).map(ToOwned::to_owned);
    let inputs = root.get("inputs").map(Node::items).unwrap_or_default();
    inputs
        .iter()
        .filter_map(|input| {
            let id = text(input, "id")?;
            Some(InputRequest {
                description: text(input, "description").unwrap_or_else(|| id.clone()),
                password: input
                    .get("password")
                    .is_some_and(|it| it.value == NodeValue::Bool(true)),
                id,
            })
        })
        .collect()
}

fn answer(id: &str, inputs: &[InputRequest], options: &LoadOptions<'_>) -> Result<String, Failure> {
    let Some(request) = inputs.iter().find(|input| input.id == id) else {
        return Err((
            format!("the file defines no input `{id}`"),
            "add it to \"inputs\", or mend the reference".to_owned(),
        ));
    };
    let variable = input_variable(id);
    let given = options
        .inputs
        .get(id)
        .or_else(|| options.environment.get(&variable));
    given
        .cloned()
        .or_else(|| options.ask.and_then(|ask| ask(request)))
        .ok_or_else(|| {
            (
                format!("the input `{id}` ({}) has no value", request.description),
                format!("give it with `--input {id}=VALUE`, or set {variable}"),
            )
        })
}

/// Variables that VS Code and Cursor predefine.
fn predefined(source: &Source, options: &LoadOptions<'_>) -> HashMap<&'static str, String> {
    if !matches!(source.dialect, Dialect::Vscode | Dialect::Cursor) {
        return HashMap::new();
    }
    let folder = source.folder.display().to_string();
    let basename = source
        .folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let home = options.environment.get("HOME").cloned().unwrap_or_default();
    HashMap::from([
        ("workspaceFolder", folder),
        ("workspaceFolderBasename", basename.unwrap_or_default()),
        ("userHome", home),
        ("pathSeparator", "/".into()),
        ("/", "/".into()),
    ])
}

/// `HAFT__` variables speak of the merged whole: a server keeps its file's format and folder.
fn override_from_environment(
    merged: &mut super::compile::Merged,
    options: &LoadOptions<'_>,
    problems: &mut Problems,
) {
    let named: Vec<(At<String>, RawServer)> = merged
        .servers
        .iter()
        .map(|server| (server.name.clone(), server.raw.clone()))
        .collect();
    let place = Place::whole("");
    merged.config.servers = Some(At {
        value: Named(named),
        place,
    });
    apply_native(&mut merged.config, &options.environment, problems);
    let servers = merged
        .config
        .servers
        .take()
        .map(|servers| servers.value.0)
        .unwrap_or_default();
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
