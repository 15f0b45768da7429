//! `haft call`.

use std::process::ExitCode;

use clap::Args;
use haft::record::LogHealth;
use haft::{Code, Config, Envelope, HumanInbox, ServerInfo, Status, ToolCall};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::agent::{Lasts, Lines, People};
use super::arguments::GivenArguments;
use super::content::shown;
use super::serve::sampler;
use super::service::{self, CallOutcome, CallRequest, Reply, Request, ServiceClient};
use super::toolbox::{self, Purpose, Toolbox};
use super::{
    EXIT_INTERRUPTED, EXIT_RUNTIME, Global, arguments, block_on, load, print_json, print_json_text,
    remedy, trusted_configuration,
};
use crate::gateway::Hub;
use crate::stderr::say;
use crate::terminal::{self, Paint};

/// The way to approve a call at a terminal.
pub(super) const APPROVAL_HINT: &str = "agree to it (`haft call --yes`)";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  haft call get_weather city=Seoul days=3
  haft call get_weather '{\"city\": \"Seoul\"}'
  haft call get_weather @arguments.json
  echo '{\"city\": \"Seoul\"}' | haft call get_weather -
  haft call summarize text=@notes.txt
  haft call label tags=red,blue         also: tags=red tags=blue
  haft call label tags:='[\"a,b\"]'      key:=JSON is JSON, whatever the schema says

key=value follows the tool's schema: city=123 is a string where the tool takes one. Where the schema
leaves it open, numbers, true, false, null, lists and objects are JSON and anything else is text.

Beside a running service of the same configuration (`haft serve`) the service runs the call.
--standalone starts the tool's server for this call instead.")]
pub(super) struct CallArgs {
    /// The tool's name
    #[arg(value_parser = super::parse_name)]
    tool: String,
    /// Its arguments: one JSON object, key=value words, @FILE, or - for standard input
    arguments: Vec<String>,
    /// The session the call belongs to; the log keeps it
    #[arg(long)]
    session: Option<String>,
    /// The user's request in plain words; the log keeps it if `log.requests` is on
    #[arg(long, value_name = "TEXT")]
    request: Option<String>,
    /// Approve a call that needs approval
    #[arg(long, short)]
    yes: bool,
    /// Also show what a Python tool printed, on standard error
    #[arg(long, short)]
    verbose: bool,
}

pub(super) fn run(global: &Global, args: &CallArgs) -> anyhow::Result<ExitCode> {
    let arguments = arguments::read(&args.arguments)?;
    block_on(async {
        match ServiceClient::connect(global).await? {
            Some(service) => call_service(global, args, arguments, service).await,
            None => call_here(global, args, arguments).await,
        }
    })
}

/// Calls the tool by way of the running service.
async fn call_service(
    global: &Global,
    args: &CallArgs,
    arguments: GivenArguments,
    mut service: ServiceClient,
) -> anyhow::Result<ExitCode> {
    let request = Request::Tool { name: args.tool.clone() };
    let Reply::Tool(tool) = service.request(&request).await? else {
        return Err(service::unexpected());
    };
    // The service may not have read the last change of the files yet, and offers `code_execution` only if a file
    // enables it.
    let Some(tool) = tool else { return call_here(global, args, arguments).await };
    let schema = Some(tool.input_schema);
    let inbox = People::are_there().then(HumanInbox::default);
    let request = CallRequest {
        tool: args.tool.clone(),
        arguments: arguments.into_text(schema.as_ref())?,
        session: args.session.clone(),
        request: args.request.clone(),
        approved: args.yes,
        attended: inbox.is_some(),
    };
    let cancel = CancellationToken::new();
    let calling = Box::pin(service.call(request, inbox.as_ref(), &cancel));
    let outcome = match &inbox {
        Some(inbox) => {
            let people = People::attend(inbox, Lines::open(None), Paint::stderr(global.color))
                .during(Lasts::OneCall);
            toolbox::cancelling(&cancel, people.while_working(&cancel, calling)).await??
        }
        None => toolbox::cancelling(&cancel, calling).await??,
    };
    let CallOutcome { mut envelope, unrecorded, must_record } = outcome;
    add_example(&mut envelope, schema.as_ref());
    print_stdout(global, args, &envelope);
    print(global, &envelope, unrecorded.as_deref())?;
    Ok(exit_code(&envelope, &cancel, must_record && unrecorded.is_some()))
}

