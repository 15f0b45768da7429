//! The command line: arguments in, exit code out.

mod agent;
mod argument_types;
mod arguments;
mod audit;
mod call;
mod chat;
mod check;
mod config;
mod config_file;
mod console;
mod content;
mod doctor;
mod eval;
mod explain;
mod import;
mod init;
mod install;
mod key_store;
mod keys;
mod learn;
mod load;
mod load_shared;
mod lock;
mod log;
mod log_output;
mod log_shared;
mod login;
mod man;
mod mcp;
mod policy;
mod profile;
mod prompts;
mod ps;
mod remedy;
mod resources;
mod run;
mod select;
mod serve;
mod servers;
mod service;
mod sessions;
mod shared;
mod shared_approvals;
mod shared_keys;
mod status;
mod toolbox;
mod tools;
mod tools_cost;
mod tools_new;
mod trust;
mod user_file;
mod why;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use haft::config::{ConfigError, Problem, Severity};
use haft::{Config, NAME_BYTES_MAX, StartError};
use haft_text::{json_text, printable_json};
use serde_json::json;

use self::trust::Trusted;
use crate::logging::{self, LogFormat, LogLevel};
use crate::stderr::say;
use crate::terminal::{self, Color, Paint};

/// Log lines of a program that runs for long get the time in front, unless a format is chosen, a terminal shows them,
/// or the configuration's format prescribes them.
fn log_times(global: &Global, config: &Config) {
    let is_prescribed = config.files.first().is_some_and(|it| it.dialect.prescribes_log_lines());
    if global.log_format.is_none() && !std::io::stderr().is_terminal() && !is_prescribed {
        logging::add_times();
    }
}

/// Something went wrong while running.
const EXIT_RUNTIME: u8 = 1;
/// The configuration or the command line is invalid.
const EXIT_CONFIG: u8 = 2;
/// A server could not be reached.
const EXIT_CONNECT: u8 = 3;
/// A tool is not configured where it must be.
const EXIT_STRICT: u8 = 4;
/// The exit code that shells report for a program that Ctrl-C ended.
const EXIT_INTERRUPTED: u8 = 130;

/// Time that blocking threads have to end.
const HANGING_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(1);

/// One handle on every tool an LLM agent may use.
#[derive(Debug, Parser)]
#[command(name = "haft", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  haft init                             a first haft.yaml and a first tool
  haft doctor                           what is wrong, and what to do?
  haft serve                            serve the tools over HTTP
  haft check --connect                  is the configuration valid, and does every server answer?
  haft install claude --write           use the tools from Claude Code, or another client
  haft tools list                       which tools are there?
  haft call get_weather city=Seoul      run one
  haft run \"is it raining?\"             let a model use them
  haft select \"is it raining?\"          which tool fits?
  haft servers show files               how is a server doing?
  haft log --status error --since 1h    what went wrong?
  haft explain get_weather              which limits hold, and who set them?

Exit codes: 0 ok, 1 error while running, 2 invalid configuration or command line,
3 a server could not be reached, 4 a tool is not configured (strict mode), 130 interrupted";

