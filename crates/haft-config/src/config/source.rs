//! Opens files: read, parse, detect the format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::Dialect;
use super::dialect::detect;
use super::entry_cache::{Entries, Item, SplitFile};
use super::load::{LoadOptions, RegistryTexts};
use super::node::{Mark, Node, NodeValue};
use super::parse::{NODES_MAX, Syntax, SyntaxError, check_strict_json, parse};
use super::place::{Place, Problems};
use super::registry_files::{RegistryFiles, SERVERS_FILE, TOOLS_FILE, read_registry};
use super::text_file::read_file;
use crate::remedy::Remedy;
use haft_text::list;

/// A file, parsed.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) name: Arc<str>,
    pub(super) path: PathBuf,
    pub(super) digest: [u8; 32],
    pub(super) folder: PathBuf,
    pub(super) dialect: Dialect,
    pub(super) root: Node,
    /// The entries of a `tools.json` that was split; `root` has none of them then.
    pub(super) split: Option<(Arc<Entries>, Vec<Item>)>,
}

/// Opens a file, or both files of a registry's folder, which must then be there.
pub(super) fn open(
    path: &Path,
    format: Option<Dialect>,
    options: &LoadOptions<'_>,
    sources: &mut Vec<Source>,
    problems: &mut Problems,
) {
    let full = options.cwd.join(path);
    let given = options.registry.as_ref().filter(|registry| registry.dir == full);
    if given.is_none() && !full.is_dir() {
        let text = || given_file(&full, options).map_or_else(|| read_file(&full), Ok);
        return add(path, format, text, options, sources, problems);
    }
    let (tools, servers) = if let Some(RegistryTexts { tools, servers, .. }) = given {
        (Ok(tools.clone()), Ok(servers.clone()))
    } else {
        let RegistryFiles { tools, servers, .. } = read_registry(&full);
        (tools, servers)
    };
    // A forced format applies to the files the user named, never to a registry's own.
    let files =
        [(TOOLS_FILE, Dialect::ToolsJson, tools), (SERVERS_FILE, Dialect::McpServers, servers)];
    for (name, dialect, text) in files {
        add(&path.join(name), Some(dialect), || text, options, sources, problems);
    }
}

/// Adds a file, unless it is there already.
fn add(
    path: &Path,
    format: Option<Dialect>,
    text: impl FnOnce() -> Result<String, String>,
    options: &LoadOptions<'_>,
    sources: &mut Vec<Source>,
    problems: &mut Problems,
) {
    let full = options.cwd.join(path);
    let shown = path.strip_prefix(&options.cwd).unwrap_or(path);
    let name: Arc<str> = shown.display().to_string().into();
    if sources.iter().any(|source| source.name == name) {
        return;
    }
    match text() {
        Ok(text) => {
            let folder = full.parent().map(Path::to_path_buf).unwrap_or_default();
            let nodes_max = nodes_max(sources, options);
            sources.extend(source(name, folder, (&text, nodes_max), format, options, problems));
        }
        Err(problem) => {
            let remedy = match full.file_name().and_then(|name| name.to_str()) {
                Some(TOOLS_FILE) if !full.exists() => {
                    "create it with {\"tools\": []}, or fix the path"
                }
                Some(SERVERS_FILE) if !full.exists() => {
                    "create it with {\"mcp_servers\": {}}, or fix the path"
                }
                _ => "fix the path, or the file's permissions",
            };
            let problem = format!("the file cannot be read: {problem}");
            problems.error(&Place::whole(name), problem, remedy);
        }
    }
}

/// The text of a file of the registry, if it is given instead of read.
fn given_file(path: &Path, options: &LoadOptions<'_>) -> Option<String> {
    let RegistryTexts { dir, tools, servers } = options.registry.as_ref()?;
    let of = |(name, text): (&str, &String)| (path == dir.join(name)).then(|| text.clone());
    [(TOOLS_FILE, tools), (SERVERS_FILE, servers)].into_iter().find_map(of)
}