/// Starts the tool's server, or all of them, and calls the tool.
async fn call_here(
    global: &Global,
    args: &CallArgs,
    arguments: GivenArguments,
) -> anyhow::Result<ExitCode> {
    let config = trusted_configuration(global)?;
    let on_failure = config.config().log.on_failure.value;
    let asking = inbox(config.config(), args.yes);
    let purpose = Purpose::Call(&args.tool, asking.clone());
    let mut toolbox = Toolbox::open(config, purpose).await?;
    let runtime = toolbox.runtime.clone();
    let cancel = CancellationToken::new();
    if matches!(arguments, GivenArguments::Pairs(_)) && runtime.tool(&args.tool).is_none() {
        // The schema decides what the words mean.
        toolbox.until_end(runtime.discover()).await;
    }
    let schema = runtime.tool(&args.tool).map(|tool| tool.input_schema);
    let text = match arguments.into_text(schema.as_ref()) {
        Ok(text) => text,
        Err(error) => {
            toolbox.end().await;
            return Err(error);
        }
    };
    let mut call =
        ToolCall::from_text(&args.tool, &text).caller("cli").approval_hint(APPROVAL_HINT);
    if let Some(session) = &args.session {
        call = call.session(session);
    }
    if let Some(request) = &args.request {
        call = call.user_request(request);
    }
    call = call.cancelled_by(cancel.clone());
    if args.yes {
        call = call.approved();
    }
    let mut envelope = if let Some((_, inbox)) = asking {
        toolbox.hide_progress();
        let people = People::attend(&inbox, Lines::open(None), Paint::stderr(global.color))
            .during(Lasts::OneCall);
        let calling = Box::pin(runtime.call(call.asking_people()));
        toolbox.cancelling(&cancel, people.while_working(&cancel, calling)).await
    } else {
        toolbox.cancelling(&cancel, runtime.call(call)).await
    };
    remedy::render(&mut envelope);
    add_stderr(&mut envelope, &runtime.servers());
    name_failed_servers(&mut envelope, &runtime.servers());
    toolbox.end().await;
    // Only now is it sure whether the entry came to the log after all.
    let unrecorded = runtime.log_health().and_then(unrecorded);
    envelope.set_message(unrecorded.clone());
    say_without_file(global, &mut envelope);
    add_example(&mut envelope, schema.as_ref());
    print_stdout(global, args, &envelope);
    print(global, &envelope, unrecorded.as_deref())?;
    let must_record = on_failure == haft::config::choices::OnLogFailure::Refuse;
    Ok(exit_code(&envelope, &cancel, must_record && unrecorded.is_some()))
}

fn exit_code(envelope: &Envelope, cancel: &CancellationToken, is_unrecorded: bool) -> ExitCode {
    match envelope.status {
        Status::Success if is_unrecorded => ExitCode::from(EXIT_RUNTIME),
        Status::Success => ExitCode::SUCCESS,
        Status::Error if cancel.is_cancelled() => ExitCode::from(EXIT_INTERRUPTED),
        Status::Error => ExitCode::from(EXIT_RUNTIME),
    }
}

/// Prints what a script wrote to its standard output, with `--verbose`.
fn print_stdout(global: &Global, args: &CallArgs, envelope: &Envelope) {
    if let Some(printed) = envelope.stdout.as_deref().filter(|_| args.verbose) {
        let paint = Paint::stderr(global.color);
        say!("{}", paint.dim(&haft_text::printable_block(printed.trim_end())));
    }
}

/// Adds a valid command line to the remedy for invalid arguments.
fn add_example(envelope: &mut Envelope, schema: Option<&Value>) {
    let error = envelope.error.as_mut().filter(|error| error.code == Code::ValidationError);
    if let (Some(error), Some(schema)) = (error, schema) {
        let remedy = error.remedy.take().map(|remedy| format!("{remedy}; "));
        let example = arguments::example(&envelope.tool, schema);
        let remedy = format!("{}for example `{example}`", remedy.unwrap_or_default());
        error.remedy = Some(remedy.into());
    }
}

