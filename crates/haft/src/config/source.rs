//! Opening files: read, parse, tell the format.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::Dialect;
use super::dialect::detect;
use super::load::{LoadOptions, RegistryTexts};
use super::node::{Mark, Node, NodeValue};
use super::parse::{FILE_BYTES_MAX, Syntax, SyntaxError, check_strict_json, parse};
use super::place::{Place, Problems};
use super::read::list;

/// The local tools of a registry.
pub(crate) const TOOLS_FILE: &str = "tools.json";
/// The servers of a registry.
pub(crate) const SERVERS_FILE: &str = "mcp.json";

/// A file, parsed.
pub(super) struct Source {
    pub(super) name: Arc<str>,
    pub(super) path: PathBuf,
    pub(super) digest: [u8; 32],
    pub(super) folder: PathBuf,
    pub(super) dialect: Dialect,
    pub(super) root: Node,
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
    if full.is_dir() || options.registry.as_ref().is_some_and(|registry| registry.dir == full) {
        // A forced format speaks of the files the user named, never of a registry's own.
        for (name, own) in [(TOOLS_FILE, Dialect::ToolsJson), (SERVERS_FILE, Dialect::McpServers)] {
            open(&path.join(name), Some(own), options, sources, problems);
        }
        return;
    }
    let shown = path.strip_prefix(&options.cwd).unwrap_or(path);
    let name: Arc<str> = shown.display().to_string().into();
    if sources.iter().any(|source| source.name == name) {
        return;
    }
    match given(&full, options).map_or_else(|| read_file(&full), Ok) {
        Ok(text) => {
            let folder = full.parent().map(Path::to_path_buf).unwrap_or_default();
            sources.extend(source(name, folder, &text, format, options, problems));
        }
        Err(problem) => {
            let remedy = match full.file_name().and_then(|name| name.to_str()) {
                Some(TOOLS_FILE) if !full.exists() => {
                    "create it with {\"tools\": []}, or mend the path"
                }
                Some(SERVERS_FILE) if !full.exists() => {
                    "create it with {\"mcp_servers\": {}}, or mend the path"
                }
                _ => "mend the path, or the file's permissions",
            };
            let problem = format!("the file cannot be read: {problem}");
            problems.error(&Place::whole(name), problem, remedy);
        }
    }
}

/// What a file of the registry says, where that is given instead of read.
fn given(path: &Path, options: &LoadOptions<'_>) -> Option<String> {
    let RegistryTexts { dir, tools, servers } = options.registry.as_ref()?;
    let of = |(name, text): (&str, &String)| (path == dir.join(name)).then(|| text.clone());
    [(TOOLS_FILE, tools), (SERVERS_FILE, servers)].into_iter().find_map(of)
}

/// The text of a file that is no longer than a configuration can be.
pub(crate) fn read_file(path: &Path) -> Result<String, String> {
    // Opening a pipe waits for whoever writes to it, which may be nobody. What a shell hands over in
    // `/dev/fd` has a writer.
    let kind = std::fs::metadata(path).map_err(|error| error.to_string())?.file_type();
    if !kind.is_file() && !path.starts_with("/dev") && !path.starts_with("/proc/self/fd") {
        return Err("it is not a file".to_owned());
    }
    read_up_to(path, FILE_BYTES_MAX)
}

/// The text of a plain file that has at most so many bytes. Nothing else is even opened: a pipe may
/// have no writer, and a device no end.
pub(crate) fn read_plain_file(path: &Path, bytes_max: u64) -> Result<String, String> {
    let kind = std::fs::metadata(path).map_err(|error| error.to_string())?.file_type();
    if !kind.is_file() {
        return Err("it is not a file".to_owned());
    }
    read_up_to(path, bytes_max)
}

fn read_up_to(path: &Path, bytes_max: u64) -> Result<String, String> {
    // A device does not say its length, and a file may grow, so the reading itself is bounded.
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("it has more than {bytes_max} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].split(|byte| *byte == b'\n').count();
        format!("it is not UTF-8 (line {line})")
    })
}

pub(super) fn source(
    name: Arc<str>,
    folder: PathBuf,
    text: &str,
    format: Option<Dialect>,
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
    let Some(dialect) = format.or_else(|| detect(&path, syntax, &root)) else {
        let words: Vec<_> = Dialect::ALL.iter().map(|dialect| dialect.word()).collect();
        let place = Place { line: root.mark.line, column: root.mark.column, ..Place::whole(name) };
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
        problems.error(&Place::whole(name), "the file is empty", format!("write a {dialect} file"));
        return None;
    }
    let root = match root.value {
        // An empty native file says nothing, and that is fine: every setting has a default.
        NodeValue::Null => Node::new(NodeValue::Map(Vec::new()), root.mark),
        _ => root,
    };
    let path = options.cwd.join(&*name);
    let digest = Sha256::digest(text).into();
    Some(Source { name, path, digest, folder: project_folder(folder), dialect, root })
}

fn syntax_problem(name: Arc<str>, error: SyntaxError, problems: &mut Problems) {
    let Mark { line, column } = error.mark;
    let place = Place { line, column, ..Place::whole(name) };
    problems.error(&place, error.problem, error.remedy);
}

/// Files in an editor's own folder speak of the project around it.
fn project_folder(folder: PathBuf) -> PathBuf {
    let is_editors = folder.file_name().is_some_and(|name| {
        [".vscode", ".cursor", ".codex"].iter().any(|editors| name == *editors)
    });
    if is_editors { folder.parent().map(Path::to_path_buf).unwrap_or_default() } else { folder }
}
