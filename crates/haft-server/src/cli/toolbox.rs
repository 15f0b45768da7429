//! A running toolbox for one command: started with progress, ended whatever happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft::config::oauth::{OauthGrant, OauthInfo};
use haft::human_input::HumanInbox;
use haft::{Code, Runtime, ServerInfo, ServerState, ToolFailure};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::trust::Trusted;
use super::{EXIT_CONFIG, EXIT_RUNTIME, Failure, Global, load, load_shared, said};
use crate::gateway::Hub;
use crate::progress::Progress;
use crate::terminal;

/// Time for cancelled calls to end.
const GRACE: Duration = Duration::from_secs(5);

/// The command's use of the toolbox.
#[derive(Clone)]
pub(super) enum Purpose<'a> {
    /// Runs this tool, and asks people in the inbox if one is present.
    Call(&'a str, Option<(Hub, HumanInbox)>),
    /// To run any tool for one client, who alone can be asked. Servers that may be missing delay nothing.
    Serve(Hub),
    /// To let a model use it, and ask people in the inbox. What is denied is counted.
    Agent(Hub, HumanInbox, Denied),
    /// To see its tools. A server that must be there and is not stops the command.
    DryRun,
    /// To see what is wrong with it. Every server is connected, and none stops the command.
    Inspect,
    /// The same, to see the definitions that a service sees: servers offer some tools only to clients with certain
    /// capabilities.
    Lock,
    /// The same as `Inspect`, to see its servers: what those that start late offer now is kept for the next run.
    Servers,
}

/// Number of denied calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Denied(Arc<AtomicUsize>);

impl Denied {
    fn note(&self, code: Option<Code>) {
        if code == Some(Code::Denied) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A toolbox, and the signals that end its command.
pub(super) struct Toolbox {
    pub(super) runtime: Runtime,
    signals: Signals,
    progress: Progress,
}

/// Ctrl-C or SIGTERM came.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(super) struct Interrupted;

impl Toolbox {
    /// Starts the toolbox. A signal ends the start at once.
    pub(super) async fn open(config: Trusted, purpose: Purpose<'_>) -> anyhow::Result<Self> {
        let mut signals = Signals::new()?;
        let progress = Progress::on_stderr();
        let cancel = CancellationToken::new();
        let watch = progress.clone();
        let clients = match &purpose {
            Purpose::Serve(hub) => Some(hub.clone()),
            _ => None,
        };
        let builder = Runtime::builder(config.into_config())
            .cancelled_by(cancel.clone())
            .sandbox_launcher(std::env::current_exe()?)
            .watch_servers(move |server, health| {
                watch.note(server, health.state);
                if let Some(hub) = &clients {
                    hub.note_health(server, health);
                }
            });
        let builder = match purpose {
            Purpose::Call(tool, None) => builder.for_tool(tool).inbox(HumanInbox::unseen()),
            Purpose::Call(tool, Some((hub, inbox))) => {
                builder.for_tool(tool).server_handler(hub).inbox(inbox)
            }
            Purpose::Serve(hub) => {
                let builder = builder.without_waiting().ask_before_code();
                builder.server_handler(hub).inbox(HumanInbox::unseen())
            }
            Purpose::Agent(hub, inbox, denied) => {
                let builder = builder.ask_before_code().server_handler(hub).inbox(inbox);
                builder.observe(move |call| denied.note(call.code))
            }
            Purpose::DryRun => builder.dry_run(),
            Purpose::Inspect => builder.inspect(),
            Purpose::Lock => builder.inspect().server_handler(Hub::default()),
            Purpose::Servers => builder.inspect().keep_lists(),
        };
        let started = signals.cancelling(&cancel, Box::pin(builder.start())).await;
        if started.is_err() {
            progress.end();
        }
        Ok(Self { runtime: started?, signals, progress })
    }

    /// Works with the toolbox until that is done or a signal comes; then ends the toolbox.
    pub(super) async fn work<T>(
        mut self,
        work: impl AsyncFnOnce(&Runtime) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let outcome = tokio::select! {
            biased;
            () = self.signals.next() => Err(Interrupted.into()),
            outcome = work(&self.runtime) => outcome,
        };
        self.end().await;
        outcome
    }

    /// Waits for `work`; a signal cancels `cancel`, which `work` has to heed.
    pub(super) async fn cancelling<T>(
        &mut self,
        cancel: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> T {
        self.signals.cancelling(cancel, work).await
    }

    /// The same for one turn of several: Ctrl-C cancels the turn, and the command continues. None if the program is
    /// to end.
    pub(super) async fn interrupting<T>(
        &mut self,
        cancel: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = std::pin::pin!(work);
        loop {
            let is_end = tokio::select! {
                done = &mut work => return Some(done),
                _ = self.signals.interrupt.recv() => false,
                _ = self.signals.terminate.recv() => true,
                _ = self.signals.hang_up.recv() => true,
            };
            cancel.cancel();
            if is_end {
                work.await;
                return None;
            }
        }
    }

    /// Waits for what a person does. Nothing where the program is to end.
    pub(super) async fn until_end<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.signals.next() => None,
        }
    }

    /// Removes the progress line, before other output to the terminal.
    pub(super) fn hide_progress(&self) {
        self.progress.end();
    }

    /// Ends the toolbox in the way its servers expect. A signal shortens that: what is left is
    /// killed as this program ends.
    pub(super) async fn end(&mut self) {
        self.progress.end();
        tokio::select! {
            biased;
            _ = self.runtime.shutdown(GRACE) => {}
            () = self.signals.next() => {}
        }
    }
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal was closed.
    hang_up: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }

