//! `haft chat`: talking with the agent.

mod commands;
mod completion;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use haft::config::LoadOptions;
use haft::{Config, Content};
use haft_agent::{Agent, AgentEvent, SessionStore};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use self::commands::{Commands, Next};
use super::agent::{self, AgentArgs, Lines, Opened, People, Printer, Said};
use super::{Global, block_on, count};
use crate::stderr::say;
use crate::terminal::{self, Paint};

/// The input history, in the folder of conversations.
const HISTORY: &str = "history";

/// Longest time between two Ctrl-C at the prompt that leave the chat.
const TWICE_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft chat -m anthropic::claude-sonnet-4-5
  haft chat -m ollama::qwen3                    a local model
  haft chat --last                              continue the last conversation

In the chat: /help shows what there is, Tab completes commands, tools and resources, @URI hands a
server's resource to the model, /model changes the model, Ctrl-C breaks off an answer, Ctrl-D leaves.
Calls of tools with `approval: ask` are asked about: allow, always, deny.")]
pub(super) struct ChatArgs {
    #[command(flatten)]
    agent: AgentArgs,
}

pub(super) fn run(global: &Global, args: &ChatArgs) -> anyhow::Result<ExitCode> {
    block_on(async {
        let mut opened = agent::open(global, &args.agent).await?;
        let talked = talk(global, &mut opened).await;
        opened.toolbox.end().await;
        talked
    })
}

async fn talk(global: &Global, opened: &mut Opened) -> anyhow::Result<ExitCode> {
    let config = opened.runtime().config();
    // Who wants nothing kept wants no lines kept either.
    let is_kept = std::io::stdin().is_terminal() && opened.conversation.is_kept();
    let history = is_kept.then(|| SessionStore::of(&config).dir().join(HISTORY));
    let completing = completion::complete(opened.runtime().clone(), Handle::current());
    let lines = Lines::open_completing(history, Some(completing));
    let (out, err) = (Paint::stdout(global.color), Paint::stderr(global.color));
    greet(err, opened);
    let people = People::are_there().then(|| People::attend(&opened.inbox, lines.clone(), err));
    let mut interrupted: Option<Instant> = None;
    loop {
        let prompt = if std::io::stdin().is_terminal() { "> " } else { "" };
        let Some(said) = opened.toolbox.until_end(lines.read(prompt)).await else { break };
        let line = match said {
            Said::Line(line) => line,
            Said::Closed => break,
            // A later one is meant for another line, typed meanwhile.
            Said::Interrupted if interrupted.is_some_and(|at| at.elapsed() < TWICE_MAX) => break,
            Said::Interrupted => {
                say!("{}", err.dim("Ctrl-C again, Ctrl-D or /exit leaves"));
                interrupted = Some(Instant::now());
                continue;
            }
        };
        interrupted = None;
        let content = match understood(opened, line.trim(), out, err).await {
            Next::Nothing => continue,
            Next::Leave => break,
            Next::Model(name) => {
                change_model(opened, &name, err);
                continue;
            }
            Next::Say(content) => content,
        };
        if !turn(opened, people.as_ref(), content, (out, err)).await {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Interprets a line. Ctrl-C ends the wait for a server.
async fn understood(opened: &mut Opened, line: &str, out: Paint, err: Paint) -> Next {
    let Opened { toolbox, conversation, .. } = opened;
    let commands = Commands { out, err, runtime: toolbox.runtime.clone(), conversation };
    let cancel = CancellationToken::new();
    let next = cancel.run_until_cancelled(commands.read(line));
    match toolbox.interrupting(&cancel, next).await {
        Some(Some(next)) => next,
        Some(None) => {
            say!("{}", err.dim("[interrupted]"));
            Next::Nothing
        }
        None => Next::Leave,
    }
}

/// One turn. False where the program is to end.
async fn turn(
    opened: &mut Opened,
    people: Option<&People>,
    content: Vec<Content>,
    (out, paint): (Paint, Paint),
) -> bool {
    let printer = Printer::new(out, paint, true);
    let tell = |event: AgentEvent| printer.note(&event);
    let cancel = CancellationToken::new();
    let Opened { toolbox, agent, conversation, .. } = opened;
    let turn = agent.turn(conversation, content, &tell, &cancel);
    let ended = match people {
        Some(people) => toolbox.interrupting(&cancel, people.while_working(&cancel, turn)).await,
        None => toolbox.interrupting(&cancel, turn).await,
    };
    printer.end_line();
    match ended {
        None => return false,
        Some(Ok(turn)) => {
            if let Some(explained) = turn.end.explained() {
                say!("{}", paint.dim(&format!("[{explained}]")));
            }
        }
        Some(Err(error)) => terminal::error(paint, &error.message, error.remedy.as_deref()),
    }
    true
}

/// Uses another model from the next turn on, or shows the one in use.
fn change_model(opened: &mut Opened, name: &str, paint: Paint) {
    if name.is_empty() {
        return terminal::line(opened.agent.model().name());
    }
    let mut config = Config::clone(&opened.runtime().config());
    let environment = LoadOptions::from_process(Vec::new()).environment;
    config.choose_model(name, &environment);
    match haft_agent::model::open(&config.agent) {
        Ok(model) => {
            let settings = opened.agent.settings().clone();
            opened.agent = Agent::new(opened.runtime().clone(), model, settings);
            terminal::line(&format!("from now on: {}", opened.agent.model().name()));
        }
        Err(error) => terminal::error(paint, &error.message, error.remedy.as_deref()),
    }
}

fn greet(paint: Paint, opened: &Opened) {
    let (runtime, agent) = (opened.runtime(), &opened.agent);
    let tools = count(runtime.tools().len(), "tool");
    let before = opened.conversation.messages().len();
    let resumed = if before > 0 {
        format!(", continuing after {}", count(before, "message"))
    } else {
        String::new()
    };
    let line = format!("{} with {tools}{resumed}; /help shows what there is", agent.model().name());
    say!("{}", paint.dim(&line));
}
