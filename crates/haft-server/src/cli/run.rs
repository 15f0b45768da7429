//! `haft run`: one request to the agent.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use haft::{AccessLists, Content};
use haft_agent::model::ModelError;
use haft_agent::{AgentEvent, Turn, TurnEnd, mentioned};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::agent::{self, AgentArgs, Lines, Opened, People, Printer};
use super::toolbox::{self, Interrupted};
use super::{
    EXIT_CONFIG, EXIT_INTERRUPTED, EXIT_RUNTIME, Failure, Global, block_on, count, print_json,
};
use crate::stderr::say;
use crate::terminal::{self, Paint};

/// Delay before the hint that the program waits for standard input.
const WAITING_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft run \"what is the weather in Seoul?\" -m openai::gpt-5
  haft run -m ollama::qwen3 \"which files are in my notes?\"      a local model
  git diff | haft run \"review this\" -q > review.md
  haft run --last \"and tomorrow?\"                               continue the last conversation
  haft run -c agent.yaml \"...\"                                  an agent.yaml with its servers

A model's key comes from the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY) or from
`agent.api_key_file`. Any service that speaks OpenAI's format: -m openai::NAME --base-url URL.
Calls of tools are shown on stderr. Without a terminal, calls that need approval are denied; --yes
agrees.")]
pub(super) struct RunArgs {
    /// Task for the agent; `-` or nothing reads it from standard input. With an argument, piped input is appended
    prompt: Option<String>,
    #[command(flatten)]
    agent: AgentArgs,
    /// Print only the answer
    #[arg(long, short)]
    quiet: bool,
    /// Output: the answer, one JSON object at the end, or a JSON line for each event
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    output_format: OutputFormat,
}

impl RunArgs {
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns true if a program reads what is printed.
    pub(super) fn is_for_programs(&self) -> bool {
        self.output_format != OutputFormat::Text
    }
}

/// The output of `haft run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    Text,
    Json,
    StreamJson,
}

pub(super) fn run(global: &Global, args: &RunArgs) -> anyhow::Result<ExitCode> {
    let prompt = prompt(args.prompt.as_deref())?;
    let format = if global.json && args.output_format == OutputFormat::Text {
        OutputFormat::Json
    } else {
        args.output_format
    };
    block_on(async {
        let mut opened = agent::open(global, &args.agent).await?;
        let answered = answer(global, args, format, &mut opened, &prompt).await;
        opened.toolbox.end().await;
        answered
    })
}

async fn answer(
    global: &Global,
    args: &RunArgs,
    format: OutputFormat,
    opened: &mut Opened,
    prompt: &Prompt,
) -> anyhow::Result<ExitCode> {
    let runtime = opened.runtime().clone();
    let everything = AccessLists::default();
    let mentioned = mentioned(&runtime, &prompt.said, &everything);
    let said = opened.toolbox.until_end(mentioned).await.ok_or(Interrupted)?;
    let said =
        said.map_err(|failure| toolbox::refused(failure, "`haft resources list` shows them"))?;
    let mut said = said.content;
    said.extend(prompt.piped.as_ref().map(Content::text));
    let output = Output::new(global, format, args.quiet);
    let tell = |event: AgentEvent| output.note(&event);
    let cancel = CancellationToken::new();
    let Opened { toolbox, agent, conversation, inbox, denied } = opened;
    let turn = agent.turn(conversation, said, &tell, &cancel);
    let turn = if People::are_there() {
        let people = People::attend(inbox, Lines::open(None), Paint::stderr(global.color));
        toolbox.cancelling(&cancel, people.while_working(&cancel, turn)).await
    } else {
        toolbox.cancelling(&cancel, turn).await
    };
    output.end(conversation.id(), agent.model().name(), &turn)?;
    if denied.count() > 0 && !People::are_there() && !args.quiet {
        let calls = count(denied.count(), "call");
        let message =
            format!("{calls} denied: no person could be asked, because {}", People::why_absent());
        let remedy = "`--yes` agrees to every call that needs approval; `approval: auto` lets a tool run unasked";
        terminal::warning(Paint::stderr(global.color), &message, remedy);
    }
    match turn {
        Ok(Turn { end: TurnEnd::Answered, .. }) => Ok(ExitCode::SUCCESS),
        Ok(Turn { end: TurnEnd::Cancelled, .. }) => Ok(ExitCode::from(EXIT_INTERRUPTED)),
        Ok(Turn { end, .. }) => {
            let paint = Paint::stderr(global.color);
            match (end, end.explained()) {
                // There is no prompt for further input here.
                (TurnEnd::MaxSteps, _) => {
                    let message = "the model still calls tools after the last step";
                    let more = "raise `agent.max_steps` (`--max-steps`)";
                    let later = format!("{more}, or continue with `haft run --last \"continue\"`");
                    let remedy = if args.agent.is_kept() { &later } else { more };
                    terminal::error(paint, message, Some(remedy));
                }
                (_, Some(explained)) => terminal::error(paint, explained, None),
                (_, None) => {}
            }
            Ok(ExitCode::from(EXIT_RUNTIME))
        }
        // The other formats contain it.
        Err(error) if format == OutputFormat::Text => {
            Err(agent::failure(EXIT_RUNTIME, error).into())
        }
        Err(error) => {
            terminal::error(Paint::stderr(global.color), &error.message, error.remedy.as_deref());
            Ok(ExitCode::from(EXIT_RUNTIME))
        }
    }
}

