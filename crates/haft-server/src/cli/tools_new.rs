//! `haft tools new`: a script with type hints, and its entry in haft.yaml.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use super::config_file::{Change, ConfigFile, Written};
use super::{EXIT_CONFIG, EXIT_RUNTIME, Failure, Global, block_on, load, print_json};
use crate::terminal;

/// Reads the type hints of a script.
const READER: &str = include_str!("type_hints.py");
/// Time for a script to be loaded.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The section of the file.
const SECTION: &str = "local_tools";
/// The function that a call runs.
const ENTRYPOINT: &str = "run";
/// Longest name of a tool that models accept.
const NAME_CHARS_MAX: usize = 64;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft tools new greet --python                       tools/greet.py with one argument, and its entry
  haft tools new forecast --python city:str days:int=3
  haft tools new report --python --script scripts/report.py    an entry for a script that is there

The schema comes from the type hints of the script: a TypedDict of its arguments.")]
pub(super) struct NewArgs {
    /// The tool's name
    name: String,
    /// A Python script
    #[arg(long, required = true)]
    python: bool,
    /// Its arguments, as NAME:TYPE or NAME:TYPE=DEFAULT; types: str, int, float, bool, list[str], dict
    #[arg(value_parser = parse_argument)]
    arguments: Vec<Argument>,
    /// The script, relative to the configuration file; made if it does not exist [default: tools/NAME.py]
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Description of the tool, instead of the script's docstring
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

#[derive(Debug, Clone)]
struct Argument {
    name: String,
    kind: String,
    default: Option<String>,
}

fn parse_argument(text: &str) -> Result<Argument, String> {
    const KINDS: [&str; 9] =
        ["str", "int", "float", "bool", "list", "list[str]", "list[int]", "list[float]", "dict"];
    let (name, rest) = text.split_once(':').unwrap_or((text, "str"));
    let (kind, default) = match rest.split_once('=') {
        Some((kind, default)) => (kind, Some(default.to_owned())),
        None => (rest, None),
    };
    let is_name = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    if !is_name {
        return Err(format!("`{name}` is not a name of an argument"));
    }
    if !KINDS.contains(&kind) {
        return Err(format!("`{kind}` is not one of {}", KINDS.join(", ")));
    }
    Ok(Argument { name: name.to_owned(), kind: kind.to_owned(), default })
}

/// The metadata that the script declares.
#[derive(Debug, Deserialize)]
struct Hints {
    schema: Value,
    description: String,
}

pub(super) fn run(global: &Global, args: &NewArgs) -> anyhow::Result<ExitCode> {
    let NewArgs { name, python: _, script, .. } = args;
    check_name(name)?;
    let file = ConfigFile::open(global)?;
    let script = script.clone().unwrap_or_else(|| PathBuf::from(format!("tools/{name}.py")));
    if script.is_absolute() {
        let problem = format!("`{}` is not relative", script.display());
        let remedy = format!("name a script below `{}`", file.folder().display());
        return Err(Failure::new(EXIT_CONFIG, problem, remedy).into());
    }
    let known = file.list(SECTION)?;
    if known.iter().any(|entry| entry["name"] == json!(name)) {
        let problem = format!("`{}` has a tool `{name}`", file.shown().display());
        let remedy = "choose another name, or change its entry by hand";
        return Err(Failure::new(EXIT_CONFIG, problem, remedy).into());
    }
    let path = file.folder().join(&script);
    let is_new = !path.exists();
    if is_new {
        create(&path, &template(args))?;
    }
    let added = add(global, args, &file, &script, &path);
    if added.is_err() && is_new {
        // Nothing is left behind by a command that failed.
        let _ = fs::remove_file(&path);
    }
    let written = added?;
    if global.json {
        let Written { file, backup } = &written;
        print_json(
            &json!({"tool": name, "script": script, "is_new": is_new, "file": file, "backup": backup}),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let verb = if is_new { "wrote" } else { "read" };
    terminal::line(&format!("{verb} {}", script.display()));
    terminal::line(&format!("added `{name}` to {}", written.file.display()));
    terminal::line(&format!("`haft tools show {name}` shows it, `haft call {name} ...` runs it"));
    Ok(ExitCode::SUCCESS)
}

fn check_name(name: &str) -> Result<(), Failure> {
    let is_name = (1..=NAME_CHARS_MAX).contains(&name.len())
        && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-');
    if is_name {
        return Ok(());
    }
    let problem = format!("`{name}` is not a name that models accept");
    let remedy = format!("use letters, digits, `_` and `-`, at most {NAME_CHARS_MAX}");
    Err(Failure::new(EXIT_CONFIG, problem, remedy))
}

fn add(
    global: &Global,
    args: &NewArgs,
    file: &ConfigFile,
    script: &Path,
    path: &Path,
) -> anyhow::Result<Written> {
    let python = match load::load_if_any(global) {
        Ok((config, _)) => config.defaults.python.value.expose().to_owned(),
        Err(_) => "python3".to_owned(),
    };
    let Hints { schema, description } = block_on(read_hints(&python, path))?;
    let description = args.description.clone().unwrap_or(description);
    let mut entry = json!({
        "name": args.name, "description": description, "input_schema": schema,
        "config": {"script_path": script},
    });
    if description.is_empty() {
        entry["description"] = json!(format!("The tool {}.", args.name));
    }
    file.change(global, Change::Adds, |it| it.append(SECTION, std::slice::from_ref(&entry)))
}

/// Loads the script in a process of its own and reads the hints of its function.
async fn read_hints(python: &str, path: &Path) -> anyhow::Result<Hints> {
    let failed = |cause: String| {
        let problem = format!("the type hints of `{}` cannot be read: {cause}", path.display());
        Failure::new(EXIT_RUNTIME, problem, "fix the script; nothing was changed")
    };
    let mut command = Command::new(python);
    command.args(["-I", "-B", "-c", READER]).arg(path).arg(ENTRYPOINT).kill_on_drop(true);
    let output = match timeout(LOAD_TIMEOUT, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(failed(format!("`{python}`: {error}")).into()),
        Err(_) => {
            return Err(
                failed(format!("it takes more than {}s to load", LOAD_TIMEOUT.as_secs())).into()
            );
        }
    };
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = text.trim_end().lines().last().unwrap_or_default().to_owned();
        return Err(failed(last).into());
    }
    // What the script prints while it is loaded comes first.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.trim_end().lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|error| failed(error.to_string()).into())
}

fn template(args: &NewArgs) -> String {
    let one = [Argument { name: "name".into(), kind: "str".into(), default: None }];
    let arguments = if args.arguments.is_empty() { &one[..] } else { &args.arguments };
    let has_defaults = arguments.iter().any(|it| it.default.is_some());
    let imports = if has_defaults { "NotRequired, TypedDict" } else { "TypedDict" };
    let mut fields = String::new();
    let mut values = String::new();
    for Argument { name, kind, default } in arguments {
        let (field, value) = match default {
            Some(default) => {
                let quoted =
                    if kind == "str" { format!("{default:?}") } else { python_literal(default) };
                (format!("NotRequired[{kind}]"), format!("args.get(\"{name}\", {quoted})"))
            }
            None => (kind.clone(), format!("args[\"{name}\"]")),
        };
        let _ = writeln!(fields, "    {name}: {field}");
        let _ = writeln!(values, "        \"{name}\": {value},");
    }
    let does = args
        .description
        .clone()
        .unwrap_or_else(|| format!("Says what {} does and when to use it.", args.name));
    format!(
        "from typing import {imports}\n\n\nclass Arguments(TypedDict):\n{fields}\n\ndef run(args: Arguments):\n    \"\"\"{}\"\"\"\n    return {{\n{values}    }}\n",
        does.replace('"', "'")
    )
}

fn python_literal(text: &str) -> String {
    match text {
        "true" => "True".to_owned(),
        "false" => "False".to_owned(),
        "null" => "None".to_owned(),
        text => text.to_owned(),
    }
}

fn create(path: &Path, text: &str) -> anyhow::Result<()> {
    let write = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
    };
    write().map_err(|error| {
        let problem = format!("`{}` cannot be written: {error}", path.display());
        Failure::new(EXIT_RUNTIME, problem, "make sure that its folder can be written").into()
    })
}
