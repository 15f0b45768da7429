//! Broken entries of servers: an entry with a problem disables itself, and the rest of the configuration is used.

use super::Dialect;
use super::expand::name_references;
use super::node::{Entry, Node, NodeValue};
use super::place::{Place, Problem, Severity};
use super::read::joined;
use super::source::Source;
use crate::remedy::Remedy;

/// Keys whose values are maps of servers.
const SECTIONS: [&str; 4] = ["servers", "mcpServers", "mcp_servers", "extensions"];
/// The depth of such a key: `projects.FOLDER.mcpServers`.
const DEPTH_MAX: usize = 3;

/// The handling of a server's entry that has a problem.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BrokenEntries {
    /// The configuration is invalid.
    #[default]
    Refuse,
    /// The entry is disabled, unless the server is required or its format demands a halt.
    Disable,
    /// The same for these servers only.
    DisableOnly(Vec<String>),
}

/// A server whose entry has a problem. It is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MisconfiguredServer {
    /// Its name.
    pub name: String,
    /// Its transport, as far as the entry shows it.
    pub transport: &'static str,
    /// The place of its first problem.
    pub place: Place,
    /// Its first problem.
    pub problem: String,
    /// The remedy.
    pub remedy: Remedy,
    /// The variables of the environment that its entry refers to.
    pub variables: Vec<String>,
}

impl MisconfiguredServer {
    /// The warning of a start without the server.
    pub(super) fn warning(&self) -> Problem {
        Problem {
            severity: Severity::Warning,
            place: self.place.clone(),
            problem: format!(
                "server `{}` is misconfigured and not used: {}",
                self.name, self.problem
            ),
            remedy: self.remedy.clone(),
        }
    }
}

/// Takes the entries that have errors out of their files. Returns nothing, and changes nothing, if an error is not
/// inside an entry that may be missing.
pub(super) fn take_out(
    sources: &mut [Source],
    problems: &[Problem],
    policy: &BrokenEntries,
) -> Option<Vec<MisconfiguredServer>> {
    let mut broken: Vec<(usize, Vec<String>, MisconfiguredServer)> = Vec::new();
    for problem in problems.iter().filter(|problem| problem.severity == Severity::Error) {
        let (source, path) = entry_of(sources, &problem.place)?;
        let (name, node) = (path.last()?, find(&sources[source].root, &path)?);
        if !may_be_missing(sources[source].dialect, name, node, policy) {
            return None;
        }
        if broken.iter().any(|(at, known, _)| (*at, known) == (source, &path)) {
            continue;
        }
        let server = MisconfiguredServer {
            name: name.clone(),
            transport: transport(node),
            place: problem.place.clone(),
            problem: problem.problem.clone(),
            remedy: problem.remedy.clone(),
            variables: variables(node),
        };
        broken.push((source, path, server));
    }
    for (source, path, _) in &broken {
        remove(&mut sources[*source].root, path);
    }
    Some(broken.into_iter().map(|(.., server)| server).collect())
}

/// The entry of a server that a place lies in. Of two entries that fit, the one with the longer name.
fn entry_of(sources: &[Source], place: &Place) -> Option<(usize, Vec<String>)> {
    let source = sources.iter().position(|source| source.name == place.file)?;
    let mut entries = Vec::new();
    collect(&sources[source].root, &mut Vec::new(), &mut entries);
    let is_inside = |path: &Vec<String>| {
        let rest = place.path.strip_prefix(joined(path).as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let fitting = entries.into_iter().filter(is_inside);
    Some((source, fitting.max_by_key(|path| joined(path).len())?))
}

fn collect(node: &Node, path: &mut Vec<String>, entries: &mut Vec<Vec<String>>) {
    for Entry { key, value, .. } in node.entries() {
        path.push(key.clone());
        if SECTIONS.contains(&key.as_str()) {
            let servers = value.entries().iter().map(|server| &server.key);
            entries
                .extend(servers.map(|name| [path.as_slice(), std::slice::from_ref(name)].concat()));
        } else if path.len() < DEPTH_MAX {
            collect(value, path, entries);
        }
        path.pop();
    }
}

/// The source documents of some formats demand a halt, and so does an operator who requires the server.
fn may_be_missing(dialect: Dialect, name: &String, node: &Node, policy: &BrokenEntries) -> bool {
    let is_chosen = match policy {
        BrokenEntries::Refuse => false,
        BrokenEntries::Disable => true,
        BrokenEntries::DisableOnly(names) => names.contains(name),
    };
    let halts = matches!(
        dialect,
        Dialect::Toolbox | Dialect::AgentYaml | Dialect::McpServers | Dialect::ToolsJson
    );
    let is_required = node.get("required").is_some_and(|it| it.value == NodeValue::Bool(true))
        || node.get("on_connect_failure").and_then(Node::as_text) == Some("exit");
    is_chosen && !halts && !is_required
}

/// The variables that the strings of an entry refer to, each once.
fn variables(node: &Node) -> Vec<String> {
    fn visit(node: &Node, names: &mut Vec<String>) {
        match &node.value {
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {}
            NodeValue::Text(text) => name_references(&text.text, names),
            NodeValue::List(items) => items.iter().for_each(|item| visit(item, names)),
            NodeValue::Map(entries) => entries.iter().for_each(|it| visit(&it.value, names)),
        }
    }
    let mut names = Vec::new();
    visit(node, &mut names);
    names.sort_unstable();
    names.dedup();
    names
}

fn transport(node: &Node) -> &'static str {
    let has = |key: &str| node.get(key).is_some();
    if has("url") || has("serverUrl") || has("uri") { "http" } else { "stdio" }
}

fn find<'a>(node: &'a Node, path: &[String]) -> Option<&'a Node> {
    path.iter().try_fold(node, |node, key| node.get(key))
}

fn remove(node: &mut Node, path: &[String]) {
    let NodeValue::Map(entries) = &mut node.value else { return };
    match path {
        [] => {}
        [name] => entries.retain(|entry| entry.key != *name),
        [key, rest @ ..] => {
            for entry in entries.iter_mut().filter(|entry| entry.key == *key) {
                remove(&mut entry.value, rest);
            }
        }
    }
}