/// The input of the agent.
struct Prompt {
    said: String,
    /// The piped input. An `@` in it has no meaning: it may be foreign text.
    piped: Option<String>,
}

/// Reads the prompt: the argument, standard input, or both.
fn prompt(argument: Option<&str>) -> anyhow::Result<Prompt> {
    let is_piped = !std::io::stdin().is_terminal();
    let (said, piped) = match argument {
        None | Some("-") if is_piped => (standard_input()?, None),
        None | Some("-") => {
            let remedy =
                "write `haft run \"...\"`, or pipe the prompt in; `haft chat` is interactive";
            return Err(Failure::new(EXIT_CONFIG, "there is nothing to do", remedy).into());
        }
        Some(text) if is_piped => match standard_input()?.trim_end() {
            "" => (text.to_owned(), None),
            input => (text.to_owned(), Some(format!("<stdin>\n{input}\n</stdin>"))),
        },
        Some(text) => (text.to_owned(), None),
    };
    if said.trim().is_empty() && piped.is_none() {
        let remedy = "write `haft run \"...\"`, or pipe the prompt in";
        return Err(
            Failure::new(EXIT_CONFIG, "there is nothing to do: the text is empty", remedy).into()
        );
    }
    Ok(Prompt { said, piped })
}

/// Reads all of standard input. If a pipe stays open, a hint is printed.
fn standard_input() -> anyhow::Result<String> {
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        if waiting.recv_timeout(WAITING_AFTER) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            say!("waiting for the end of standard input; use `< /dev/null` for none");
        }
    });
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    drop(done);
    read.map_err(|error| {
        Failure::new(
            EXIT_CONFIG,
            format!("standard input cannot be read: {error}"),
            "pipe in UTF-8 text",
        )
    })?;
    Ok(text)
}

/// Prints a turn while it runs, and its result.
struct Output {
    format: OutputFormat,
    /// Nothing but the answer where there is none.
    printer: Option<Printer>,
    calls: Mutex<Vec<Value>>,
}

impl Output {
    fn new(global: &Global, format: OutputFormat, is_quiet: bool) -> Self {
        let is_live = format == OutputFormat::Text && std::io::stdout().is_terminal();
        let has_traces = format != OutputFormat::StreamJson && !is_quiet;
        Self {
            format,
            printer: has_traces.then(|| {
                Printer::new(Paint::stdout(global.color), Paint::stderr(global.color), is_live)
            }),
            calls: Mutex::default(),
        }
    }

    fn note(&self, event: &AgentEvent) {
        if let AgentEvent::ToolCompleted {
            call_id,
            tool,
            execution_id,
            is_error,
            duration_ms,
            ..
        } = event
        {
            let call = json!({
                "call_id": call_id, "tool": tool, "execution_id": execution_id, "is_error": is_error,
                "duration_ms": duration_ms,
            });
            self.calls.lock().push(call);
        }
        if self.format == OutputFormat::StreamJson {
            let line = serde_json::to_string(event).unwrap_or_default();
            terminal::line(&haft_text::printable_json(&line));
        }
        if let Some(printer) = &self.printer {
            printer.note(event);
        }
    }

    fn end(
        &self,
        session: &str,
        model: &str,
        turn: &Result<Turn, ModelError>,
    ) -> anyhow::Result<()> {
        let is_printed = self.printer.as_ref().is_some_and(Printer::is_live);
        if let Some(printer) = &self.printer {
            printer.end_line();
        }
        match (self.format, turn) {
            (OutputFormat::Text, Ok(turn)) if !is_printed && !turn.text.is_empty() => {
                terminal::whole(&format!("{}\n", turn.text.trim_end()));
            }
            (OutputFormat::Json, turn) => {
                let calls = self.calls.lock().clone();
                let mut object = json!({"session": session, "model": model, "tool_calls": calls});
                match turn {
                    Ok(Turn { text, end, steps, usage, .. }) => {
                        object["text"] = json!(text);
                        object["end"] = json!(end);
                        object["steps"] = json!(steps);
                        object["usage"] = json!(usage);
                    }
                    Err(ModelError { message, remedy, .. }) => {
                        object["error"] = json!({"message": message, "remedy": remedy});
                    }
                }
                print_json(&object)?;
            }
            (OutputFormat::Text | OutputFormat::StreamJson, _) => {}
        }
        Ok(())
    }
}
