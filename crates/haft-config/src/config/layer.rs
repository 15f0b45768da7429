//! One file into a layer: overrides, variables, then its format.

use std::cell::RefCell;
use std::collections::HashMap;

use super::Dialect;
use super::choices::UnresolvedEnv;
use super::dialect::{FileContext, Layer, gemini, read, read_split};
use super::entry_cache::Item;
use super::expand::{Failure, References, Variables, expand, input_variable, literally};
use super::load::{InputRequest, LoadOptions};
use super::node::{Node, NodeValue};
use super::overrides::apply_toolbox;
use super::place::{Place, Problems};
use super::raw::RawConfig;
use super::read::Reader;
use super::source::Source;
use crate::remedy::Remedy;
use haft_text::list;

pub(super) fn layer(
    mut source: Source,
    options: &LoadOptions<'_>,
    unresolved: UnresolvedEnv,
    references: References,
    problems: &mut Problems,
) -> Layer {
    let keeps = references == References::Keep;
    if source.dialect == Dialect::Toolbox && !keeps {
        apply_toolbox(&mut source.root, &options.environment, problems);
    }
    let inputs = inputs(&source.root);
    let answer = |id: &str| match references {
        References::Resolve => answer(id, &inputs, options),
        References::Keep => Ok(kept_input(id, &inputs)),
    };
    let (dialect, cwd) = (source.dialect, options.cwd.display().to_string());
    let variables = Variables {
        environment: &options.environment,
        unresolved,
        predefined: predefined(&source, options),
        inputs: (dialect == Dialect::Vscode).then_some(&answer),
        reads: &|path| dialect.reads(path, &cwd),
        references,
        used: RefCell::default(),
    };
    let mut reader = Reader::new(source.name.clone(), problems);
    let mut items = source.split.take().map(|(_, items)| items);
    if let Some(items) = &mut items {
        let new = items.iter_mut().enumerate().filter_map(|(at, item)| match item {
            Item::New(tool) => Some((at, tool)),
            Item::Known(_) => None,
        });
        expand_tools(new, &variables, &mut reader);
    } else if source.dialect == Dialect::ToolsJson {
        expand_tool_configs(&mut source.root, &variables, &mut reader);
    } else if source.dialect.expands_variables() {
        if gemini::is_gemini(&source.name, &source.root) {
            gemini::brace_variables(&mut source.root);
        }
        expand(&mut source.root, &variables, &mut reader);
    } else if keeps {
        spell_literally(&mut source.root);
    }
    let mut layer = Layer {
        dialect: source.dialect,
        folder: source.folder,
        config: RawConfig::empty(Place::whole(source.name)),
        local: Vec::new(),
        // Beside a file of ours lie its log and its state, and so do the paths in it.
        runs_in_folder: source.dialect == Dialect::Native,
        variables: Vec::new(),
    };
    if let Some(items) = items {
        read_split(&source.root, items, &mut layer, &mut reader);
    } else {
        let context = FileContext { cwd: &cwd, variables: &variables };
        read(&source.root, &mut layer, &mut reader, &context);
    }
    layer.variables = variables.used.take();
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
    expand_tools(tools.iter_mut().enumerate(), variables, reader);
}

fn expand_tools<'n>(
    tools: impl Iterator<Item = (usize, &'n mut Node)>,
    variables: &Variables<'_>,
    reader: &mut Reader<'_>,
) {
    for (at, tool) in tools {
        let NodeValue::Map(fields) = &mut tool.value else {
            continue;
        };
        for field in fields.iter_mut().filter(|field| field.key == "config") {
            let entry = format!("tools[{at}]");
            reader.inside(entry, |reader| {
                reader.inside("config", |reader| expand(&mut field.value, variables, reader));
            });
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
                password: input.get("password").is_some_and(|it| it.value == NodeValue::Bool(true)),
                options: choices(input),
                default: text(input, "default"),
                id,
            })
        })
        .collect()
}

fn answer(id: &str, inputs: &[InputRequest], options: &LoadOptions<'_>) -> Result<String, Failure> {
    let Some(request) = inputs.iter().find(|input| input.id == id) else {
        return Err((
            format!("the file defines no input `{id}`"),
            "add it to \"inputs\", or fix the reference".into(),
        ));
    };
    let variable = input_variable(id);
    let given = options.inputs.get(id).or_else(|| options.environment.get(&variable));
    let answer = given.cloned().or_else(|| options.ask.and_then(|ask| ask(request)));
    let Some(answer) = answer.or_else(|| request.default.clone()) else {
        return Err((
            format!("the input `{id}` ({}) has no value", request.description),
            Remedy::SetInput { input: id.to_owned(), variable },
        ));
    };
    if request.options.is_empty() || request.options.contains(&answer) {
        return Ok(answer);
    }
    let remedy = format!("use one of {}", list(&request.options));
    Err((format!("the value of the input `{id}` is none of its options"), remedy.into()))
}

/// An input as a native file has it: the variable that may hold its answer.
fn kept_input(id: &str, inputs: &[InputRequest]) -> String {
    let variable = input_variable(id);
    let default = inputs.iter().find(|input| input.id == id).and_then(|it| it.default.as_ref());
    match default {
        Some(default) => format!("${{{variable}:-{}}}", literally(default)),
        None => format!("${{{variable}}}"),
    }
}

/// Escapes the strings of a format without references for one with references.
fn spell_literally(node: &mut Node) {
    match &mut node.value {
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {}
        NodeValue::Text(text) => text.text = literally(&text.text),
        NodeValue::List(items) => items.iter_mut().for_each(spell_literally),
        NodeValue::Map(entries) => {
            for entry in entries {
                spell_literally(&mut entry.value);
            }
        }
    }
}

/// The answers an input offers: strings, or `{label, value}`.
fn choices(input: &Node) -> Vec<String> {
    let options = input.get("options").map(Node::items).unwrap_or_default();
    let value = |option: &Node| {
        option.as_text().or_else(|| option.get("value")?.as_text()).map(ToOwned::to_owned)
    };
    options.iter().filter_map(value).collect()
}

/// Variables that VS Code and Cursor predefine.
fn predefined(source: &Source, options: &LoadOptions<'_>) -> HashMap<&'static str, String> {
    if !matches!(source.dialect, Dialect::Vscode | Dialect::Cursor) {
        return HashMap::new();
    }
    let folder = source.folder.display().to_string();
    let basename = source.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let home = options.environment.get("HOME").cloned().unwrap_or_default();
    HashMap::from([
        ("workspaceFolder", folder),
        ("workspaceFolderBasename", basename.unwrap_or_default()),
        ("userHome", home),
        ("pathSeparator", "/".into()),
        ("/", "/".into()),
    ])
}