/// The limit on the values of a file: files before it, or the environment, may set it. Read before anything is compiled,
/// because a registry is opened before.
pub(super) fn nodes_max(sources: &[Source], options: &LoadOptions<'_>) -> usize {
    if let Some(nodes_max) = options.nodes_max {
        return nodes_max;
    }
    let variable = options.environment.get("HAFT__LIMITS__MESSAGE_NODES_MAX");
    let in_file = || {
        let native = sources.iter().filter(|source| source.dialect == Dialect::Native);
        let mut set = native.filter_map(|source| {
            match &source.root.get("limits")?.get("message_nodes_max")?.value {
                NodeValue::Number(text) => Some(text),
                NodeValue::Text(_)
                | NodeValue::Null
                | NodeValue::Bool(_)
                | NodeValue::List(_)
                | NodeValue::Map(_) => None,
            }
        });
        set.next_back()
    };
    // An invalid number is reported when the setting itself is compiled.
    variable.or_else(in_file).and_then(|text| text.parse().ok()).unwrap_or(NODES_MAX)
}

/// Parses a document of at most the given number of values.
pub(super) fn source(
    name: Arc<str>,
    folder: PathBuf,
    (text, nodes_max): (&str, usize),
    format: Option<Dialect>,
    options: &LoadOptions<'_>,
    problems: &mut Problems,
) -> Option<Source> {
    let is_tools = format == Some(Dialect::ToolsJson);
    if let Some(cache) = options.entries.as_ref().filter(|_| is_tools)
        && let Some(split) = cache.split(&name, &folder, text, nodes_max)
    {
        let SplitFile { root, entries, items } = split;
        let path = options.cwd.join(&*name);
        let digest = Sha256::digest(text).into();
        let (dialect, split) = (Dialect::ToolsJson, Some((entries, items)));
        let folder = project_folder(folder);
        return Some(Source { name, path, digest, folder, dialect, root, split });
    }
    let syntax = Syntax::of(&name);
    let root = match parse(text, syntax, nodes_max) {
        Ok(root) => root,
        Err(error) => {
            syntax_problem(name, error, problems);
            return None;
        }
    };
    let path = options.cwd.join(&*name).display().to_string();
    let Some(dialect) = format.or_else(|| detect(&path, syntax, &root)) else {
        let words: Vec<_> = Dialect::ALL.iter().map(|dialect| dialect.word()).collect();
        let place = Place { line: root.mark.line, column: root.mark.column, ..Place::whole(name) };
        let problem = match &root.value {
            NodeValue::Null => "the file is empty".to_owned(),
            NodeValue::Map(_) => "the file is in no format that Haft knows".to_owned(),
            _ => format!("the file holds {} where a map is needed", root.kind()),
        };
        let remedy = Remedy::NameFormat { formats: list(&words) };
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
        problems.error(&Place::whole(name), "the file is empty", format!("write a {dialect} file"));
        return None;
    }
    let root = match root.value {
        // An empty native file is valid: every setting has a default.
        NodeValue::Null => Node::new(NodeValue::Map(Vec::new()), root.mark),
        _ => root,
    };
    let path = options.cwd.join(&*name);
    let digest = Sha256::digest(text).into();
    let folder = project_folder(folder);
    Some(Source { name, path, digest, folder, dialect, root, split: None })
}

fn syntax_problem(name: Arc<str>, error: SyntaxError, problems: &mut Problems) {
    let Mark { line, column } = error.mark;
    let place = Place { line, column, ..Place::whole(name) };
    problems.error(&place, error.problem, error.remedy);
}

/// Files in an editor's own folder apply to the project around it.
fn project_folder(folder: PathBuf) -> PathBuf {
    let is_editors = folder.file_name().is_some_and(|name| {
        [".vscode", ".cursor", ".codex"].iter().any(|editors| name == *editors)
    });
    if is_editors { folder.parent().map(Path::to_path_buf).unwrap_or_default() } else { folder }
}
