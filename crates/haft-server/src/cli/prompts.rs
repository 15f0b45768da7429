//! `haft prompts list|get`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use haft::{Message, PromptInfo, Runtime, ServerInfo, ToolFailure};
use serde_json::value::to_raw_value;

use super::content::shown;
use super::service::{self, Reply, Request};
use super::toolbox::{self, Purpose, Toolbox};
use super::{
    EXIT_CONFIG, EXIT_CONNECT, EXIT_RUNTIME, Failure, Global, arguments, block_on, print_json,
};
use crate::terminal::{self, Paint};

#[derive(Debug, Subcommand)]
pub(super) enum PromptsCommand {
    /// List the prompts of the servers
    List {
        /// Only this server's; no other is connected
        #[arg(long)]
        server: Option<String>,
    },
    /// Fill in a prompt and print its messages
    #[command(after_help = "Example: haft prompts get review language=Rust code=@src/main.rs")]
    Get(GetArgs),
}

#[derive(Debug, Args)]
pub(super) struct GetArgs {
    /// The prompt's name
    #[arg(value_parser = super::parse_name)]
    name: String,
    /// Its arguments, as KEY=VALUE or KEY=@FILE
    arguments: Vec<String>,
    /// The server that has it; no other is connected
    #[arg(long)]
    server: Option<String>,
}

pub(super) fn run(global: &Global, command: &PromptsCommand) -> anyhow::Result<ExitCode> {
    match command {
        PromptsCommand::List { server } => list(global, server.as_deref()),
        PromptsCommand::Get(args) => get(global, args),
    }
}

fn list(global: &Global, server: Option<&str>) -> anyhow::Result<ExitCode> {
    let (prompts, servers) = if let Some(answer) = from_service(global, server)? {
        answer
    } else {
        let config = toolbox::with_servers(global, server.as_slice())?;
        block_on(async {
            let toolbox = Toolbox::open(config, Purpose::Inspect).await?;
            toolbox.work(async |runtime| Ok((runtime.prompts(), runtime.servers()))).await
        })?
    };
    let is_incomplete = toolbox::warn_of_failed(global, &servers);
    if global.json {
        print_json(&prompts)?;
    } else if prompts.is_empty() {
        terminal::line("no prompts");
    } else {
        let row = |prompt: &PromptInfo| {
            let description = prompt.description.lines().next().unwrap_or_default();
            vec![
                prompt.name.clone(),
                prompt.server.clone(),
                argument_names(prompt),
                description.to_owned(),
            ]
        };
        let rows: Vec<Vec<String>> = prompts.iter().map(row).collect();
        let head = ["PROMPT", "SERVER", "ARGUMENTS", "DESCRIPTION"];
        terminal::table(Paint::stdout(global.color), &head, &rows);
    }
    let is_failed = is_incomplete && prompts.is_empty();
    Ok(if is_failed { ExitCode::from(EXIT_CONNECT) } else { ExitCode::SUCCESS })
}

/// The prompts of the running service, if there is one, and its servers.
fn from_service(
    global: &Global,
    server: Option<&str>,
) -> anyhow::Result<Option<(Vec<PromptInfo>, Vec<ServerInfo>)>> {
    let request = Request::Prompts { server: server.map(ToOwned::to_owned) };
    match service::ask(global, &request)? {
        None => Ok(None),
        Some(Reply::Prompts { prompts, servers }) => Ok(Some((prompts, servers))),
        Some(_) => Err(service::unexpected()),
    }
}

/// The required arguments, and the optional ones in brackets.
pub(super) fn argument_names(prompt: &PromptInfo) -> String {
    let shown = prompt.arguments.iter().map(|argument| {
        if argument.required { argument.name.clone() } else { format!("[{}]", argument.name) }
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn get(global: &Global, args: &GetArgs) -> anyhow::Result<ExitCode> {
    let arguments = arguments::texts(&args.arguments)?;
    let raw = to_raw_value(&arguments)?;
    let answer = from_service(global, args.server.as_deref())?;
    let messages = if let Some((prompts, servers)) = answer {
        let PromptInfo { server, name, .. } = fitting(args, &arguments, prompts, &servers)?;
        let request = Request::Prompt { server, name, arguments: raw };
        match service::ask(global, &request)? {
            Some(Reply::Messages(messages)) => messages,
            _ => return Err(service::unexpected()),
        }
    } else {
        let config = toolbox::with_servers(global, args.server.as_deref().as_slice())?;
        let get = async |runtime: &Runtime| {
            let prompt = fitting(args, &arguments, runtime.prompts(), &runtime.servers())?;
            let messages = runtime.prompt(&prompt.server, &prompt.name, &raw).await;
            Ok(messages.map_err(refused)?)
        };
        block_on(async { Toolbox::open(config, Purpose::Inspect).await?.work(get).await })?
    };
    if global.json {
        print_json(&messages)?;
    } else {
        print(global, &messages);
    }
    Ok(ExitCode::SUCCESS)
}

/// The prompt that is meant, if it has all its arguments.
fn fitting(
    args: &GetArgs,
    arguments: &BTreeMap<String, String>,
    prompts: Vec<PromptInfo>,
    servers: &[ServerInfo],
) -> Result<PromptInfo, Failure> {
    let prompt = find(&args.name, prompts, servers)?;
    let given = |name: &str| arguments.contains_key(name);
    let needed = prompt.arguments.iter().filter(|it| it.required && !given(&it.name));
    let missing: Vec<String> = needed.map(|it| format!("`{}`", it.name)).collect();
    if missing.is_empty() {
        return Ok(prompt);
    }
    let problem = format!("the prompt `{}` also needs {}", args.name, missing.join(", "));
    let remedy = "add each as KEY=VALUE; `haft prompts list --json` describes them";
    Err(Failure::new(EXIT_CONFIG, problem, remedy))
}

pub(super) fn refused(failure: ToolFailure) -> Failure {
    toolbox::refused(failure, "`haft prompts list --json` shows what the prompt takes")
}

/// The one prompt of a name. Who could not be asked may have it too.
fn find(
    name: &str,
    prompts: Vec<PromptInfo>,
    servers: &[ServerInfo],
) -> Result<PromptInfo, Failure> {
    let near = haft_text::nearest(name, prompts.iter().map(|prompt| prompt.name.as_str()));
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let mut found: Vec<PromptInfo> =
        prompts.into_iter().filter(|prompt| prompt.name == name).collect();
    if found.len() > 1 {
        let owners: Vec<String> = found.iter().map(|it| format!("`{}`", it.server)).collect();
        let problem = format!("several servers have a prompt `{name}`: {}", owners.join(", "));
        return Err(Failure::new(EXIT_CONFIG, problem, "name one with `--server`"));
    }
    found.pop().ok_or_else(|| {
        if let Some(server) = servers.iter().find(|server| toolbox::failed(server)) {
            let (owner, reason) = (&server.name, toolbox::reason(server));
            let problem =
                format!("no prompt is named `{name}`, and `{owner}` could not be asked: {reason}");
            return Failure::new(EXIT_CONNECT, problem, toolbox::remedy_and_more(server));
        }
        let remedy = format!("{near}`haft prompts list` shows every prompt");
        Failure::new(EXIT_RUNTIME, format!("no prompt is named `{name}`"), remedy)
    })
}

fn print(global: &Global, messages: &[Message]) {
    let paint = Paint::stdout(global.color);
    for message in messages {
        let role = format!("{}:", haft_text::printable(&message.role));
        for block in &message.content {
            terminal::line(&format!("{} {}", paint.bold(&role), shown(block)));
        }
    }
}