/// Options of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of every command")]
struct Global {
    /// A configuration file, or a folder with tools.json and mcp.json; repeat to combine several
    ///
    /// Default: the files in HAFT_CONFIG (separated by `:`), otherwise haft.yaml, haft.yml or haft.json in the
    /// current folder.
    #[arg(short, long = "config", value_name = "PATH", global = true)]
    config: Vec<PathBuf>,
    /// Format of the files, instead of detecting it
    #[arg(long, value_name = "FORMAT", global = true, value_parser = load::parse_format)]
    config_format: Option<haft::config::Dialect>,
    /// The answer to ${input:ID} in VS Code's files
    #[arg(long = "input", value_name = "ID=VALUE", global = true, value_parser = load::parse_pair)]
    inputs: Vec<(String, String)>,
    /// Trust the haft.yaml of this folder: start its programs, and do not ask again until they change
    ///
    /// Files that -c or HAFT_CONFIG name are trusted. HAFT_TRUST=1 does the same for scripts,
    /// without remembering it.
    #[arg(long, global = true)]
    trust: bool,
    /// Do not use a running service of the same configuration: start the servers for this command
    #[arg(long, global = true)]
    standalone: bool,
    /// Print JSON for programs
    #[arg(long, global = true)]
    json: bool,
    /// Lowest level that is logged to stderr [default: info; warning for run and chat; at a terminal
    /// warning for call, tools, prompts, resources, servers, select, eval, learn and explain]
    #[arg(long, value_name = "LEVEL", global = true)]
    log_level: Option<LogLevel>,
    /// Format of log lines [default: plain; timed for serve and mcp if stderr is not a terminal]
    #[arg(long, value_name = "FORMAT", global = true)]
    log_format: Option<LogFormat>,
    /// When to use colours
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto")]
    color: Color,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, read once")]
enum Command {
    /// Write a first haft.yaml with comments, and a first tool
    Init(init::InitArgs),
    /// Find out what is wrong and what to do: files, programs, permissions, servers
    Doctor(doctor::DoctorArgs),
    /// Check the configuration: every problem at once; with --connect the servers too
    Check(check::CheckArgs),
    /// Write, check and approve what the servers offer: haft.lock
    Lock(lock::LockArgs),
    /// Show the configuration as Haft understands it
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// List, show, call and make tools
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    /// Call a tool
    Call(call::CallArgs),
    /// Rank the tools for a request in plain words
    Select(select::SelectArgs),
    /// Measure how well tools are chosen, on sets of requests with known answers
    Eval(eval::EvalArgs),
    /// Propose examples for tools, from what people asked for
    Learn(learn::LearnArgs),
    /// Explain a tool's effective settings and who set them
    Explain(explain::ExplainArgs),
    /// List and use the prompts of MCP servers
    #[command(subcommand)]
    Prompts(prompts::PromptsCommand),
    /// List and read the resources of MCP servers
    #[command(subcommand)]
    Resources(resources::ResourcesCommand),
    /// List, show, ping, add and remove MCP servers
    #[command(subcommand)]
    Servers(servers::ServersCommand),
    /// Sign in at a remote server that requires OAuth
    Login(login::LoginArgs),
    /// Forget the sign-in at a server
    Logout(login::LogoutArgs),
    /// Let a model do something with the tools
    Run(run::RunArgs),
    /// Talk with a model that uses the tools
    Chat(chat::ChatArgs),
    /// List, show and delete the conversations that are kept
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Serve the toolbox over HTTP: calls, registry, log, metrics
    Serve(serve::ServeArgs),
    /// Show the running service at a glance, or what is configured
    Status(status::StatusArgs),
    /// List the calls that the running service works on
    Ps(ps::PsArgs),
    /// End a call of the running service
    Cancel(ps::CancelArgs),
    /// Open the web console of a running service in the browser
    Console(console::ConsoleArgs),
    /// Offer the tools to an MCP client, over stdin and stdout
    Mcp(mcp::McpArgs),
    /// Put Haft into the configuration of an MCP client
    Install(install::InstallArgs),
    /// Take Haft out of the configuration of an MCP client
    Uninstall(install::UninstallArgs),
    /// Turn a client's servers into entries of haft.yaml
    Import(import::ImportArgs),
    /// Create, list, rotate and revoke the keys of the HTTP service
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Migrate, show, fill and save the database that several replicas share
    #[command(subcommand)]
    Shared(shared::SharedCommand),
    /// Show what admins did: changes of tools, servers and keys, approvals, sign-ins
    Audit(audit::AuditArgs),
    /// Explain which rule decided on a call, and by which values
    Why(why::WhyArgs),
    /// Try rules before they count
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Show the execution log
    Log(log::LogArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example: haft completions bash > /etc/bash_completion.d/haft")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of all commands into a folder
    Man(man::ManArgs),
}

impl Command {
    /// Commands that print one answer. Informational log lines would bury it at a terminal.
    fn is_one_shot(&self) -> bool {
        match self {
            Self::Tools(_)
            | Self::Call(_)
            | Self::Chat(_)
            | Self::Select(_)
            | Self::Eval(_)
            | Self::Learn(_)
            | Self::Explain(_)
            | Self::Prompts(_)
            | Self::Resources(_)
            | Self::Run(_)
            | Self::Status(_)
            | Self::Ps(_)
            | Self::Cancel(_)
            | Self::Doctor(_)
            | Self::Lock(_)
            | Self::Init(_)
            | Self::Servers(_) => true,
            Self::Check(_)
            | Self::Config(_)
            | Self::Keys(_)
            | Self::Shared(_)
            | Self::Audit(_)
            | Self::Why(_)
            | Self::Policy(_)
            | Self::Serve(_)
            | Self::Console(_)
            | Self::Sessions(_)
            | Self::Mcp(_)
            | Self::Install(_)
            | Self::Uninstall(_)
            | Self::Import(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Log(_)
            | Self::Completions { .. }
            | Self::Man(_) => false,
        }
    }
}

pub(crate) fn main() -> ExitCode {
    // Before anything else: a launcher becomes another program.
    if let Some(code) = haft::sandbox::launcher::main() {
        return code;
    }
    let Cli { mut global, command } = Cli::parse();
    if let Command::Run(args) = &command {
        global.json |= args.is_for_programs();
    }
    let is_brief = command.is_one_shot() && std::io::stderr().is_terminal();
    let level = match &command {
        // What is only worth knowing would bury what the agent does, wherever it is read.
        Command::Run(args) if args.is_quiet() => LogLevel::Error,
        Command::Run(_) | Command::Chat(_) => LogLevel::Warning,
        _ if is_brief => LogLevel::Warning,
        _ => LogLevel::Info,
    };
    let level = global.log_level.unwrap_or(level);
    logging::start(
        global.log_format.unwrap_or(LogFormat::Plain),
        level,
        Paint::stderr(global.color),
    );
    match dispatch(&global, command) {
        Ok(code) => code,
        Err(error) => report(&global, &error),
    }
}

fn dispatch(global: &Global, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Init(args) => init::run(global, &args),
        Command::Doctor(args) => doctor::run(global, &args),
        Command::Status(args) => status::run(global, &args),
        Command::Ps(args) => ps::run(global, &args),
        Command::Cancel(args) => ps::cancel(global, &args),
        Command::Check(args) => check::run(global, &args),
        Command::Lock(args) => lock::run(global, &args),
        Command::Config(command) => config::run(global, &command),
        Command::Tools(command) => tools::run(global, command),
        Command::Call(args) => call::run(global, &args),
        Command::Select(args) => select::run(global, &args),
        Command::Eval(args) => eval::run(global, &args),
        Command::Learn(args) => learn::run(global, &args),
        Command::Explain(args) => explain::run(global, &args),
        Command::Prompts(command) => prompts::run(global, &command),
        Command::Resources(command) => resources::run(global, &command),
        Command::Servers(command) => servers::run(global, &command),
        Command::Login(args) => login::run(global, &args),
        Command::Logout(args) => login::logout(global, &args),
        Command::Run(args) => run::run(global, &args),
        Command::Chat(args) => chat::run(global, &args),
        Command::Sessions(command) => sessions::run(global, &command),
        Command::Serve(args) => serve::run(global, &args),
        Command::Console(args) => console::run(global, &args),
        Command::Mcp(args) => mcp::run(global, &args),
        Command::Install(args) => install::install(global, &args),
        Command::Uninstall(args) => install::uninstall(global, &args),
        Command::Import(args) => import::run(global, &args),
        Command::Keys(command) => keys::run(global, &command),
        Command::Shared(command) => shared::run(global, &command),
        Command::Audit(args) => audit::run(global, args),
        Command::Why(args) => why::run(global, &args),
        Command::Policy(command) => policy::run(global, &command),
        Command::Log(args) => log::run(global, args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "haft", &mut script);
            terminal::line(String::from_utf8_lossy(&script).trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Command::Man(args) => man::run(&args),
    }
}

/// An error of ours, with what to do next.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Failure {
    message: String,
    remedy: Option<String>,
    code: u8,
}

impl Failure {
    fn new(code: u8, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: Some(remedy.into()), code }
    }
}

fn report(global: &Global, error: &anyhow::Error) -> ExitCode {
    let paint = Paint::stderr(global.color);
    let Failure { message, remedy, code } = failure(error);
    match error.downcast_ref::<ConfigError>() {
        Some(error) => report_problems(paint, error),
        None => terminal::error(paint, &message, remedy.as_deref()),
    }
    // After an interrupt the output has no reader.
    if global.json && code != EXIT_INTERRUPTED {
        let error = json!({"error": {"message": message, "remedy": remedy}});
        terminal::line(&printable_json(&error.to_string()));
    }
    ExitCode::from(code)
}

/// Any error with what to do next and the exit code it leads to.
fn failure(error: &anyhow::Error) -> Failure {
    if let Some(error) = error.downcast_ref::<ConfigError>() {
        let is_error = |it: &&Problem| it.severity == Severity::Error;
        let errors: Vec<&Problem> = error.problems.iter().filter(is_error).collect();
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let remedy = errors.first().map(|first| first.remedy.to_string());
        return Failure { message: texts.join("; "), remedy, code: EXIT_CONFIG };
    }
    if let Some(error) = error.downcast_ref::<StartError>() {
        // The toolbox has logged its own errors; this prints the consequence.
        let (message, code) = match error {
            StartError::Connect { failed } => {
                let names: Vec<String> =
                    failed.iter().map(|it| format!("`{}`", it.server)).collect();
                let names = names.join(" and ");
                (format!("Haft did not start: {names} could not be reached"), EXIT_CONNECT)
            }
            StartError::Strict { texts } => (
                format!("Haft did not start: {} (see above)", count(texts.len(), "violation")),
                EXIT_STRICT,
            ),
            StartError::Log(log) => (log.problem(), EXIT_RUNTIME),
            StartError::Cancelled => (toolbox::Interrupted.to_string(), EXIT_INTERRUPTED),
        };
        return Failure { message, remedy: error.remedy(), code };
    }
    if let Some(Failure { message, remedy, code }) = error.downcast_ref::<Failure>() {
        return Failure { message: message.clone(), remedy: remedy.clone(), code: *code };
    }
    let is_interrupted = error.is::<toolbox::Interrupted>();
    let code = if is_interrupted { EXIT_INTERRUPTED } else { EXIT_RUNTIME };
    Failure { message: format!("{error:#}"), remedy: None, code }
}

fn report_problems(paint: Paint, error: &ConfigError) {
    for problem in &error.problems {
        match problem.severity {
            Severity::Error => {
                terminal::error(paint, &problem.to_string(), Some(&problem.remedy.to_string()));
            }
            Severity::Warning => {
                terminal::warning(paint, &problem.to_string(), &problem.remedy.to_string());
            }
        }
    }
    let errors = error.problems.iter().filter(|it| it.severity == Severity::Error).count();
    say!("the configuration has {}; nothing was started", count(errors, "error"));
}

/// `1 error`, `2 errors`.
/// Reads a name. Longer ones than any are refused before they are looked up.
fn parse_name(name: &str) -> Result<String, String> {
    if name.len() <= NAME_BYTES_MAX {
        return Ok(name.to_owned());
    }
    Err(format!("it has {} bytes, and a name has at most {NAME_BYTES_MAX}", name.len()))
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Loads the configuration and prints warnings. Without a file there are the built-in tools.
fn configuration(global: &Global) -> anyhow::Result<Config> {
    Ok(said(load::load_if_any(global)?.0))
}

/// The same, for commands that start the configured programs.
fn trusted_configuration(global: &Global) -> anyhow::Result<Trusted> {
    let (config, options) = load::load_if_any(global)?;
    Trusted::require(global, said(load_shared::with_registry(config, options)?.0))
}

/// The same, for commands that need a file: servers, profiles. Without one there is nothing to do.
fn configuration_of_file(global: &Global) -> anyhow::Result<Config> {
    Ok(said(load::load(global)?))
}

fn said(config: Config) -> Config {
    for warning in &config.warnings {
        tracing::warn!("{warning}; {}", warning.remedy);
    }
    config
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(work);
    // Threads that hang, on a disk or a pipe, are left behind.
    runtime.shutdown_timeout(HANGING_WAIT_MAX);
    outcome
}

fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print_json_text(&serde_json::to_string(value)?);
    Ok(())
}

/// Prints JSON laid out for reading and otherwise as it was written.
fn print_json_text(json: &str) {
    terminal::line(&printable_json(&json_text::pretty(json)));
}