/// A tool may be missing because its server could not be asked.
fn name_failed_servers(envelope: &mut Envelope, servers: &[ServerInfo]) {
    let error = envelope.error.as_mut().filter(|error| error.code == Code::UnknownTool);
    let Some(error) = error else { return };
    let failed = |server: &&ServerInfo| toolbox::failed(server) && server.reason.is_some();
    for server in servers.iter().filter(failed) {
        let remedy = error.remedy.take().map(|remedy| format!("{remedy}; ")).unwrap_or_default();
        let (name, action) = (&server.name, toolbox::remedy(server));
        let why = format!("{remedy}`{name}` may have it and could not be asked: {action}");
        error.remedy = Some(why.into());
    }
}

/// A tool may be missing because no file was read.
fn say_without_file(global: &Global, envelope: &mut Envelope) {
    let error = envelope.error.as_mut().filter(|error| error.code == Code::UnknownTool);
    if let (Some(error), Some(why)) = (error, load::without_file(global)) {
        let remedy = error.remedy.take().map(|remedy| format!("{remedy}; "));
        error.remedy = Some(format!("{}{why}", remedy.unwrap_or_default()).into());
    }
}

/// The warning if the end of this program loses the call's entry.
pub(super) fn unrecorded(health: LogHealth) -> Option<String> {
    match health {
        LogHealth::Working { entries_lost: 0, .. }
        | LogHealth::Failing { entries_kept: 0, entries_lost: 0, .. } => None,
        LogHealth::Working { .. } => Some("this call is not in the execution log".to_owned()),
        LogHealth::Failing { problem, .. } => {
            Some(format!("this call is not in the execution log: {}", problem.problem()))
        }
    }
}

/// Where servers and tools ask the person at the terminal, if there is one. A server that may use the model gets
/// that of the configuration.
fn inbox(config: &Config, approves: bool) -> Option<(Hub, HumanInbox)> {
    if !People::are_there() {
        return None;
    }
    let inbox = HumanInbox::default();
    let hub = Hub::with_inbox(inbox.clone());
    hub.set_sampler(sampler(&config.agent));
    Some((if approves { hub.agreeing() } else { hub }, inbox))
}

/// Adds what the server wrote to its standard error: at the terminal it is the operator who reads.
pub(super) fn add_stderr(envelope: &mut Envelope, servers: &[ServerInfo]) {
    let Some(error) = &mut envelope.error else { return };
    let name = error.details.get("server").and_then(Value::as_str);
    let server = servers.iter().find(|server| Some(server.name.as_str()) == name);
    if let Some(tail) = server.and_then(|server| server.stderr_tail.as_ref()) {
        error.details["stderr"] = tail.as_str().into();
    }
}

fn print(global: &Global, envelope: &Envelope, unrecorded: Option<&str>) -> anyhow::Result<()> {
    if global.json {
        return print_json(envelope);
    }
    let paint = Paint::stderr(global.color);
    if let Some(message) = unrecorded {
        terminal::warning(paint, message, "look at `log.dir` and the disk it lies on");
    }
    match (&envelope.error, &envelope.data) {
        (Some(error), _) => {
            let remedy = error.remedy.as_ref().map(ToString::to_string);
            terminal::error(paint, &error.message, remedy.as_deref());
            if let Some(tail) =
                error.details.get("traceback").or_else(|| error.details.get("stderr"))
            {
                let tail = tail.as_str().unwrap_or_default().trim_end();
                // Some messages have it already.
                if !tail.is_empty() && !error.message.contains(tail) {
                    say!("{}", paint.dim(&haft_text::printable_block(tail)));
                }
            }
            let (id, docs) = (&envelope.execution_id, error.code.docs());
            say!("{}", paint.dim(&format!("execution {id}, see {docs}")));
        }
        (None, Some(data)) => match serde_json::from_str::<String>(data.get()) {
            Ok(text) => terminal::line(&haft_text::printable_block(&text)),
            // Not a string, or one with invalid Unicode: shown as it was written.
            Err(_) => print_json_text(data.get()),
        },
        (None, None) if envelope.content.is_empty() => {
            // On stderr, because the answer in a pipe is empty.
            say!("{}", paint.dim("(no content)"));
        }
        (None, None) => {
            for block in &envelope.content {
                terminal::line(&shown(block));
            }
        }
    }
    Ok(())
}
