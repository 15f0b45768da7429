//! `haft init`: a first haft.yaml with comments, and a first tool.

use std::fs;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{EXIT_CONFIG, EXIT_RUNTIME, Failure, Global, load, print_json, trust};
use crate::terminal;

const CONFIG: &str = "haft.yaml";
const SCRIPT: &str = "tools/hello.py";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft init                                   asks at a terminal
  haft init --yes                             a commented haft.yaml and a first tool, without questions
  haft init --yes --model openai::gpt-5 --no-tool
  haft init tools-of-mine --yes               in another folder

Existing files stay as they are. Next: `haft servers add`, `haft tools new`, `haft doctor`.")]
pub(super) struct InitArgs {
    /// The folder
    #[arg(default_value = ".")]
    folder: std::path::PathBuf,
    /// Take the defaults instead of asking
    #[arg(long, short)]
    yes: bool,
    /// The model of `haft run` and `haft chat`
    #[arg(long, short, value_name = "PROVIDER::NAME")]
    model: Option<String>,
    /// Write no first tool
    #[arg(long)]
    no_tool: bool,
}

pub(super) fn run(global: &Global, args: &InitArgs) -> anyhow::Result<ExitCode> {
    let config = args.folder.join(CONFIG);
    if config.exists() {
        let problem = format!("`{}` exists", config.display());
        let remedy = "change it with `haft servers add` and `haft tools new`, or by hand";
        return Err(Failure::new(EXIT_CONFIG, problem, remedy).into());
    }
    let is_asking = !args.yes && !global.json && std::io::stdin().is_terminal();
    let with_tool =
        !args.no_tool && (!is_asking || agreed("Write a first tool, tools/hello.py? [Y/n] "));
    let model = match &args.model {
        Some(model) => Some(model.clone()),
        None if is_asking => {
            answer("Model for `haft run`, such as openai::gpt-5 (empty for none): ")
        }
        None => None,
    };
    if let Some(model) = model.as_ref().filter(|it| !is_model(it)) {
        let problem = format!("`{model}` is not a model");
        let remedy = "write PROVIDER::NAME, such as openai::gpt-5 or ollama::qwen3";
        return Err(Failure::new(EXIT_CONFIG, problem, remedy).into());
    }
    let mut written = Vec::new();
    if with_tool && write_new(&args.folder.join(SCRIPT), PYTHON)? {
        written.push(args.folder.join(SCRIPT));
    }
    write_new(&config, &yaml(with_tool, model.as_deref()))?;
    written.push(config.clone());
    if let Ok((loaded, _)) = load::load_files(global, vec![config.clone()]) {
        // Haft wrote it just now.
        trust::trust_own(global, &loaded);
    }
    if global.json {
        print_json(&json!({"written": written}))?;
        return Ok(ExitCode::SUCCESS);
    }
    for file in &written {
        terminal::line(&format!("wrote {}", file.display()));
    }
    if with_tool {
        terminal::line("try it: haft call hello name=Ada");
    }
    terminal::line(
        "next: haft servers add NAME -- COMMAND, haft tools new NAME --python, haft doctor",
    );
    Ok(ExitCode::SUCCESS)
}

fn is_model(text: &str) -> bool {
    text.split_once("::").is_some_and(|(provider, name)| {
        let is_plain =
            |it: char| !it.is_whitespace() && !it.is_control() && it != '"' && it != '\'';
        !provider.is_empty() && !name.is_empty() && text.chars().all(is_plain)
    })
}

/// Anything but no is yes.
fn agreed(question: &str) -> bool {
    !answer(question).is_some_and(|it| it.to_lowercase().starts_with('n'))
}

fn answer(question: &str) -> Option<String> {
    eprint!("{question}");
    std::io::stderr().flush().ok()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).ok()?;
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// Writes a file, unless there is one. Returns true if it was written.
fn write_new(path: &Path, text: &str) -> anyhow::Result<bool> {
    let write = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
    };
    match write() {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => {
            let problem = format!("`{}` cannot be written: {error}", path.display());
            Err(Failure::new(EXIT_RUNTIME, problem, "choose a folder that you can write").into())
        }
    }
}

const PYTHON: &str = "from typing import TypedDict


class Arguments(TypedDict):
    name: str


def run(args: Arguments):
    \"\"\"Greets a person by name.\"\"\"
    return {\"greeting\": f\"Hello, {args['name']}!\"}
";

fn yaml(with_tool: bool, model: Option<&str>) -> String {
    let tool = "\
local_tools:
  - name: hello
    description: Greets a person by name.
    input_schema:
      type: object
      properties:
        name: {type: string}
      required: [name]
    config: {script_path: tools/hello.py}
";
    let no_tool = "\
# local_tools:                  # scripts of your own: `haft tools new NAME --python` adds one
#   - name: hello
#     description: Greets a person by name.
#     input_schema: {type: object, properties: {name: {type: string}}, required: [name]}
#     config: {script_path: tools/hello.py}
";
    let agent = match model {
        Some(model) => format!("agent:\n  model: \"{model}\"\n"),
        None => {
            "# agent:\n#   model: openai::gpt-5        # the model of `haft run` and `haft chat`\n"
                .to_owned()
        }
    };
    let head = "\
# The tools of this folder. `haft config schema` describes every key, `haft doctor` checks this file.

# MCP servers: `haft servers add NAME -- COMMAND` or `haft servers add NAME --url URL` adds one.
# servers:
#   files:
#     command: npx
#     args: [-y, \"@modelcontextprotocol/server-filesystem\", .]
#   wiki:
#     url: https://mcp.example.com/mcp
#     headers: {Authorization: \"Bearer ${WIKI_TOKEN}\"}   # secrets stay in the environment
";
    let local = if with_tool {
        format!("# Scripts of your own: `haft tools new NAME --python` adds one.\n{tool}")
    } else {
        no_tool.to_owned()
    };
    format!("{head}\n{local}\n{agent}")
}
