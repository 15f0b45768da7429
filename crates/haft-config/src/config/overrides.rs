//! Environment variables that override the files: `HAFT__SERVERS__customers__MODE=strict`, and
//! `APP_MYAI__TOOLBOX__MCPS__0__MODE=dynamic` for toolbox files.

use std::collections::HashMap;
use std::sync::Arc;

use super::node::{Entry, Mark, Node, NodeValue};
use super::parse::{NODES_MAX, Syntax, parse};
use super::place::{Place, Problems};
use super::raw::{RawConfig, RawTool};
use super::read::{FromNode, Reader, is_same_name};

const NATIVE_PREFIX: &str = "HAFT__";
const TOOLBOX_PREFIX: &str = "APP_MYAI__";

/// Sections in which the next step is a name and keeps its case.
const NAMED: [&str; 4] = ["servers", "tools", "env", "headers"];

/// Reads every `HAFT__` variable and lays it over `config`.
pub fn apply_native(
    config: &mut RawConfig,
    environment: &HashMap<String, String>,
    problems: &mut Problems,
) {
    for (variable, value) in sorted(environment, NATIVE_PREFIX) {
        let source: Arc<str> = format!("${variable}").into();
        let steps = steps(&variable[NATIVE_PREFIX.len()..]);
        let mut leaf = scalar(value, &source);
        for step in steps.iter().rev() {
            leaf = single(step, leaf, &source);
        }
        let mut reader = Reader::new(source, problems);
        let tools = take_tools(&mut leaf);
        if let Some(over) = RawConfig::read(&leaf, &mut reader) {
            config.overlay(over);
        }
        if let Some((name, settings)) = tools {
            override_tool(config, &name, &settings, &mut reader);
        }
    }
}

/// The `HAFT__SERVERS__` variables, each with the server it names.
pub fn server_overrides(
    environment: &HashMap<String, String>,
) -> impl Iterator<Item = (&String, String)> {
    sorted(environment, NATIVE_PREFIX).into_iter().filter_map(|(variable, _)| {
        let mut steps = steps(&variable[NATIVE_PREFIX.len()..]).into_iter();
        let section = steps.next()?;
        (section == "servers").then(|| steps.next().map(|server| (variable, server)))?
    })
}

/// Writes every `APP_MYAI__` variable into the tree of a toolbox file.
pub fn apply_toolbox(
    root: &mut Node,
    environment: &HashMap<String, String>,
    problems: &mut Problems,
) {
    for (variable, value) in sorted(environment, TOOLBOX_PREFIX) {
        let source: Arc<str> = format!("${variable}").into();
        let steps = steps(&variable["APP_".len()..]);
        // The file may leave the outer sections away, the variable always spells them.
        let skipped = steps.iter().take_while(|step| root.get(step).is_none()).count();
        let path = if skipped < steps.len() { &steps[skipped..] } else { &steps[..] };
        if let Err(problem) = write(root, path, scalar(value, &source)) {
            let place = Place { path: steps.join("."), ..Place::whole(source) };
            problems.error(&place, problem, "unset the variable, or count the entries from 0");
        }
    }
}

fn sorted<'e>(
    environment: &'e HashMap<String, String>,
    prefix: &str,
) -> Vec<(&'e String, &'e String)> {
    let mut found: Vec<_> =
        environment.iter().filter(|(name, _)| name.starts_with(prefix)).collect();
    found.sort();
    found
}

fn steps(path: &str) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    for step in path.split("__") {
        let is_name = steps.last().is_some_and(|last| NAMED.contains(&last.as_str()));
        steps.push(if is_name { step.to_owned() } else { step.to_lowercase() });
    }
    steps
}

/// Parses the value as YAML, so that numbers, `true` and `[a, b]` work; otherwise a string.
fn scalar(value: &str, source: &Arc<str>) -> Node {
    let text = || {
        Node::new(
            NodeValue::Text(super::node::Text { text: value.to_owned(), shown: None }),
            Mark::default(),
        )
    };
    let mut node = parse(value, Syntax::Yaml, NODES_MAX).unwrap_or_else(|_| text());
    stamp(&mut node, source);
    node
}

fn stamp(node: &mut Node, source: &Arc<str>) {
    node.mark = Mark::default();
    node.variable = Some(source.clone());
    match &mut node.value {
        NodeValue::List(items) => items.iter_mut().for_each(|item| stamp(item, source)),
        NodeValue::Map(entries) => {
            for entry in entries {
                stamp(&mut entry.value, source);
            }
        }
        // The value of a variable may be a secret, so messages show its name.
        NodeValue::Text(text) => {
            text.shown = Some(format!("${{{}}}", source.trim_start_matches('$')));
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {}
    }
}

fn single(key: &str, value: Node, source: &Arc<str>) -> Node {
    let entry = Entry { key: key.to_owned(), mark: Mark::default(), value };
    let mut map = Node::new(NodeValue::Map(vec![entry]), Mark::default());
    map.variable = Some(source.clone());
    map
}

/// `tools` is a list in the file and is addressed by name here.
fn take_tools(root: &mut Node) -> Option<(String, Node)> {
    let NodeValue::Map(entries) = &mut root.value else {
        return None;
    };
    let at = entries.iter().position(|entry| entry.key == "tools" && entry.value.is_map())?;
    let tools = entries.remove(at);
    tools.value.entries().first().map(|entry| (entry.key.clone(), entry.value.clone()))
}

fn override_tool(config: &mut RawConfig, name: &str, settings: &Node, reader: &mut Reader<'_>) {
    let Some(over) = reader
        .inside("tools", |reader| reader.inside(name, |reader| RawTool::read(settings, reader)))
    else {
        return;
    };
    let place = over.place.clone();
    let tools =
        config.tools.get_or_insert_with(|| super::At { value: Vec::new(), place: place.clone() });
    let known = tools
        .value
        .iter_mut()
        .find(|tool| tool.name.as_ref().is_some_and(|known| is_same_name(&known.value, name)));
    match known {
        Some(tool) => tool.overlay(over),
        None => tools
            .value
            .push(RawTool { name: Some(super::At { value: name.to_owned(), place }), ..over }),
    }
}

fn write(node: &mut Node, path: &[String], value: Node) -> Result<(), String> {
    let Some((step, rest)) = path.split_first() else {
        *node = value;
        return Ok(());
    };
    match &mut node.value {
        NodeValue::List(items) => {
            let count = items.len();
            let item = step.parse::<usize>().ok().and_then(|at| items.get_mut(at));
            let item = item.ok_or_else(|| format!("there is no entry `{step}` among {count}"))?;
            write(item, rest, value)
        }
        NodeValue::Map(entries) => {
            let at = entries.iter().position(|entry| entry.key.eq_ignore_ascii_case(step));
            let at = at.unwrap_or_else(|| {
                let empty = Node::new(NodeValue::Map(Vec::new()), Mark::default());
                entries.push(Entry { key: step.clone(), mark: Mark::default(), value: empty });
                entries.len() - 1
            });
            write(&mut entries[at].value, rest, value)
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::Text(_) => {
            Err(format!("`{step}` would lie inside a plain value"))
        }
    }
}