    async fn cancelling<T>(
        &mut self,
        cancel: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            done = &mut work => return done,
            () = self.next() => cancel.cancel(),
        }
        work.await
    }
}

/// The configuration with only the named servers, or with all of them if none is named.
pub(super) fn with_servers(global: &Global, names: &[&str]) -> anyhow::Result<Trusted> {
    let (config, options) = load::load_files(global, load::files(global)?)?;
    let config = said(load_shared::with_registry(config, options)?.0);
    let known: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
    require_names(names, &known)?;
    let mut config = Trusted::require(global, config)?;
    if !names.is_empty() {
        config.config_mut().keep_servers(names);
    }
    Ok(config)
}

/// Checks that there are servers of these names.
pub(super) fn require_servers(names: &[&str], servers: &[ServerInfo]) -> Result<(), Failure> {
    let known: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    require_names(names, &known)
}

fn require_names(names: &[&str], known: &[&str]) -> Result<(), Failure> {
    let Some(name) = names.iter().find(|name| !known.contains(name)) else { return Ok(()) };
    let near = haft_text::nearest(name, known.iter().copied());
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let remedy = format!("{near}`haft servers list` shows every server");
    Err(Failure::new(EXIT_CONFIG, format!("no server is named `{name}`"), remedy))
}

/// Works until that is done. A signal cancels `cancel`, which `work` has to heed.
pub(super) async fn cancelling<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> anyhow::Result<T> {
    Ok(Signals::new()?.cancelling(cancel, work).await)
}

/// Asks several servers the same, all at the same time. Answers come in the order of `servers`.
pub(super) async fn ask_each<T, F>(
    servers: Vec<String>,
    ask: impl Fn(String) -> F,
) -> Vec<(String, T)>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut asking = JoinSet::new();
    for (at, server) in servers.iter().enumerate() {
        let answer = ask(server.clone());
        asking.spawn(async move { (at, answer.await) });
    }
    let mut answers = asking.join_all().await;
    answers.sort_unstable_by_key(|(at, _)| *at);
    servers.into_iter().zip(answers.into_iter().map(|(_, answer)| answer)).collect()
}

/// Returns true if a server can be asked something.
pub(super) fn answers(server: &ServerInfo) -> bool {
    match server.state {
        ServerState::Ready | ServerState::Degraded => true,
        ServerState::Misconfigured
        | ServerState::Disabled
        | ServerState::Configured
        | ServerState::Connecting
        | ServerState::Unavailable
        | ServerState::Stopped => false,
    }
}

/// Returns true if a connection to the server was tried and failed.
pub(super) fn failed(server: &ServerInfo) -> bool {
    server.state != ServerState::Disabled && !answers(server)
}

/// Why a server cannot be asked.
pub(super) fn reason(server: &ServerInfo) -> &str {
    match (&server.reason, server.state) {
        (Some(reason), _) => reason,
        (None, ServerState::Disabled) => "it is disabled",
        (None, _) => "it cannot be reached",
    }
}

/// The remedy for an unreachable server, for users who see all its details.
pub(super) fn remedy(server: &ServerInfo) -> String {
    let ServerInfo { name, transport, state, reason, oauth, .. } = server;
    let needs_login = reason.as_deref().is_some_and(|reason| reason.starts_with("auth_required"));
    match (*transport, *state) {
        (_, ServerState::Disabled) => format!("take `disabled: true` away from `{name}`"),
        (_, ServerState::Misconfigured) => {
            server.remedy.as_ref().map(super::remedy::command).unwrap_or_default()
        }
        _ if needs_login => match oauth {
            Some(OauthInfo { grant: OauthGrant::ClientCredentials, .. }) => {
                format!("correct `oauth` of `{name}`, or the variable with its secret")
            }
            Some(OauthInfo { grant: OauthGrant::AuthorizationCode, .. }) | None => {
                format!("log in with `haft login {name}`, or set its `oauth` or `headers`")
            }
        },
        ("stdio", _) => "fix its `command`, `args` or `env`".to_owned(),
        _ => "see that it runs and that its `url` and `headers` are right".to_owned(),
    }
}

/// The same, for those who see only that it failed.
pub(super) fn remedy_and_more(server: &ServerInfo) -> String {
    format!("{}; `haft servers show {}` shows everything about it", remedy(server), server.name)
}

/// Warns on stderr of servers that could not be queried. Returns true if there are any.
pub(super) fn warn_of_failed(global: &Global, servers: &[ServerInfo]) -> bool {
    let paint = terminal::Paint::stderr(global.color);
    for server in servers.iter().filter(|server| failed(server)) {
        let message = format!("`{}` could not be asked: {}", server.name, reason(server));
        terminal::warning(paint, &message, &remedy_and_more(server));
    }
    servers.iter().any(failed)
}

/// A request that failed. `remedy` is for a server that understood and rejected it.
pub(super) fn refused(failure: ToolFailure, remedy: &str) -> Failure {
    let said_no = matches!(failure, ToolFailure::Execution { .. } | ToolFailure::Rejected { .. });
    let error = haft::CallError::Failed { tool: String::new(), failure: Box::new(failure) };
    let remedy = if said_no {
        Some(remedy.to_owned())
    } else {
        error.remedy().as_ref().map(super::remedy::command)
    };
    Failure { message: error.to_string(), remedy, code: EXIT_RUNTIME }
}
