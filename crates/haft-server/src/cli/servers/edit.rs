//! `haft servers add` and `haft servers remove`.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};
use url::Url;

use crate::cli::config_file::{Change, ConfigFile, Written, place_of, unset_variables};
use crate::cli::{EXIT_CONFIG, Failure, Global, load, print_json};
use crate::terminal::{self, Paint};

/// The section of the file.
const SECTION: &str = "servers";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft servers add files -- npx -y @modelcontextprotocol/server-filesystem .
  haft servers add time -- uvx mcp-server-time
  haft servers add wiki --url https://mcp.example.com/mcp --header 'Authorization: Bearer ${WIKI_TOKEN}'
  haft servers add db --env 'DATABASE_URL=${DATABASE_URL}' -- ./db-server --read-only

The entry goes into haft.yaml; comments and order stay. Write secrets as ${VARIABLE}: the file may be shared.")]
pub(in crate::cli) struct AddArgs {
    /// The server's name
    #[arg(value_parser = crate::cli::parse_name)]
    name: String,
    /// The address of a remote server
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    url: Option<Url>,
    /// A header for a remote server, as `Name: value`; repeat for more
    #[arg(long = "header", value_name = "HEADER", requires = "url", value_parser = parse_header)]
    headers: Vec<(String, String)>,
    /// A variable for the server's environment, as `NAME=value`; repeat for more
    #[arg(long = "env", value_name = "NAME=VALUE", conflicts_with = "url", value_parser = load::parse_pair)]
    env: Vec<(String, String)>,
    /// Connect it when one of its tools is called, not at the start
    #[arg(long)]
    lazy: bool,
    /// Replace a server of this name
    #[arg(long)]
    replace: bool,
    /// The program and its arguments, after `--`
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: haft servers remove files")]
pub(in crate::cli) struct RemoveArgs {
    /// The server's name
    #[arg(value_parser = crate::cli::parse_name)]
    name: String,
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected `Name: value`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

pub(super) fn add(global: &Global, args: &AddArgs) -> anyhow::Result<ExitCode> {
    let file = ConfigFile::open(global)?;
    let is_known = file.has(SECTION, &args.name)?;
    if !args.replace && is_known {
        let problem = format!("`{}` has a server `{}`", file.shown().display(), args.name);
        return Err(
            Failure::new(EXIT_CONFIG, problem, "choose another name, or add `--replace`").into()
        );
    }
    let entry = entry(args);
    let kind = if is_known { Change::Removes } else { Change::Adds };
    let written = file.change(global, kind, |it| it.put(SECTION, &args.name, &entry))?;
    let unset = unset_variables(&entry.to_string());
    let (verb, place) = if is_known { ("replaced", "in") } else { ("added", "to") };
    let text = format!("{verb} `{}` {place} {}", args.name, written.file.display());
    let next = format!("`haft servers show {}` connects it", args.name);
    report(global, &args.name, &written, &unset, &[text, next])
}

pub(super) fn remove(global: &Global, args: &RemoveArgs) -> anyhow::Result<ExitCode> {
    let file = ConfigFile::open(global)?;
    if !file.has(SECTION, &args.name)? {
        let elsewhere = load::load(global).ok().and_then(|it| place_of(&it, &args.name));
        let (problem, remedy) = match elsewhere {
            Some(place) => (
                format!("the server `{}` stands in `{place}`", args.name),
                "remove it there".to_owned(),
            ),
            None => (
                format!("no server is named `{}`", args.name),
                "`haft servers list` shows every server".to_owned(),
            ),
        };
        return Err(Failure::new(EXIT_CONFIG, problem, remedy).into());
    }
    let written = file.change(global, Change::Removes, |it| it.remove(SECTION, &args.name))?;
    let text = format!("removed `{}` from {}", args.name, written.file.display());
    report(global, &args.name, &written, &[], &[text])
}

fn entry(args: &AddArgs) -> Value {
    let mut entry = Map::new();
    let map = |pairs: &[(String, String)]| {
        pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>()
    };
    if let Some((program, rest)) = args.command.split_first() {
        entry.insert("command".to_owned(), json!(program));
        if !rest.is_empty() {
            entry.insert("args".to_owned(), json!(rest));
        }
        if !args.env.is_empty() {
            entry.insert("env".to_owned(), map(&args.env).into());
        }
    }
    if let Some(url) = &args.url {
        entry.insert("url".to_owned(), json!(url.as_str()));
        if !args.headers.is_empty() {
            entry.insert("headers".to_owned(), map(&args.headers).into());
        }
    }
    if args.lazy {
        entry.insert("start".to_owned(), json!("lazy"));
    }
    Value::Object(entry)
}

fn report(
    global: &Global,
    name: &str,
    written: &Written,
    unset: &[String],
    lines: &[String],
) -> anyhow::Result<ExitCode> {
    for variable in unset {
        let message = format!("the variable `{variable}` is not set");
        let remedy = format!("set {variable} where Haft runs");
        terminal::warning(Paint::stderr(global.color), &message, &remedy);
    }
    if global.json {
        let Written { file, backup } = written;
        print_json(&json!({"server": name, "file": file, "backup": backup, "unset": unset}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let backup = written.backup.as_ref();
    let backup = backup.map(|it| format!("the previous content is in {}", it.display()));
    for line in lines.iter().chain(&backup) {
        terminal::line(line);
    }
    Ok(ExitCode::SUCCESS)
}
